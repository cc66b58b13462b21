"""Rows of the stats table in memory: what segments give, and how they are put together."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import Kind, TensorKey
from tdbg_lab.stats.bins import N_BINS
from tdbg_lab.store.limits import MAX_NAME_CHARS, MAX_TENSORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_DESCRIBED = 64
"""Texts of indexes kept."""
REASON = "reason"
LISTS = ("hist_bins", "hist_counts", "channel_zero_frac", "channel_mean")
LIST_DTYPES = {
    "hist_bins": np.uint16,
    "hist_counts": np.uint32,
    "channel_zero_frac": np.float32,
    "channel_mean": np.float32,
}


@dataclass(frozen=True, slots=True)
class Query:
    """Which rows and columns are wanted."""

    mode: int
    """Mode code."""
    tensors: tuple[int, ...] | None
    """Ids; None for all."""
    columns: tuple[str, ...]
    """Columns with one number a row, and columns of lists."""
    first: int = -(2**63)
    last: int = 2**63 - 1
    """Steps, both inclusive."""


@dataclass(slots=True)
class Part:
    """Rows, column by column."""

    tensor: NDArray[np.int64]
    """Id in `Names`."""
    step: NDArray[np.int64]
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    lists: dict[str, tuple[NDArray[np.int64], NDArray[Any]]] = field(default_factory=dict)
    """Lengths ``(n,)`` and values of each column of lists."""

    def take(self, rows: NDArray[np.int64]) -> Part:
        """The rows at these positions."""
        return Part(
            self.tensor[rows],
            self.step[rows],
            {name: values[rows] for name, values in self.columns.items()},
            {name: take_lists(lengths, values, rows) for name, (lengths, values) in self.lists.items()},
        )


def join(parts: Sequence[Part], query: Query) -> Part:
    """All rows of `parts`, in their order."""
    if not parts:
        return _nothing(query)
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return Part(
        np.concatenate([part.tensor for part in parts]),
        np.concatenate([part.step for part in parts]),
        {name: np.concatenate([part.columns[name] for part in parts]) for name in first.columns},
        {
            name: (
                np.concatenate([part.lists[name][0] for part in parts]),
                np.concatenate([part.lists[name][1] for part in parts]),
            )
            for name in first.lists
        },
    )


def number_values(array: Any) -> NDArray[Any]:
    """A numeric column; nulls, which we never write, become 0."""
    if array.null_count:
        array = array.fill_null(0)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def reason_values(array: Any) -> NDArray[Any]:
    """Reasons as objects: text or None."""
    if array.null_count == len(array):
        return np.full(len(array), None, object)
    return np.array([*array.to_pylist(), None], object)[:-1]


def list_values(array: Any, name: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Lengths and values of a column of lists.

    Raises
    ------
    ValueError
        If a bin is none.
    """
    values = number_values(array.flatten())
    if name == "hist_bins" and len(values) and values.max() >= N_BINS:
        raise ValueError("a histogram has a bin that does not exist")
    return number_values(array.value_lengths()).astype(np.int64), values


def check_lists(part: Part) -> None:
    """Columns of lists that belong together must fit.

    Raises
    ------
    ValueError
        If they do not.
    """
    for one, other in (LISTS[:2], LISTS[2:]):
        if one in part.lists and other in part.lists and (part.lists[one][0] != part.lists[other][0]).any():
            raise ValueError(f"{one} and {other} differ in length")


def _nothing(query: Query) -> Part:
    none = np.empty(0, np.int64)
    scalars: dict[str, NDArray[Any]] = {
        name: np.empty(0, object if name == REASON else np.float64)
        for name in query.columns
        if name not in LISTS
    }
    lists = {name: (none, np.empty(0, LIST_DTYPES[name])) for name in query.columns if name in LISTS}
    return Part(none, none, scalars, lists)


def take_lists(
    lengths: NDArray[np.int64], values: NDArray[Any], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Lengths and values of the lists at `rows`."""
    starts = np.cumsum(lengths) - lengths
    chosen = lengths[rows]
    total = int(chosen.sum())
    within = np.arange(total) - np.repeat(np.cumsum(chosen) - chosen, chosen)
    return chosen, values[np.repeat(starts[rows], chosen) + within]


class Names:
    """Ids of the tensors of a run, in the order they were met."""

    def __init__(self) -> None:
        self.keys: list[TensorKey] = []
        self.modes: list[int] = []
        """Bit mask of the modes each tensor was seen in."""
        self.ids: dict[str, int] = {}
        self._described: dict[bytes, NDArray[np.int64]] = {}

    def meant_by(self, name: str) -> list[str]:
        """Names that somebody may have meant by an unknown one; facts for rules if it begins like theirs."""
        facts = name.startswith("check/")
        return [key.name for key in self.keys if facts or key.kind is not Kind.CHECK]

    def seen(self, ids: NDArray[np.int64], modes: int) -> None:
        """The tensors `ids` have rows in `modes`."""
        for i in ids.tolist():
            self.modes[i] |= modes

    def add_described(self, text: bytes) -> NDArray[np.int64]:
        """Ids of the tensors that the index of a sealed segment lists.

        Segments of a run mostly list the same ones: a text is parsed once.

        Raises
        ------
        ValueError
            If the text is broken.
        """
        found = self._described.get(text)
        if found is not None:
            return found
        try:
            described = json.loads(text)
            order = sorted(range(len(described)), key=lambda i: int(described[i][6]))
            ids = np.zeros(len(described), np.int64)
            for i in order:
                ids[i] = self.add(parse_key(described[i][:6]))
        except (TypeError, IndexError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError("a segment has a broken index") from error
        if len(self._described) >= _DESCRIBED:
            self._described.clear()
        self._described[text] = ids
        return ids

    def add(self, key: TensorKey, modes: int = 0) -> int:
        """Id of `key`, which replaces an older description of the same name.

        Raises
        ------
        ValueError
            If a run may not have that many tensors, or not of that name.
        """
        found = self.ids.get(key.name)
        if found is None:
            if len(self.keys) >= MAX_TENSORS:
                raise ValueError(f"more than {MAX_TENSORS} tensors")
            if len(key.name) > MAX_NAME_CHARS:
                raise ValueError(f"a tensor name of {len(key.name)} characters")
            found = self.ids[key.name] = len(self.keys)
            self.keys.append(key)
            self.modes.append(modes)
        else:
            self.keys[found] = key
            self.modes[found] |= modes
        return found


def parse_key(values: Sequence[Any]) -> TensorKey:
    """A tensor's description from untrusted values: the fields of `TensorKey` in order.

    Raises
    ------
    ValueError
        If they cannot be one.
    """
    name, kind, module, dtype, shape, collections = values
    if not isinstance(name, str) or len(name) > MAX_NAME_CHARS or len(str(module)) > MAX_NAME_CHARS:
        raise ValueError("a tensor has no proper name")
    shape = shape if isinstance(shape, list) and len(shape) <= 64 else []
    collections = collections if isinstance(collections, list) and len(collections) <= 256 else []
    return TensorKey(
        name=name,
        kind=Kind(kind),
        module=str(module or ""),
        dtype=str(dtype or "")[:64],
        shape=tuple(int(n) for n in shape if isinstance(n, int)),
        collections=tuple(str(c)[:MAX_NAME_CHARS] for c in collections),
    )
