"""What a run may be asked to do while it trains: stop, change a setting, profile itself, apply a fix.

Requests are files in the run directory (`tdbg_lab.store.control`); the training process answers them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tdbg_lab.errors import ConfigError, ConflictError
from tdbg_lab.profiler.window import PROFILE, ProfileWindow
from tdbg_lab.records import RunStatus
from tdbg_lab.store import control
from tdbg_lab.store.profile_requests import list_profile_requests
from tdbg_lab.store.settings import SET, SettingChange, SettingRecord, read_setting_records
from tdbg_lab.store.source import is_foreign

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tdbg_lab.profiler.window import PythonProfiler
    from tdbg_lab.records import Finding
    from tdbg_lab.store.info import RunInfo
    from tdbg_lab.store.profile_requests import ProfileRequest
    from tdbg_lab.store.remote.origin import Origin

__all__ = ["Requests"]


class Requests:
    """The part of `tdbg_lab.run.Run` that asks for something."""

    path: Path
    _mirror: Origin | None

    @property
    def info(self) -> RunInfo:
        """What the run says about itself."""
        raise NotImplementedError

    @property
    def status(self) -> RunStatus:
        """Where it stands."""
        raise NotImplementedError

    def request_stop(self, reason: str = "", by: str = "") -> str:
        """Ask the training process to stop; returns the id of the request.

        Raises
        ------
        ConflictError
            If the run is not running.
        StoreError
            If it cannot be written.
        """
        self._must_run("stop")
        return self._request("stop", reason, by)

    def request_setting(
        self,
        setting: str | SettingChange,
        value: float | Literal["off"] | None = None,
        *,
        factor: float | None = None,
        group: int | None = None,
        optimizer: str = "",
        reason: str = "",
        by: str = "",
    ) -> str:
        """Ask the training process to change a setting at the end of its step; returns the id of the request.

        ::

            run.request_setting("learning_rate", 1e-4)
            run.request_setting("learning_rate", factor=0.1, group=0)
            run.request_setting("clip_norm", 1.0)  # "off" turns it off
            run.request_setting("learning_rate*=0.1")

        `setting_changes` tells what came of it.

        Raises
        ------
        ConfigError
            If there is no such setting, or the value is out of its bounds.
        ConflictError
            If the run is not running.
        StoreError
            If it cannot be written.
        """
        change = _change(setting, value, factor=factor, group=group, optimizer=optimizer)
        self._must_run("set")
        return self._request(SET, reason, by, change.dump())

    def request_profile(
        self,
        steps: int | None = None,
        *,
        seconds: float | None = None,
        start: int | None = None,
        operators: bool = True,
        shapes: bool = True,
        memory: bool = True,
        stacks: bool = True,
        python: PythonProfiler = "sampling",
        by: str = "",
    ) -> str:
        """Ask the training process to profile itself while it goes on; returns the id of the request.

        Operators (torch.profiler) and Python functions are recorded one after the other, each for the
        whole window; `profiles` lists what is there.

        Parameters
        ----------
        steps, seconds
            Length of the window; 5 steps when neither is given.
        start
            Step to begin with; None: the next one.
        operators, shapes, memory, stacks
            What to record with torch.profiler.
        python
            ``"sampling"`` (pyinstrument), ``"calls"`` (cProfile) or ``"off"``.

        Raises
        ------
        ConfigError
            If the window makes no sense.
        ConflictError
            If the run is not running.
        StoreError
            If it cannot be written.
        """
        window = ProfileWindow(
            steps=steps,
            seconds=seconds,
            start=start,
            operators=operators,
            shapes=shapes,
            memory=memory,
            stacks=stacks,
            python=python,
        )
        self._must_run("profile")
        return self._request(PROFILE, "", by, window.dump())

    def profile_requests(self) -> list[ProfileRequest]:
        """What became of the last requests to profile, oldest first."""
        return list_profile_requests(self.path)

    def apply_fix(self, finding: Finding, *, by: str = "") -> str:
        """Ask the training process for the change that a finding proposes; returns the id of the request.

        Raises
        ------
        ConflictError
            If the finding proposes none that can be applied while training goes on, or the run is not
            running.
        StoreError
            If it cannot be written.
        """
        if not finding.fix:
            raise ConflictError(f"The finding of {finding.rule} proposes no change that could be applied.")
        try:
            change = SettingChange.of(finding.fix)
        except ConfigError as error:
            raise ConflictError(
                f"The fix of {finding.rule} cannot be applied while training goes on: {error}"
            ) from error
        self._must_run("fix")
        arguments = {**change.dump(), **({"finding": finding.id} if finding.id else {})}
        return self._request(SET, finding.message, by, arguments)

    def setting_changes(self) -> list[SettingRecord]:
        """Changes of settings that were asked for, oldest first: when, by whom, and what came of them."""
        return read_setting_records(self.path)

    def _must_run(self, what: str) -> None:
        if is_foreign(self.path):
            return  # what is asked for is refused with a better reason
        if self.status is not RunStatus.RUNNING:
            raise ConflictError(f"The run {self.info.name!r} is {self.status}: there is nothing to {what}.")

    def _request(
        self, kind: str, reason: str, by: str, arguments: Mapping[str, float | int | str | bool] | None = None
    ) -> str:
        identity = control.request(self.path, kind, reason=reason, by=by, arguments=arguments)
        if self._mirror is not None:
            self._mirror.send_request(identity)
        return identity


def _change(setting: str | SettingChange, value: float | str | None, **more: Any) -> SettingChange:
    """The change that is meant.

    Raises
    ------
    ConfigError
        If there is none.
    """
    if isinstance(setting, SettingChange):
        return setting
    factor = more.pop("factor")
    if "=" in setting and value is None and factor is None:
        return SettingChange.parse(setting, **more)
    return SettingChange.of({"setting": setting, "value": value, "factor": factor, **more})
