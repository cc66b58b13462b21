"""Taking a name on an object store: no run ever writes over another one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tdbg_lab.errors import ConflictError
from tdbg_lab.store.remote.keys import RUN_KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.store.remote.objects import Objects
    from tdbg_lab.store.remote.url import StoreUrl

__all__ = ["claim", "run_id", "sibling"]

_MOST_NAMES = 1000


def claim(url: StoreUrl, run_json: bytes, connect: Callable[[StoreUrl], Objects]) -> tuple[Objects, StoreUrl]:
    """Take `url` for a run, or the first free of ``url-2``, ``url-3``, ... when another run is there.

    The same run gets the same place again.

    Raises
    ------
    RemoteError
        If the object store cannot be asked or written to.
    ConflictError
        If there is no free name.
    """
    mine = run_id(run_json)
    for number in range(1, _MOST_NAMES):
        place = sibling(url, number)
        objects = connect(place)
        if objects.create(RUN_KEY, run_json):
            return objects, place
        theirs = objects.get(RUN_KEY)
        if theirs is not None and mine is not None and run_id(theirs) == mine:
            return objects, place
    raise ConflictError(f"{url} and its {_MOST_NAMES} next names are taken; choose another.")


def sibling(url: StoreUrl, number: int) -> StoreUrl:
    """The place with the `number`-th name: ``first``, ``first-2``, ``first-3``, ..."""
    return url if number == 1 else url.parent.child(f"{url.name}-{number}")


def run_id(run_json: bytes) -> str | None:
    """The id in a ``run.json``; None when it is none of ours."""
    try:
        value = json.loads(run_json)
    except (ValueError, RecursionError):
        return None
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None
