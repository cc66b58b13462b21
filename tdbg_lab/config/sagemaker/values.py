"""Single values of SageMaker Debugger's files: most of them may be written as texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tdbg_lab.config.checking import article, closest
from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_keys", "mapping_of", "number", "patterns", "seconds", "steps", "switch", "text", "texts"]

_SWITCHES = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def check_keys(given: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Refuse keys that `where` does not have.

    Raises
    ------
    ConfigError
        Naming the first of them, and the nearest one that there is.
    """
    valid = list(known)
    for key in given:
        if key not in valid:
            near = closest(key, valid)
            raise ConfigError(f"{where} has no key {key!r}; expected one of {', '.join(valid)}{near}.")


def mapping_of(given: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An object within `given`; nothing and null are an empty one.

    Raises
    ------
    ConfigError
        It is something else.
    """
    found = given.get(key)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ConfigError(f"{key} is {article(found)}; expected an object.")
    return {str(name): value for name, value in found.items()}


def number(key: str, value: Any, *, least: int = 0) -> int:
    """A whole number, or a text of one.

    Raises
    ------
    ConfigError
        It is none, or below `least`.
    """
    plain = value.strip() if isinstance(value, str) else value
    whole = isinstance(plain, int) and not isinstance(plain, bool)
    if not whole and not (isinstance(plain, str) and re.fullmatch(r"\d{1,18}", plain)):
        raise ConfigError(f"{key} is {article(value)}; expected a whole number.")
    if int(plain) < least:
        raise ConfigError(f"{key} is {article(value)}; expected at least {least}.")
    return int(plain)


def seconds(key: str, value: Any) -> float:
    """A number that is not negative, or a text of one.

    Raises
    ------
    ConfigError
        It is none.
    """
    try:
        found = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ConfigError(f"{key} is {article(value)}; expected a number that is not negative.")
    return found


def switch(key: str, value: Any) -> bool:
    """True or false, or a text of one.

    Raises
    ------
    ConfigError
        It is neither.
    """
    found = value if isinstance(value, bool) else _SWITCHES.get(str(value).strip().lower())
    if found is None:
        raise ConfigError(f"{key} is {article(value)}; expected true or false.")
    return bool(found)


def text(key: str, value: Any) -> str:
    """A text.

    Raises
    ------
    ConfigError
        It is something else.
    """
    if not isinstance(value, str):
        raise ConfigError(f"{key} is {article(value)}; expected a text.")
    return value


def texts(key: str, value: Any) -> tuple[str, ...]:
    """A list of texts, or one text with commas between them.

    Raises
    ------
    ConfigError
        It is something else.
    """
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(isinstance(one, str) for one in listed):
        raise ConfigError(f"{key} is {article(value)}; expected texts, with commas between.")
    return tuple(one.strip() for one in listed if one.strip())


def patterns(key: str, value: Any) -> tuple[str, ...]:
    """Regular expressions, as `texts`.

    Raises
    ------
    ConfigError
        One of them is none.
    """
    found = texts(key, value)
    for one in found:
        try:
            re.compile(one)
        except re.error as error:
            raise ConfigError(f"{key} is {one!r}; expected a regular expression ({error}).") from None
    return found


def steps(key: str, value: Any) -> tuple[int, ...]:
    """Step numbers: a list, one number, or a text with commas between them.

    Raises
    ------
    ConfigError
        One of them is none.
    """
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    try:
        return tuple(number(key, one) for one in listed if not isinstance(one, str) or one.strip())
    except ConfigError:
        raise ConfigError(f"{key} is {article(value)}; expected steps, with commas between.") from None
