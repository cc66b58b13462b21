"""Changing a setting while training goes on: the part that knows no framework."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from tdbg_lab.errors import ConfigError, TdbgError
from tdbg_lab.store.settings import AppliedSetting, SettingChange, change_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.store import Request

__all__ = ["Changed", "Settings", "choose", "follow"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of a setting."""

    applied: Sequence[AppliedSetting]
    note: str = ""
    """What else there is to know: that a scheduler goes on from there."""


class Settings(Protocol):
    """What a framework lets be changed."""

    def change(self, change: SettingChange) -> Changed:
        """Do it, wholly or not at all.

        Raises
        ------
        ConfigError
            It cannot be done, with one sentence that says why.
        """


def choose(change: SettingChange, known: Mapping[str, T]) -> dict[str, T]:
    """The optimizers, by name, that a change is for.

    Raises
    ------
    ConfigError
        If there is none of its name.
    """
    if not change.optimizer:
        return dict(known)
    if change.optimizer not in known:
        names = ", ".join(repr(name) for name in known)
        raise ConfigError(f"There is no optimizer {change.optimizer[:80]!r}; there are: {names}.")
    return {change.optimizer: known[change.optimizer]}


def follow(engine: Engine, settings: Settings | None, request: Request) -> None:
    """Follow a request to change a setting, or refuse it, and say so in its file. Never raises."""
    guard, control = engine.guard, engine.control
    try:
        change = change_in(request)
        if settings is None:
            raise ConfigError(f"{change.setting} of this training cannot be changed while it goes on.")  # noqa: TRY301
        done = settings.change(change)
    except TdbgError as error:
        guard.run("control", control.refuse, request, str(error))
    except Exception as error:  # noqa: BLE001 - nothing of ours raises into training
        guard.run("control", control.refuse, request, f"It failed: {type(error).__name__}: {error}"[:500])
    else:
        text = f"from step {engine.step} on: " + ", ".join(map(str, done.applied))
        result = {"step": engine.step, "applied": [asdict(one) for one in done.applied]}
        guard.run("control", control.answer, request, f"{text}. {done.note}".strip(), result)
