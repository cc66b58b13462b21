"""Settings of a training that can be changed while it goes on: what is asked for, and what came of it.

The request is one of those in ``control/`` (kind ``set``); the training process checks it again,
applies it at the end of a step and answers in place, so that the file is the record: what, when, by
whom, old and new value. Nothing in it is ever evaluated.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tdbg_lab.errors import ConfigError
from tdbg_lab.store.control import requests
from tdbg_lab.store.jsonable import float_in
from tdbg_lab.store.limits import MAX_NAME_CHARS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tdbg_lab.store.control import Request

__all__ = ["SET", "AppliedSetting", "SettingChange", "SettingRecord", "change_in", "read_setting_records"]

SET: Final = "set"
"""Kind of the requests."""
_BOUNDS: Final = {"learning_rate": (1e-12, 1e3), "clip_norm": (1e-9, 1e9)}
"""Least and greatest value of each setting."""
_FACTORS: Final = (1e-6, 1e6)
_ALIASES: Final = {"lr": "learning_rate", "clip": "clip_norm", "clipping": "clip_norm"}
_FIELDS: Final = ("setting", "value", "factor", "group", "optimizer")
_TEXT: Final = re.compile(r"\s*([a-z_]{1,32})\s*(?:\[(\d{1,6})\])?\s*([*/]?=)\s*([^\s]{1,32})\s*")
_MAX_GROUP: Final = 10_000
_MAX_APPLIED: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingChange:
    """A setting and what it shall become.

    Raises
    ------
    ConfigError
        If there is no such setting, or the value is out of its bounds.
    """

    setting: str
    """``learning_rate``, or ``clip_norm``: the greatest L2 norm of all gradients of an optimizer."""
    value: float | None = None
    """The new value. None for ``clip_norm`` turns clipping off."""
    factor: float | None = None
    """What the learning rate is multiplied by, instead of `value`."""
    group: int | None = None
    """Parameter group of the optimizer; None for all. Learning rate only."""
    optimizer: str = ""
    """Name of one of several optimizers; ``""`` for all."""

    def __post_init__(self) -> None:
        if self.setting not in tuple(_BOUNDS):  # by comparing: what is asked for may be of any type
            raise ConfigError(
                f"There is no setting {str(self.setting)[:80]!r} that can be changed while a run goes on; "
                f"there are: {', '.join(_BOUNDS)}."
            )
        if self.setting == "learning_rate":
            self._check_rate()
        elif self.factor is not None or self.group is not None:
            raise ConfigError("clip_norm takes a value or 'off', for all parameter groups of an optimizer.")
        if self.value is not None:
            _check(self.setting, self.value, *_BOUNDS[self.setting])
        optimizer: object = self.optimizer
        if not isinstance(optimizer, str) or len(optimizer) > MAX_NAME_CHARS:
            raise ConfigError("optimizer is not the name of an optimizer.")

    def _check_rate(self) -> None:
        if (self.value is None) == (self.factor is None):
            raise ConfigError("learning_rate takes either a value or a factor: learning_rate=1e-4, *=0.1.")
        if self.factor is not None:
            _check("The factor of learning_rate", self.factor, *_FACTORS)
        group = self.group
        if group is not None and (type(group) is not int or not 0 <= group < _MAX_GROUP):
            raise ConfigError(
                f"group is {str(group)[:40]}; expected the number of a parameter group, from 0."
            )

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> SettingChange:
        """Make one from a mapping, such as `tdbg_lab.records.Finding.fix`; ``value`` may be ``"off"``.

        Raises
        ------
        ConfigError
            With one sentence on what is wrong.
        """
        unknown = [str(name)[:80] for name in fields if name not in _FIELDS]
        if unknown:
            raise ConfigError(f"A setting has no {unknown[0]!r}; expected {', '.join(_FIELDS)}.")
        given = dict(fields)
        setting = given.get("setting")
        given["setting"] = _ALIASES.get(str(setting), setting)
        if given.get("value") == "off":
            given["value"] = None
        elif given["setting"] == "clip_norm" and given.get("value") is None:
            raise ConfigError("clip_norm needs a value: a number, or 'off'.")
        return cls(**given)

    @classmethod
    def parse(cls, text: str, *, group: int | None = None, optimizer: str = "") -> SettingChange:
        """Make one from what people type.

        ``learning_rate=1e-4``, ``lr*=0.1``, ``lr/=10``, ``lr[1]=0.01`` (parameter group 1),
        ``clip_norm=1.0``, ``clip_norm=off``.

        Raises
        ------
        ConfigError
            With one sentence on what is wrong.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"{text[:80]!r} is not a setting: write learning_rate=1e-4, lr*=0.1 or clip_norm=1."
            )
        name, index, sign, word = match.groups()
        fields: dict[str, Any] = {"setting": name, "optimizer": optimizer}
        fields["group"] = int(index) if index is not None else group
        if word == "off":
            fields["value"] = "off"
            return cls.of(fields)
        try:
            number = float(word)
        except ValueError:
            raise ConfigError(f"{name} takes a number, not {word!r}.") from None
        if sign == "/=":
            number = 1 / number if number else math.inf
        fields["value" if sign == "=" else "factor"] = number
        return cls.of(fields)

    def dump(self) -> dict[str, float | int | str]:
        """As JSON; `of` reads it."""
        given = {name: getattr(self, name) for name in _FIELDS}
        if self.setting == "clip_norm" and self.value is None:
            given["value"] = "off"
        return {name: value for name, value in given.items() if value not in (None, "")}

    def __str__(self) -> str:
        place = "" if self.group is None else f"[{self.group}]"
        if self.factor is not None:
            return f"{self.setting}{place} x {self.factor:g}"
        return f"{self.setting}{place} = {'off' if self.value is None else f'{self.value:g}'}"


@dataclass(frozen=True, slots=True)
class AppliedSetting:
    """One value that was changed."""

    what: str
    """``optimizer/lr/0`` as the series of the same name, or ``clip_norm``."""
    old: float | None
    """None: there was none."""
    new: float | None

    def __str__(self) -> str:
        old, new = ("off" if one is None else f"{one:g}" for one in (self.old, self.new))
        return f"{self.what} from {old} to {new}"


@dataclass(frozen=True, slots=True)
class SettingRecord:
    """What became of a request to change a setting."""

    id: str
    change: SettingChange
    state: str
    """``pending``, ``done`` or ``refused``."""
    by: str
    reason: str
    created_ns: int
    answered_ns: int | None = None
    answer: str = ""
    """What training said: what it did, or why it refused."""
    step: int | None = None
    """Steps that were completed when it was applied: the first step with the new value."""
    applied: tuple[AppliedSetting, ...] = ()
    finding: str = ""
    """Id of the finding whose fix it is."""


def read_setting_records(run_path: str | Path) -> list[SettingRecord]:
    """All changes of settings that were asked for, oldest first; what cannot be read is left out."""
    found = []
    for request in requests(run_path):
        if request.kind == SET:
            try:
                found.append(_record(request))
            except ConfigError:
                continue
    return found


def change_in(request: Request) -> SettingChange:
    """What a request of kind `SET` asks for.

    Raises
    ------
    ConfigError
        If it makes no sense.
    """
    return SettingChange.of({name: one for name, one in request.arguments.items() if name != "finding"})


def _record(request: Request) -> SettingRecord:
    step = request.result.get("step")
    applied = request.result.get("applied")
    return SettingRecord(
        id=request.id,
        change=change_in(request),
        state=request.state,
        by=request.by,
        reason=request.reason,
        created_ns=request.created_ns,
        answered_ns=request.answered_ns,
        answer=request.answer or "",
        step=step if type(step) is int else None,
        applied=tuple(
            AppliedSetting(
                str(one.get("what", ""))[:MAX_NAME_CHARS], _number(one, "old"), _number(one, "new")
            )
            for one in (applied if isinstance(applied, list) else [])[:_MAX_APPLIED]
            if isinstance(one, dict)
        ),
        finding=str(request.arguments.get("finding", ""))[:MAX_NAME_CHARS],
    )


def _number(value: Mapping[str, Any], name: str) -> float | None:
    return float_in(value.get(name))


def _check(name: str, value: object, least: float, greatest: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not least <= value <= greatest:  # type: ignore[operator]
        raise ConfigError(f"{name} is {str(value)[:40]}; expected a number from {least:g} to {greatest:g}.")
