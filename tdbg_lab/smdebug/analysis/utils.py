"""Whether trials look for new data before they answer."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tdbg_lab.smdebug.trials.trial import Trial

__all__ = ["no_refresh", "parse_bool", "parse_list_from_str", "refresh"]


@contextmanager
def no_refresh(trials: Trial | Iterable[Trial]) -> Iterator[Any]:
    """Within the ``with`` block trials answer from what they have seen already."""
    with _refreshing(trials, on=False):
        yield trials


@contextmanager
def refresh(trials: Trial | Iterable[Trial]) -> Iterator[Any]:
    """Within the ``with`` block trials look for new data before they answer."""
    with _refreshing(trials, on=True):
        yield trials


@contextmanager
def _refreshing(trials: Trial | Iterable[Trial], *, on: bool) -> Iterator[None]:
    listed: list[Any] = list(trials) if isinstance(trials, (list, tuple, set)) else [trials]
    before = [(one, one.dynamic_refresh) for one in listed]
    for one in listed:
        one.dynamic_refresh = on
    try:
        yield
    finally:
        for one, was in before:
            one.dynamic_refresh = was


def parse_bool(arg: Any, default: bool) -> bool:
    """True or False from a switch or its text; `default` for None.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if arg is None:
        return default
    known = arg if isinstance(arg, bool) else {"true": True, "false": False}.get(str(arg).strip().lower())
    if known is None:
        raise ValueError(f"{arg!r} is neither true nor false.")
    return bool(known)


def parse_list_from_str(arg: Any, delimiter: str = ",") -> list[str]:
    """The parts of a text; a list stays what it is, None is empty."""
    if not arg:
        return []
    return [part.strip() for part in arg.split(delimiter)] if isinstance(arg, str) else list(arg)
