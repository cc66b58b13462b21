"""Thresholds that people set: of the right type, within their range."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from dataclasses import Field
    from typing import ClassVar, Protocol

    class Thresholds(Protocol):
        """A dataclass of thresholds, which a rule is."""

        name: ClassVar[str]
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


__all__ = ["check_range", "check_types", "type_of", "type_words"]

_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "None": (type(None),),
}

_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text"}


def type_of(field: Field[Any]) -> str:
    """How the type of a threshold is written, ``float | None``; a module may postpone annotations or not."""
    annotation: Any = field.type
    if isinstance(annotation, str):
        return annotation
    parts = get_args(annotation) if get_origin(annotation) in {Union, UnionType} else (annotation,)
    return " | ".join(
        "None" if one is NoneType else one.__name__ if type(one) is type else str(one) for one in parts
    )


def type_words(annotation: str) -> str:
    """What a threshold of that type is set to, in words: ``a number or None``."""
    kinds = [part.strip() for part in annotation.split("|")]
    return " or ".join(_WORDS.get(kind, kind) for kind in kinds)


def check_types(rule: Thresholds) -> None:
    """Every field annotated with plain types holds one of them; what is named a regex compiles.

    Raises
    ------
    ConfigError
        At the first that does not.
    """
    for one in fields(rule):
        value = getattr(rule, one.name)
        kinds = [part.strip() for part in type_of(one).split("|")]
        if not all(kind in _TYPES for kind in kinds):
            continue  # a type of the rule's own
        where = f"{rule.name}.{one.name}"
        allowed = {cls for kind in kinds for cls in _TYPES[kind]}
        if type(value) not in allowed or (isinstance(value, float) and math.isnan(value)):
            raise ConfigError(f"{where} is {value!r}; expected {type_words(type_of(one))}.")
        if one.name.endswith("regex") and isinstance(value, str):
            _compile(where, value)


def check_range(
    rule: Thresholds,
    *names: str,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> None:
    """Fields `names` are numbers within bounds; a field that is None is passed over.

    Raises
    ------
    ConfigError
        At the first that is not.
    """
    for name in names:
        value: Any = getattr(rule, name)
        if value is None:
            continue
        fits = (
            (at_least is None or value >= at_least)
            and (above is None or value > above)
            and (at_most is None or value <= at_most)
            and (below is None or value < below)
        )
        if not fits:
            bounds = (("at least", at_least), ("above", above), ("at most", at_most), ("below", below))
            expected = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
            raise ConfigError(f"{rule.name}.{name} is {value!r}; expected a number {expected}.")


def _compile(where: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{where} is {pattern!r}, which is not a regular expression: {error}.") from None
