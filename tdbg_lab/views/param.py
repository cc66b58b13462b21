"""What a view can be asked: a parameter, its control, and the check of a value."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from tdbg_lab.errors import ConfigError
from tdbg_lab.nearest import did_you_mean
from tdbg_lab.records import Kind
from tdbg_lab.run import Run
from tdbg_lab.views.pattern import MOST_REPEATS, is_simple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MOST_RUNS", "Param", "ParamKind"]

ParamKind = Literal[
    "tensor", "tensors", "regex", "choice", "int", "bool", "step", "steps", "range", "seconds", "run", "runs"
]

_MAX_TEXT = 1024
_MAX_PATTERN = 200
_MAX_ITEMS = 1000
_MAX_STEP = 2**53
MOST_RUNS = 31
"""In a list of runs: more lines cannot be told apart, and each of them is kept open."""


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a view. Every host builds its control from this."""

    name: str
    label: str
    kind: ParamKind
    default: Any = None
    """None leaves the choice to the view."""
    choices: tuple[str, ...] = ()
    """What a ``choice`` may be."""
    choice_labels: tuple[str, ...] = ()
    """What the choices are called, in the order of `choices`; empty: as they are."""
    minimum: float | None = None
    """Inclusive."""
    maximum: float | None = None
    """Inclusive."""
    tensor_kinds: tuple[str, ...] = ()
    """Kinds to offer for ``tensor`` and ``tensors``; empty: all."""
    help: str = ""

    def __post_init__(self) -> None:
        if self.kind == "choice" and not self.choices:
            raise ConfigError(f"Parameter {self.name!r} is a choice and needs `choices`.")
        if self.choice_labels and len(self.choice_labels) != len(self.choices):
            raise ConfigError(f"Parameter {self.name!r} needs one label for each choice.")
        unknown = [kind for kind in self.tensor_kinds if kind not in set(Kind)]
        if unknown:
            raise ConfigError(f"Parameter {self.name!r} names no kind of tensor: {unknown[0]!r}.")

    @property
    def most_runs(self) -> int:
        """How many runs a list of them may have."""
        return MOST_RUNS if self.maximum is None else min(int(self.maximum), MOST_RUNS)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types, for the wire."""
        facts = asdict(self)
        if self.kind == "runs":
            facts["maximum"] = self.most_runs
        return {key: list(value) if isinstance(value, tuple) else value for key, value in facts.items()}

    def check(self, value: Any, run: Run | None = None) -> Any:
        """`value` in the type the view expects.

        Parameters
        ----------
        value
            What a host sent; None means the default.
        run
            Where tensors must exist. A run without any tensor yet accepts every name.

        Raises
        ------
        ConfigError
            When the value does not fit; the message names the parameter and what would fit.
        """
        if value is None:
            return self.default
        return _CHECKS[self.kind](self, value, run)

    def wrong(self, expected: str, value: Any) -> ConfigError:
        """The error for a value that does not fit."""
        return ConfigError(f"Parameter {self.name!r} must be {expected}, not {_shown(value)}.")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _text(param: Param, value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > _MAX_TEXT:
        raise param.wrong(f"a text of 1 to {_MAX_TEXT} characters", value)
    return value


def _known_tensor(param: Param, value: Any, run: Run | None) -> str:
    name = _text(param, value)
    names = [*run.tensor_names(), *run.raw_names()] if run is not None else []
    if names and name not in set(names):
        raise ConfigError(
            f"Parameter {param.name!r}: the run has no tensor {_shown(name)}."
            f"{did_you_mean(name, names, most=3)}"
        )
    return name


def _tensors(param: Param, value: Any, run: Run | None) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    items = _items(param, value, "a list of tensor names")
    return tuple(dict.fromkeys(_known_tensor(param, each, run) for each in items))


def _regex(param: Param, value: Any, _run: Run | None) -> str | None:
    if value == "":
        return None
    text = _text(param, value)
    try:
        simple = len(text) <= _MAX_PATTERN and is_simple(text)  # it must not run for ever
    except (re.error, OverflowError) as error:
        raise ConfigError(f"Parameter {param.name!r} is not a regular expression: {error}.") from None
    if not simple:
        expected = f"at most {MOST_REPEATS} repeats, none within another, and {_MAX_PATTERN} characters"
        raise param.wrong(f"a simple pattern ({expected})", value)
    return text


def _choice(param: Param, value: Any, _run: Run | None) -> str:
    if not isinstance(value, str) or value not in param.choices:
        hint = did_you_mean(value, param.choices, most=3) if isinstance(value, str) else ""
        raise ConfigError(
            f"Parameter {param.name!r} must be one of {', '.join(param.choices)}, not {_shown(value)}.{hint}"
        )
    return str(value)


def _whole(param: Param, value: Any, expected: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or value in _INFINITE:  # noqa: PLR0124 - NaN
        raise param.wrong(expected, value)
    if int(value) != value:
        raise param.wrong(expected, value)
    return int(value)


def _int(param: Param, value: Any, _run: Run | None) -> int:
    low, high = param.minimum, param.maximum
    expected = "a whole number"
    if low is not None and high is not None:
        expected += f" from {low:g} to {high:g}"
    number = _whole(param, value, expected)
    if (low is not None and number < low) or (high is not None and number > high):
        raise param.wrong(expected, value)
    return number


def _bool(param: Param, value: Any, _run: Run | None) -> bool:
    if not isinstance(value, bool):
        raise param.wrong("true or false", value)
    return value


def _step(param: Param, value: Any, _run: Run | None) -> int:
    number = _whole(param, value, "a step (a whole number, 0 or more)")
    if not 0 <= number <= _MAX_STEP:
        raise param.wrong("a step (a whole number, 0 or more)", value)
    return number


def _steps(param: Param, value: Any, run: Run | None) -> tuple[int, ...] | None:
    items = _items(param, value, "a list of steps")
    return tuple(sorted({_step(param, each, run) for each in items})) or None


def _range(param: Param, value: Any, _run: Run | None) -> tuple[float | None, float | None]:
    expected = "a pair [first, last] with first <= last"
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise param.wrong(expected, value)
    for end in value:
        is_number = isinstance(end, (int, float)) and not isinstance(end, bool)
        if end is not None and not (is_number and abs(end) <= _MAX_STEP):
            raise param.wrong(expected, value)
    first, last = value
    if first is not None and last is not None and first > last:
        raise param.wrong(expected, value)
    return first, last


def _other_run(param: Param, value: Any, _run: Run | None) -> Run:
    """Hosts open the run that somebody names: what they may open is theirs to say."""
    if not isinstance(value, Run):
        raise param.wrong("an opened run: tdbg.open_run(path)", value)
    return value


def _other_runs(param: Param, value: Any, run: Run | None) -> tuple[Run, ...] | None:
    items = _items(param, value, "a list of opened runs", param.most_runs)
    opened = [_other_run(param, each, run) for each in items]
    return tuple({each.info.id: each for each in opened}.values()) or None


def _items(param: Param, value: Any, expected: str, most: int = _MAX_ITEMS) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)) or len(value) > most:
        raise param.wrong(f"{expected} (at most {most})", value)
    return value


_INFINITE = (float("inf"), float("-inf"))
_CHECKS = {
    "tensor": _known_tensor,
    "tensors": _tensors,
    "regex": _regex,
    "choice": _choice,
    "int": _int,
    "bool": _bool,
    "step": _step,
    "steps": _steps,
    "range": _range,
    "seconds": _range,
    "run": _other_run,
    "runs": _other_runs,
}
