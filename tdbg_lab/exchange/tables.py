"""Statistics and scalars as a table: one row for each tensor, mode and step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.exchange.numbers import is_number
from tdbg_lab.exchange.target import claim_file
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pandas as pd

    from tdbg_lab.exchange.exports import Choice
    from tdbg_lab.run import Run

__all__ = ["COLUMNS", "write_csv", "write_parquet"]

COLUMNS = (
    "time_ns",
    "value",
    "count",
    "nan_count",
    "inf_count",
    "zero_frac",
    "min",
    "max",
    "mean",
    "std",
    "l1",
    "l2",
    "q05",
    "q50",
    "q95",
)
"""Besides ``tensor``, ``kind``, ``mode`` and ``step``; ``value`` is that of tensors with one element: the
mean, where a step has several, as of the batches of an evaluation."""

_ROWS_AT_ONCE = 50_000


def write_csv(
    run: Run, path: Path, choice: Choice, *, force: bool, progress: Callable[[float], None]
) -> None:
    """Write comma-separated text, see `tdbg_lab.exchange.export`."""
    with claim_file(path, force=force) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        header = True
        for frame in _frames(run, choice, progress):
            frame.to_csv(file, index=False, header=header)
            header = False


def write_parquet(
    run: Run, path: Path, choice: Choice, *, force: bool, progress: Callable[[float], None]
) -> None:
    """Write Apache Parquet, see `tdbg_lab.exchange.export`."""
    import pyarrow as pa
    from pyarrow import parquet

    with claim_file(path, force=force) as partial:
        writer = None
        try:
            for frame in _frames(run, choice, progress):
                table = pa.Table.from_pandas(frame, preserve_index=False)
                if writer is None:
                    writer = parquet.ParquetWriter(partial, table.schema, compression="zstd")
                writer.write_table(table.cast(writer.schema))
        finally:
            if writer is not None:
                writer.close()


def _frames(run: Run, choice: Choice, progress: Callable[[float], None]) -> Iterator[pd.DataFrame]:
    """The table in parts: as many tensors at once as have about `_ROWS_AT_ONCE` rows, at least one part."""
    jobs = []
    for mode, chosen in choice.tensors(run):
        names = [key.name for key in chosen]
        at_once = max(1, _ROWS_AT_ONCE // max(1, len(run.steps(mode=mode))))
        jobs += [(mode, names[i : i + at_once]) for i in range(0, len(names), at_once)]
    keys = run.tensors()
    kinds = {key.name: str(key.kind) for key in keys}
    numbers = {key.name for key in keys if is_number(key)}
    for done, (mode, names) in enumerate(jobs or [(Mode.TRAIN, [])], start=1):
        frame = run.stats(names, COLUMNS, mode=mode)
        several = (frame["count"] != 1) & ~frame["tensor"].isin(numbers)
        frame["value"] = frame["value"].mask(several)
        frame.insert(1, "kind", frame["tensor"].map(kinds).astype(object))
        yield frame
        progress(done / max(1, len(jobs)))
