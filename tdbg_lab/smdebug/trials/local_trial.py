"""A trial in a directory of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import NotFoundError
from tdbg_lab.smdebug.core.access_layer.utils import has_training_ended
from tdbg_lab.smdebug.exceptions import MissingCollectionFiles
from tdbg_lab.smdebug.trials.record import open_record
from tdbg_lab.smdebug.trials.trial import Trial
from tdbg_lab.smdebug.trials.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.smdebug.trials.record import Record

__all__ = ["LocalTrial"]


class LocalTrial(Trial):
    """Reads the directory that was a hook's ``out_dir``; waits until something is there.

    Parameters
    ----------
    name
        For people.
    dirname
        The directory.
    range_steps, cache
        As for `Trial`; what else the predecessor took is accepted and has no effect.
    """

    def __init__(
        self,
        name: str,
        dirname: str | Path,
        range_steps: Sequence[int | None] | None = None,
        cache: bool = False,
        **_kwargs: Any,
    ) -> None:
        self._path = Path(dirname).expanduser()
        super().__init__(name, _wait_for(self._path), range_steps=range_steps, cache=cache)

    @property
    def path(self) -> str:
        """The directory."""
        return str(self._path)


def _wait_for(path: Path) -> Record:
    waiting = Waiting(f"a run at {path}")
    while True:
        try:
            return open_record(path)
        except NotFoundError:
            if has_training_ended(str(path)):
                raise MissingCollectionFiles from None
        waiting.pause()
