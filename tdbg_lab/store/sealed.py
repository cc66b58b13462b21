"""A sealed segment of the stats stream: an index in memory, columns from a cache or the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.store.parquet import FooterCache, SealedFile
from tdbg_lab.store.parts import (
    LISTS,
    REASON,
    Names,
    Part,
    Query,
    check_lists,
    list_values,
    number_values,
    reason_values,
    take_lists,
)
from tdbg_lab.store.schema import MODES
from tdbg_lab.store.seal import KEYS_KEY, RUNS_KEY, STEPS_KEY

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tdbg_lab.store.cache import Column, ColumnCache, Groups


class SealedStats:
    """One sealed segment.

    Raises
    ------
    OSError
        If it cannot be opened.
    ValueError
        If it is not a segment of ours.
    """

    def __init__(self, path: Path, names: Names, cache: ColumnCache, footers: FooterCache) -> None:
        self.path = path
        self._file = SealedFile(path, "stats", footers)
        self._cache = cache
        self.uid = self._file.header.uid
        self.problem: str | None = None
        self._steps = self._file.array(STEPS_KEY, "<i8", 3)
        runs = self._file.array(RUNS_KEY, "<i4", 5)
        ids = self._identify(names, runs)
        self._runs = np.column_stack([ids[runs[:, 0]], runs[:, 1:]])
        """Tensor id, mode code, first row, rows, whether it has every step of its mode."""
        self._file.forget_index()

    def poll(self) -> bool:
        """A sealed segment does not change."""
        return False

    def steps(self) -> NDArray[np.int64]:
        """Mode code, step and time_ns, shape ``(S, 3)``."""
        return self._steps

    def read(self, query: Query) -> list[Part]:
        """Rows that `query` asks for.

        Raises
        ------
        OSError, ValueError
            If the file is gone or broken.
        """
        steps = self._steps[self._steps[:, 0] == query.mode, 1]
        if not len(steps) or steps[0] > query.last or steps[-1] < query.first:
            return []
        runs = self._runs[self._runs[:, 1] == query.mode]
        if query.tensors is not None:
            few = len(query.tensors) == 1
            wanted = runs[:, 0] == query.tensors[0] if few else np.isin(runs[:, 0], query.tensors)
            runs = runs[wanted]
        if not len(runs):
            return []
        whole = bool(runs[:, 4].all())
        columns = query.columns if whole else ("step", *query.columns)
        parts = []
        for groups, touched in self._touched(runs, columns):
            first_row = int(self._file.group_starts[groups[0]])
            part = _part(self._decoded(groups, columns), touched, first_row, steps if whole else None, query)
            if len(part.step):
                parts.append(part)
        return parts

    def _touched(
        self, runs: NDArray[np.int64], columns: tuple[str, ...]
    ) -> list[tuple[Groups, NDArray[np.int64]]]:
        """Row groups that hold `runs`, and the runs cut to them.

        One call for neighbours, also with a few others between them: it takes about as long as for one. Not
        of lists, which take most of a segment.
        """
        starts = self._file.group_starts
        begin, end = runs[:, 2], runs[:, 2] + runs[:, 3]
        first = np.searchsorted(starts, begin, side="right") - 1
        last = np.searchsorted(starts, end - 1, side="right") - 1
        touched = sorted(
            {g for a, b in zip(first.tolist(), last.tolist(), strict=True) for g in range(a, b + 1)}
        )
        low, high = touched[0], touched[-1]
        if 2 * len(touched) > high - low + 1 and not set(columns) & {*LISTS, REASON}:
            return [((low, high), np.column_stack([runs, np.zeros(len(runs), np.int64)]))]
        found = []
        for group in touched:
            inside = (first <= group) & (last >= group)
            cut = runs[inside].copy()
            row = np.maximum(cut[:, 2], starts[group])
            cut[:, 3] = np.minimum(cut[:, 2] + cut[:, 3], starts[group + 1]) - row
            skipped = row - cut[:, 2]
            cut[:, 2] = row
            found.append(((group, group), np.column_stack([cut, skipped])))
        return found

    def _decoded(self, groups: Groups, names: tuple[str, ...]) -> dict[str, Column]:
        cached = {name: self._cache.get((self.uid, groups, name)) for name in names}
        found = {name: column for name, column in cached.items() if column is not None}
        missing = [name for name in names if name not in found]
        if missing:
            table = self._file.read(range(groups[0], groups[1] + 1), missing)
            for name in missing:
                found[name] = _column(table[name].combine_chunks(), name)
                self._cache.put((self.uid, groups, name), found[name])
        return found

    def _identify(self, names: Names, runs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ids of the tensors of the index.

        Raises
        ------
        ValueError
            If the index does not describe this file.
        """
        ids = names.add_described(self._file.key_values.get(KEYS_KEY, b""))
        rows = self._file.rows
        ok = (
            len(runs) > 0
            and runs.min() >= 0
            and runs[:, 0].max() < len(ids)
            and runs[:, 1].max() < len(MODES)
            and np.isin(self._steps[:, 0], range(len(MODES))).all()
            and int(runs[:, 3].sum()) == rows
            and bool((runs[:, 2] + runs[:, 3] <= rows).all())
        )
        lengths = np.array([(self._steps[:, 0] == mode).sum() for mode in range(len(MODES))])
        if not ok or (runs[runs[:, 4] > 0, 3] != lengths[runs[runs[:, 4] > 0, 1]]).any():
            raise ValueError(f"{self.path.name} has a broken index")
        for mode in range(len(MODES)):
            names.seen(ids[runs[runs[:, 1] == mode, 0]], 1 << mode)
        return ids


def _column(array: Any, name: str) -> Column:
    """A column as arrays of its own.

    Views of what Arrow has decoded would stay scattered among what it decodes and frees from picture to
    picture, and keep all those pages.
    """
    if name in LISTS:
        lengths, values = list_values(array, name)
        return lengths, values.copy()
    values = reason_values(array) if name == REASON else _own(number_values(array))
    values.flags.writeable = False  # readers get views of what is cached
    return (values,)


def _own(values: NDArray[Any]) -> NDArray[Any]:
    """A copy; of a column that has one value throughout, as counts of NaN mostly have, that value alone."""
    if len(values) and (values == values[0]).all():
        return np.broadcast_to(values[:1].copy(), values.shape)
    return values.copy()


def _part(
    columns: dict[str, Column],
    runs: NDArray[np.int64],
    first_row: int,
    steps: NDArray[np.int64] | None,
    query: Query,
) -> Part:
    """Rows of `runs` (id, mode, first row, rows, whole, rows cut off before); `steps` for whole ones."""
    begin, sizes = runs[:, 2] - first_row, runs[:, 3]
    if (begin[1:] == begin[:-1] + sizes[:-1]).all():
        rows: Any = slice(int(begin[0]), int(begin[-1] + sizes[-1]))
    else:
        rows = np.arange(sizes.sum()) + np.repeat(begin - (np.cumsum(sizes) - sizes), sizes)
    if steps is None:
        step = columns["step"][0][rows]
    elif (sizes == len(steps)).all():
        step = np.tile(steps, len(sizes))
    else:
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        step = steps[within + np.repeat(runs[:, 5], sizes)]
    tensor = np.repeat(runs[:, 0], sizes)
    if query.first > step.min() or query.last < step.max():
        rows = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        chosen = (step >= query.first) & (step <= query.last)
        rows, step, tensor = rows[chosen], step[chosen], tensor[chosen]
    part = Part(tensor, step)
    for name in query.columns:
        if name in LISTS:
            if isinstance(rows, slice):
                rows = np.arange(rows.start, rows.stop)
            part.lists[name] = take_lists(columns[name][0], columns[name][1], rows)
        else:
            part.columns[name] = columns[name][0][rows]
    check_lists(part)
    return part
