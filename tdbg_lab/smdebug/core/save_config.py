"""When to save: every so many steps, between two steps, at listed steps; for each mode."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tdbg_lab.smdebug.core.checks import checked
from tdbg_lab.smdebug.core.modes import ModeKeys
from tdbg_lab.smdebug.exceptions import SMDebugTypeError, SMDebugValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DEFAULT_SAVE_CONFIG_END_STEP",
    "DEFAULT_SAVE_CONFIG_INTERVAL",
    "DEFAULT_SAVE_CONFIG_SAVE_STEPS",
    "DEFAULT_SAVE_CONFIG_START_STEP",
    "SaveConfig",
    "SaveConfigMode",
]

DEFAULT_SAVE_CONFIG_INTERVAL = 500
DEFAULT_SAVE_CONFIG_START_STEP = 0
DEFAULT_SAVE_CONFIG_END_STEP = None
DEFAULT_SAVE_CONFIG_SAVE_STEPS: list[int] = []
_FIELDS = ("save_interval", "save_steps", "start_step", "end_step")


@dataclass(eq=True)
class SaveConfigMode:
    """The steps of one mode that are saved.

    A step is saved when it is listed in `save_steps`, or when it is a multiple of `save_interval`
    from `start_step` on and before `end_step`.

    Raises
    ------
    SMDebugValueError
        If a number is none, or the interval is below 1.
    """

    save_interval: int = DEFAULT_SAVE_CONFIG_INTERVAL
    start_step: int = DEFAULT_SAVE_CONFIG_START_STEP
    end_step: int | None = DEFAULT_SAVE_CONFIG_END_STEP
    save_steps: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        given: Any = self.save_steps
        if given is None:
            given = []
        if not isinstance(given, (list, tuple)) or not all(_is_step(one) for one in given):
            raise SMDebugValueError(f"save_steps is {given!r}; expected a list of step numbers.")
        self.save_steps = [int(one) for one in given]
        self.save_interval = _number("save_interval", self.save_interval, DEFAULT_SAVE_CONFIG_INTERVAL)
        self.start_step = _number("start_step", self.start_step, DEFAULT_SAVE_CONFIG_START_STEP)
        if self.end_step is not None:
            self.end_step = _number("end_step", self.end_step, 0)
        if self.save_interval < 1:
            raise SMDebugValueError(f"save_interval is {self.save_interval}; expected at least 1.")

    __hash__ = None  # type: ignore[assignment]

    def should_save_step(self, step_num: int) -> bool:
        """Whether the step, counted in this mode, is saved."""
        if step_num in self.save_steps:
            return True
        inside = step_num >= self.start_step and (self.end_step is None or step_num < self.end_step)
        return inside and step_num % self.save_interval == 0

    def to_json_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {name: getattr(self, name) for name in _FIELDS}

    @classmethod
    def from_dict(
        cls, params: Mapping[str, Any], default_values: Mapping[str, Any] | None = None
    ) -> SaveConfigMode:
        """From a mapping of the fields; `default_values` stand in for those that are missing.

        Raises
        ------
        SMDebugValueError
            If it is no mapping, or a field is not known or has a wrong value.
        """
        checked(params, "a SaveConfigMode")
        unknown = [name for name in params if name not in _FIELDS]
        if unknown:
            raise SMDebugValueError(
                f"{unknown[0]!r} is not part of a SaveConfigMode; expected {', '.join(_FIELDS)}."
            )
        known = {**(default_values or {}), **params}
        return cls(**{name: known[name] for name in _FIELDS if known.get(name) is not None})


def _is_step(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and value.strip().isdigit())


def _number(name: str, value: Any, default: int) -> int:
    """A whole number; texts of one count, as in JSON written for the predecessor."""
    if value is None:
        return default
    try:
        return int(value)
    except (TypeError, ValueError):
        raise SMDebugValueError(f"{name} is {value!r}; expected a whole number.") from None


class SaveConfig:
    """The steps that are saved, mode by mode.

    Parameters
    ----------
    mode_save_configs
        One for each mode; a mode that is left out follows the hook's own. When None, the other
        arguments hold for all modes.
    save_interval, start_step, end_step, save_steps
        As for `SaveConfigMode`.

    Raises
    ------
    SMDebugValueError
        If the mapping is not one of modes to `SaveConfigMode`, or a value is wrong.
    """

    def __init__(
        self,
        mode_save_configs: Mapping[ModeKeys, SaveConfigMode] | None = None,
        save_interval: int | None = None,
        start_step: int | None = None,
        end_step: int | None = None,
        save_steps: list[int] | None = None,
    ) -> None:
        self.mode_save_configs: dict[ModeKeys, SaveConfigMode | None]
        if mode_save_configs is None:
            given = (save_interval, start_step, end_step, save_steps)
            self.mode_save_configs = {mode: SaveConfigMode(*given) for mode in ModeKeys}  # type: ignore[arg-type]
            return
        given_by: Any = mode_save_configs
        checked(given_by, "a SaveConfig")
        if not all(isinstance(mode, ModeKeys) for mode in given_by) or not all(
            isinstance(one, SaveConfigMode) for one in given_by.values()
        ):
            raise SMDebugValueError(
                "mode_save_configs maps modes to SaveConfigMode objects, such as "
                f"{{modes.TRAIN: SaveConfigMode(save_interval=10)}}; found {dict(given_by)!r}."
            )
        self.mode_save_configs = {mode: mode_save_configs.get(mode) for mode in ModeKeys}

    def __repr__(self) -> str:
        return f"<SaveConfig {self.to_json()}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SaveConfig) and self.mode_save_configs == other.mode_save_configs

    __hash__ = None  # type: ignore[assignment]

    def get_save_config(self, mode: ModeKeys) -> SaveConfigMode:
        """That of one mode; the defaults when nothing was said about it."""
        return self.mode_save_configs[mode] or SaveConfigMode()

    def set_save_config(self, mode: ModeKeys, save_config_mode: SaveConfigMode) -> None:
        """Set that of one mode.

        Raises
        ------
        SMDebugTypeError
            If it is not a `SaveConfigMode`.
        """
        if not isinstance(save_config_mode, SaveConfigMode):
            raise SMDebugTypeError(f"save_config_mode is {save_config_mode!r}; expected a SaveConfigMode.")
        self.mode_save_configs[mode] = save_config_mode

    def merge_default_save_config(self, default_save_config: SaveConfig) -> None:
        """Take from another what is not said here."""
        for mode, own in self.mode_save_configs.items():
            if own is None:
                self.mode_save_configs[mode] = default_save_config.mode_save_configs[mode]

    def should_save_step(self, mode: ModeKeys, step_num: int) -> bool:
        """Whether a step, counted in `mode`, is saved."""
        return self.get_save_config(mode).should_save_step(step_num)

    def to_json_dict(self) -> dict[str, Any]:
        """As JSON-able data, by the names of the modes."""
        return {
            mode.name: None if one is None else one.to_json_dict()
            for mode, one in self.mode_save_configs.items()
        }

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.to_json_dict())

    @classmethod
    def from_save_config_mode(cls, save_config_mode: SaveConfigMode) -> SaveConfig:
        """The same in all modes."""
        return cls(dict.fromkeys(ModeKeys, save_config_mode))

    @classmethod
    def from_dict(
        cls, params: Mapping[Any, Any], default_values: Mapping[str, Any] | None = None
    ) -> SaveConfig:
        """From mappings by mode, or from one mapping of the fields for all modes.

        Raises
        ------
        SMDebugValueError
            If it is no mapping, a mode or a field is not known, or a value is wrong.
        """
        checked(params, "a SaveConfig")
        if params and set(params) <= set(_FIELDS):
            return cls.from_save_config_mode(SaveConfigMode.from_dict(params, default_values))
        modes: dict[ModeKeys, SaveConfigMode] = {}
        for name, one in params.items():
            mode = name if isinstance(name, ModeKeys) else ModeKeys.__members__.get(str(name).upper())
            if mode is None:
                raise SMDebugValueError(
                    f"{name!r} is not part of a SaveConfig; expected a mode, or {', '.join(_FIELDS)}."
                )
            if one is not None:
                modes[mode] = (
                    one if isinstance(one, SaveConfigMode) else SaveConfigMode.from_dict(one, default_values)
                )
        return cls(modes)

    @classmethod
    def from_json(cls, json_str: str) -> SaveConfig:
        """From JSON."""
        return cls.from_dict(json.loads(json_str))

    @classmethod
    def parse(cls, obj: Any) -> SaveConfig:
        """From None, a `SaveConfig`, a `SaveConfigMode` or a mapping.

        Raises
        ------
        SMDebugTypeError
            If it is something else.
        """
        if obj is None:
            return cls()
        if isinstance(obj, SaveConfig):
            return obj
        if isinstance(obj, SaveConfigMode):
            return cls.from_save_config_mode(obj)
        if isinstance(obj, dict):
            return cls.from_dict(obj)
        raise SMDebugTypeError(
            f"{obj!r} says nothing about steps: expected a SaveConfig, a SaveConfigMode or a dict."
        )
