"""One sentence for what is wrong with a setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from tdbg_lab.config.schedule import SaveSchedule
from tdbg_lab.config.strict import StrictModel
from tdbg_lab.errors import ConfigError
from tdbg_lab.nearest import nearest
from tdbg_lab.records import Kind, Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["article", "closest", "validated"]

_VALUES = tuple(one.value for several in (Kind, Mode) for one in several)

_M = TypeVar("_M", bound=StrictModel)


def validated(model: type[_M], data: Mapping[str, Any], *, where: str = "") -> _M:
    """A model of the data.

    Raises
    ------
    ConfigError
        With one sentence for the first thing that is wrong; `where` stands before its key.
    """
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        raise ConfigError(_sentence(model, error, where)) from None


def _sentence(model: type[StrictModel], error: ValidationError, where: str) -> str:
    """One sentence for the first thing that is wrong."""
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"] if not _is_noise(str(part))]
    key = ".".join([where, *path] if where else path) or model.__name__
    found = first["input"]
    if first["type"] == "extra_forbidden":
        valid = list(model.model_fields) if len(path) == 1 else list(SaveSchedule.model_fields)
        near = closest(path[-1] if path else "", valid)
        return f"{key} is not a setting; expected one of {', '.join(valid)}{near}."
    if first["type"] == "missing":
        return f"{key} is missing; it is required."
    hint = closest(found, _VALUES) if first["type"] == "literal_error" else ""
    expected = first["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    expected = expected.removeprefix("Value error, ")
    return f"{key} is {article(found)}; expected {expected}{hint}."


def _is_noise(part: str) -> bool:
    """Parts of pydantic's path that name its own machinery."""
    return part.startswith(("function-", "constrained-", "tuple[", "nullable")) or part == "[key]"


def article(value: Any) -> str:
    """What was found: the value when it is short, and its type."""
    shown = repr(value)
    kind = type(value).__name__
    return f"{shown} ({kind})" if len(shown) <= 60 else f"an object of type {kind}"


def closest(name: Any, valid: Any) -> str:
    """A question for the nearest valid name; ``""`` when none is near."""
    near = nearest(str(name), [str(one) for one in valid], cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""
