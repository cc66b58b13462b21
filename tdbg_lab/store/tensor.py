"""One tensor of a run: its raw values, statistics and histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.errors import StepNotFoundError
from tdbg_lab.stats.block import concat, merge, take
from tdbg_lab.store.histogram_columns import KeptColumns
from tdbg_lab.store.parts import LISTS, REASON, Part
from tdbg_lab.store.raw import LABELS
from tdbg_lab.store.results import HistogramSeries
from tdbg_lab.store.schema import SCALARS
from tdbg_lab.store.table import block_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from tdbg_lab.records import Mode, StatsBlock, TensorKey
    from tdbg_lab.store.reader import Reader, Steps

_BLOCK = (*SCALARS, *LISTS, REASON)
_HISTOGRAM = (*SCALARS, *LISTS[:2])
_MERGED_ROWS = 4096
"""Histograms merged at once. Each takes some ten kilobytes meanwhile, and a run has tens of thousands."""
_ONLY_STATISTICS = (
    ' Only its statistics are kept: give its collection {"values": "both"} to keep values, too.'
)


class Tensor:
    """One tensor of a run; reads the state of the run's last refresh."""

    def __init__(self, reader: Reader, key: TensorKey) -> None:
        self._reader = reader
        self.key = key
        self.name = key.name

    def __repr__(self) -> str:
        return f"<Tensor {self.name}: {self.key.kind}, {self.key.dtype} {list(self.key.shape)}>"

    def steps(
        self, mode: Mode | str | None = None, *, steps: Steps | None = None, rank: int | None = None
    ) -> NDArray[np.int64]:
        """Steps with statistics, ascending, shape ``(S,)``; with `steps` those of this range."""
        return self._part((), mode, steps, rank).step

    def value(self, step: int, mode: Mode | str | None = None, rank: int | None = None) -> NDArray[Any]:
        """Raw value at a step; several ranks or micro-steps are joined along the first axis.

        Raises
        ------
        StepNotFoundError
            If it was not saved there.
        """
        return self._raw(self.name, step, mode, rank)

    def labels(
        self, step: int, mode: Mode | str | None = None, rank: int | None = None
    ) -> NDArray[Any] | None:
        """Labels recorded with the value at a step, one per row; None when there are none."""
        try:
            return self._raw(self.name + LABELS, step, mode, rank)
        except StepNotFoundError:
            return None

    def values(self, mode: Mode | str | None = None) -> dict[int, NDArray[Any]]:
        """All raw values by step; what cannot be read is left out."""
        with self._reader.lock:
            files = self._reader.raw.files(self.name, mode, None)
        by_step: dict[int, list[NDArray[Any]]] = {}
        for file, value in zip(files, self._reader.raw.column(files, self.name), strict=True):
            if value is not None:
                by_step.setdefault(file.step, []).append(value)
        return {step: _joined(by_step[step]) for step in sorted(by_step)}

    def stats(self, step: int, *, mode: Mode | str | None = None, rank: int | None = None) -> StatsBlock:
        """Statistics at a step, one row.

        Raises
        ------
        StepNotFoundError
            If there are none.
        """
        part = self._part(_BLOCK, mode, (step, step), rank)
        if not len(part.step):
            raise StepNotFoundError(f"{self.name} has no statistics at step {step}.")
        return block_of(part)

    def history(
        self,
        columns: str | Sequence[str],
        *,
        mode: Mode | str | None = None,
        rank: int | None = None,
        steps: Steps | None = None,
    ) -> pd.DataFrame:
        """`columns` over steps, see `tdbg_lab.run.Run.stats`."""
        columns = [columns] if isinstance(columns, str) else list(columns)
        names = [self.name] if self._known() else []
        return self._reader.frame(names, columns, self._reader.code(mode, self.name), steps=steps, rank=rank)

    def histograms(
        self,
        *,
        mode: Mode | str | None = None,
        steps: Steps | None = None,
        n_out: int | None = None,
        rank: int | None = None,
    ) -> HistogramSeries:
        """Histograms over steps; with `n_out` adjacent steps merge, the first and the last stay alone."""
        if n_out is not None:
            found = self.steps(mode, steps=steps, rank=rank)
            n, most = len(found), max(n_out, 3)
            if n > most:
                inner = (np.arange(n - 2) * (most - 2)) // (n - 2)
                last = np.flatnonzero(np.r_[True, np.diff(inner) > 0, True, True])
                merged = self.histograms_until(found[last], mode=mode, steps=steps, rank=rank)
                return HistogramSeries(found[np.r_[0, last[:-1] + 1]], merged)
        part = self._part(_HISTOGRAM, mode, steps, rank)
        return HistogramSeries(part.step, block_of(part))

    def histograms_until(
        self,
        ends: NDArray[np.int64],
        *,
        mode: Mode | str | None = None,
        steps: Steps | None = None,
        rank: int | None = None,
    ) -> StatsBlock:
        """One row for each of the steps `ends`: its histogram and those since the one before it, merged.

        Takes memory for what it answers and for a few thousand histograms, however many there are.

        Parameters
        ----------
        ends
            Ascending, shape ``(E,)``, at least one.
        """
        return self._merged(ends, mode, steps, rank)[0]

    def _merged(
        self, ends: NDArray[np.int64], mode: Mode | str | None, steps: Steps | None, rank: int | None
    ) -> tuple[StatsBlock, bool]:
        """`histograms_until`, and whether each of its steps could be read."""
        before = np.searchsorted(self.steps(mode, steps=steps, rank=rank), ends, side="right")
        cuts = np.flatnonzero(np.diff(before // _MERGED_ROWS)) + 1
        first = None if steps is None else steps[0]
        blocks, found = [], 0
        with self._reader.lock:  # let go in between, it would wait for a whole picture of others each time
            for some in np.split(ends, cuts):
                part = self._part(_HISTOGRAM, mode, (first, int(some[-1])), rank)
                blocks.append(merge(block_of(part), np.searchsorted(some, part.step), len(some)))
                first = int(some[-1]) + 1
                found += len(part.step)
        return concat(blocks), found == before[-1]

    def histogram_columns(
        self, most: int, *, mode: Mode | str | None = None, rank: int | None = None
    ) -> tuple[NDArray[np.int64], StatsBlock]:
        """All its histograms in at most `most` columns, for one who asks again and again while it grows.

        Each column merges equally many saved steps, a power of two, except the last; of one rank, what is
        complete is kept and only what came since is read. What cannot be read now is asked for again.

        Returns
        -------
        The last step of each column, ascending, shape ``(C,)``, and a row for each.

        Raises
        ------
        ValueError
            If `most` is below 1.
        """
        if most < 1:
            raise ValueError(f"most must be at least 1, not {most}")
        reader = self._reader
        with reader.lock:
            code = reader.code(mode, self.name)
            written = reader.state.steps(rank)
            written = written[written[:, 0] == code]
            place = (self.name, code, rank, most)
            kept = reader.columns.get(place, written)
            after = self._after(kept, mode, rank)
            width = kept.fitting(len(after), most)
            wide = kept.wide(width)
            if len(wide.ends) * width < len(kept.ends) * kept.width:  # the rest of them is read again
                after = self._after(wide, mode, rank)
            kept = wide
            if not len(after):
                return kept.ends, kept.block
            # the last step may still be written to: its column is never kept
            full = (len(after) - 1) // width
            ends = np.r_[after[: full * width][width - 1 :: width], after[-1]]
            first = int(after[0])
            new, complete = self._merged(ends, mode, (first, None), rank)
            ends, block = np.r_[kept.ends, ends], concat([kept.block, new])
            if full and complete and (rank is not None or len(reader.state.ranks) < 2):
                whole = slice(len(ends) - 1)
                reader.columns.put(place, KeptColumns(width, ends[whole], take(block, whole)), written)
        return ends, block

    def _after(self, kept: KeptColumns, mode: Mode | str | None, rank: int | None) -> NDArray[np.int64]:
        """Its saved steps after these columns."""
        first = int(kept.ends[-1]) + 1 if len(kept.ends) else None
        return self.steps(mode, steps=(first, None), rank=rank)

    def _known(self) -> bool:
        return self.name in self._reader.state.names.ids

    def _part(
        self, columns: Sequence[str], mode: Mode | str | None, steps: Steps | None, rank: int | None
    ) -> Part:
        names = [self.name] if self._known() else []  # a tensor may have raw values only
        code = self._reader.code(mode, self.name)
        return self._reader.part(names, code, columns, steps=steps, rank=rank)

    def _raw(self, name: str, step: int, mode: Mode | str | None, rank: int | None) -> NDArray[Any]:
        with self._reader.lock:
            all_files = self._reader.raw.files(name, mode, rank)
        files = [file for file in all_files if file.step == step]
        found = [value for value in self._reader.raw.column(files, name) if value is not None]
        if not found:
            reason = self._why_unread(name, files)
            said = f"cannot be read at step {step}: {reason}" if reason else f"was not saved at step {step}."
            if not all_files:
                said += _ONLY_STATISTICS
            raise StepNotFoundError(f"The value of {self.name} {said}")
        return _joined(found)

    def _why_unread(self, name: str, files: Sequence[Any]) -> str:
        """Why a value that should be there cannot be read; empty when it was not saved."""
        try:
            for file in files[:1]:
                self._reader.raw.read(file, name)
        except KeyError:  # the file of the step holds others
            return ""
        except (OSError, ValueError) as error:
            return str(getattr(error, "strerror", None) or error)
        return ""


def _joined(values: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The values of one step, one behind the other."""
    if len(values) < 2:
        return values[0]
    joinable = all(value.ndim and value.shape[1:] == values[0].shape[1:] for value in values)
    return np.concatenate(values) if joinable else values[0]
