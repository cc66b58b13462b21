"""The capture of one training that an adapter follows from its beginning to its end."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.attaching import attach
from tdbg_lab.capture.ending import not_reached

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tdbg_lab.capture.handle import Handle
    from tdbg_lab.records import Mode

__all__ = ["Attachment", "numbers"]

_log = logging.getLogger("tdbg_lab")


class Attachment:
    """Nothing, or the handle of the training that is going on.

    What goes wrong here is logged, never raised: the training goes on without being captured.

    Parameters
    ----------
    settings
        Checked already; see `settings.checked_settings`.
    stop
        Asks the library to stop, by its own means.
    """

    def __init__(self, settings: Mapping[str, Any], stop: Callable[[], object]) -> None:
        self._settings = dict(settings)
        self._stop = stop
        self.began: Callable[[Handle], object] | None = None
        """Called with the handle of each training that begins."""
        self.handle: Handle | None = None
        """Of this training, or of the last one."""

    def __getstate__(self) -> dict[str, Any]:
        """For a process that the library starts to train in: there nobody waits for the beginning."""
        return {**vars(self), "began": None, "handle": None}

    @property
    def attached(self) -> bool:
        """Whether a training is being captured."""
        return self.handle is not None and self.handle.attached

    @property
    def stop_requested(self) -> bool:
        """Whether somebody asked this training to stop."""
        return self.handle is not None and self.handle.stop_requested

    def begin(
        self,
        model: Any,
        *,
        optimizer: Any = None,
        loss: Any = None,
        hyperparameters: Mapping[str, Any] | None = None,
        first_step: int = 0,
    ) -> None:
        """A training begins, or goes on at `first_step`.

        `hyperparameters` are the library's own, the user's win over them.
        """
        if self.attached:
            self.end(not_reached())
        settings = dict(self._settings)
        given = settings.pop("hyperparameters", None)
        try:
            self.handle = attach(
                model,
                optimizer=optimizer,
                loss=loss,
                hyperparameters={**(hyperparameters or {}), **(given or {})},
                first_step=first_step,
                on_stop=lambda _reason: self._stop(),
                **settings,
            )
        except Exception as error:
            if settings.get("strict"):
                raise
            self.handle = None
            _log.warning("tdbg-lab: nothing is captured; the training goes on. Cause: %s", error)
            return
        self.handle.end_is_told()
        if self.began is not None:
            self.began(self.handle)

    def log(self, values: Mapping[str, Any], mode: Mode) -> None:
        """Log the numbers among `values` with the last forward of this mode."""
        if self.handle is not None and self.attached:
            found = numbers(values)
            if found:
                self.handle.log_in(mode, found)

    def end(self, error: BaseException | None = None) -> None:
        """The training is over, or `error` ended it. Idempotent."""
        if self.handle is not None and self.attached:
            self.handle.__exit__(type(error) if error is not None else None, error, None)


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """What is one number in `values`: a number, or an array or tensor with one element."""
    found = {}
    for name, value in values.items():
        if isinstance(value, str | bytes) or getattr(value, "numel", lambda: 1)() != 1:
            continue
        try:
            found[str(name)] = float(value)
        except (TypeError, ValueError):
            continue
    return found
