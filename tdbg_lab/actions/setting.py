"""Change a setting of the training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tdbg_lab.actions.base import Action
from tdbg_lab.errors import ConfigError
from tdbg_lab.store import SettingChange, request
from tdbg_lab.store.settings import SET

if TYPE_CHECKING:
    from tdbg_lab.actions.base import ActionContext
    from tdbg_lab.records import Finding
    from tdbg_lab.run import Run

__all__ = ["ApplyFix", "ChangeSetting", "apply_fix"]


@dataclass(frozen=True, kw_only=True)
class ChangeSetting(Action):
    """Ask the training process to change a setting at the end of the step it is in.

    ::

        ChangeSetting(factor=0.1)                                   # the learning rate
        ChangeSetting(setting="clip_norm", value=1.0, when=Pattern(rule="exploding"))

    What came of it: `tdbg_lab.Run.setting_changes`.

    Raises
    ------
    ConfigError
        There is no such setting, or the value is out of its bounds.
    """

    setting: str = "learning_rate"
    """``learning_rate`` or ``clip_norm``."""
    value: float | Literal["off"] | None = None
    """The new value; ``"off"`` turns clipping off."""
    factor: float | None = None
    """What the learning rate is multiplied by, instead of `value`."""
    group: int | None = None
    """Parameter group; None for all."""
    optimizer: str = ""
    """Name of one of several optimizers; ``""`` for all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.change()

    def change(self) -> SettingChange:
        """What is asked for."""
        names = ("setting", "value", "factor", "group", "optimizer")
        return SettingChange.of({name: getattr(self, name) for name in names})

    def perform(self, finding: Finding, context: ActionContext) -> None:
        """Write the request into the run directory."""
        _ask(self.change(), finding, context)


@dataclass(frozen=True, kw_only=True)
class ApplyFix(Action):
    """Ask the training process for the change that the finding itself proposes; without one, do nothing.

    Only a critical finding is sure enough for that by default: see `at_least`.
    """

    at_least: str = "critical"
    """Findings of this severity and worse ones."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at_least not in _SEVERITIES:
            raise ConfigError(f"at_least is {self.at_least!r}; expected {', '.join(_SEVERITIES)}.")

    def perform(self, finding: Finding, context: ActionContext) -> None:
        """Write the request into the run directory."""
        sure = _SEVERITIES.index(finding.severity) >= _SEVERITIES.index(self.at_least)
        if finding.fix and sure:
            _ask(SettingChange.of(finding.fix), finding, context)


_SEVERITIES = ("notice", "warning", "critical")


def apply_fix(run: Run, finding: Finding, *, by: str = "") -> str:
    """Ask a running training for the change that a finding proposes; returns the id of the request.

    Raises
    ------
    ConflictError
        If there is none that can be applied while training goes on, or the run is not running.
    StoreError
        If the request cannot be written.
    """
    return run.apply_fix(finding, by=by)


def _ask(change: SettingChange, finding: Finding, context: ActionContext) -> None:
    arguments = {**change.dump(), **({"finding": finding.id} if finding.id else {})}
    by = f"rule {finding.rule}"
    request(context.run_path, SET, reason=finding.message, by=by, arguments=arguments)
