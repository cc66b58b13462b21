"""A field of an action that takes one text or several."""

from __future__ import annotations

from collections.abc import Iterable

from tdbg_lab.errors import ConfigError

__all__ = ["texts"]


def texts(given: object, field: str, expected: str) -> tuple[str, ...]:
    """What was given, as a tuple; what its items are is for the action to check.

    Raises
    ------
    ConfigError
        It is neither a text nor several: a variable of the environment that is not set is None.
    """
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        raise ConfigError(f"{field} is {given!r}; expected {expected}.")
    return tuple(given)
