"""Which tensors stand in which rows: the same from step to step, so worked out once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.rules.memo import remembered
from tdbg_lab.stats import concat, merge, take

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import Kind, StatsBlock, TensorKey

__all__ = ["Layout", "Plan"]


class Layout:
    """Tensors of the rows of a block, shared by all frames that have the same ones.

    Parameters
    ----------
    keys
        One per row.
    """

    def __init__(self, keys: tuple[TensorKey, ...]) -> None:
        self.keys = keys
        self.memo: dict[Any, Any] = {}
        """What rules worked out of the tensors alone, by keys of their own."""
        self._rows: dict[tuple[Kind, ...], NDArray[np.int64]] = {}

    @cached_property
    def index(self) -> dict[str, int]:
        """Row of each tensor, by name."""
        return {key.name: row for row, key in enumerate(self.keys)}

    @cached_property
    def by_kind(self) -> dict[Kind, NDArray[np.int64]]:
        """Rows of each kind, in order."""
        rows: dict[Kind, list[int]] = {}
        for row, key in enumerate(self.keys):
            rows.setdefault(key.kind, []).append(row)
        return {kind: np.array(found, np.int64) for kind, found in rows.items()}

    @cached_property
    def kinds(self) -> frozenset[Kind]:
        """Kinds that have a row."""
        return frozenset(self.by_kind)

    @remembered
    def matrices(self, kind: Kind) -> NDArray[np.int64]:
        """Rows of a kind whose tensors have two dimensions or more, in order. Not to be written to."""
        return np.array(
            [row for row in self.rows((kind,)).tolist() if len(self.keys[row].shape) > 1], np.int64
        )

    def rows(self, kinds: tuple[Kind, ...]) -> NDArray[np.int64]:
        """Rows of these kinds in order, all of them for none. Not to be written to."""
        found = self._rows.get(kinds)
        if found is None:
            parts = [self.by_kind[kind] for kind in dict.fromkeys(kinds) if kind in self.by_kind]
            empty = np.zeros(0, np.int64)
            found = np.sort(np.concatenate([empty, *parts])) if kinds else np.arange(len(self.keys))
            found.flags.writeable = False
            self._rows[kinds] = found
        return found


class Plan:
    """How what several writes said of one step becomes one block: rows of the same tensor merge.

    Parameters
    ----------
    parts
        Tensors of each write.
    place
        Place of each tensor in the order of first appearance, by name.
    """

    def __init__(self, parts: Sequence[tuple[TensorKey, ...]], place: Mapping[str, int]) -> None:
        self.parts = tuple(parts)
        first: dict[str, TensorKey] = {}
        for key in (key for part in parts for key in part):
            first.setdefault(key.name, key)
        names = {name: group for group, name in enumerate(first)}
        groups = [names[key.name] for part in parts for key in part]
        self._groups = None if len(names) == len(groups) else groups
        self._count = len(names)
        places = np.array([place[name] for name in names], np.int64)
        self._order = None if np.all(places[1:] > places[:-1]) else np.argsort(places, kind="stable")
        keys = tuple(first.values())
        self.layout = Layout(keys if self._order is None else tuple(keys[row] for row in self._order))

    def apply(self, blocks: Sequence[StatsBlock]) -> StatsBlock:
        """Make one block of one per write."""
        block = concat(blocks)
        if self._groups is not None:
            block = merge(block, self._groups, self._count)
        return block if self._order is None else take(block, self._order)
