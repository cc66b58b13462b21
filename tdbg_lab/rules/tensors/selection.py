"""Which tensors a classic condition inspects: those of collections and those with names like a pattern."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tdbg_lab.records import TensorKey
    from tdbg_lab.rules.frame import Frame, Row
    from tdbg_lab.rules.view import RunView

__all__ = ["chosen", "selected", "why_nothing"]

_DERIVED = ("optimizer", "cost", "check")


def chosen(key: TensorKey, collection_names: str | None, regex: str | None) -> bool:
    """Whether a tensor is inspected: the union of both; without, all but our own facts."""
    if collection_names is None and regex is None:
        return str(key.kind) not in _DERIVED
    names = {name.strip() for name in (collection_names or "").split(",")}
    if not names.isdisjoint(key.collections):
        return True
    return regex is not None and re.search(regex, key.name) is not None


def selected(
    frame: Frame, collection_names: str | None, regex: str | None
) -> Iterator[tuple[TensorKey, Row]]:
    """Each inspected tensor of a frame that has elements."""
    for key, row in frame.items():
        if row.count and chosen(key, collection_names, regex):
            yield key, row


def why_nothing(run: RunView, collection_names: str | None, regex: str | None) -> str:
    """Why nothing recorded so far can be inspected, or ``""``."""
    if any(chosen(key, collection_names, regex) for key in run.tensors()):
        return ""
    wanted = [f"collection {collection_names}"] if collection_names else []
    wanted += [f"a name like {regex!r}"] if regex else []
    return f"No tensor of {' or '.join(wanted) or 'any kind'} was recorded so far."
