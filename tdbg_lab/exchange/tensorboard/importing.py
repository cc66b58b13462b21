"""Reads event files as a run."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tdbg_lab.errors import ConfigError
from tdbg_lab.exchange.building import RowBuffer, begin, finish
from tdbg_lab.exchange.tensorboard.buckets import block_of
from tdbg_lab.exchange.tensorboard.events import Histogram, read_event
from tdbg_lab.exchange.tensorboard.records import BrokenFileError, read_records
from tdbg_lab.records import Kind, Mode
from tdbg_lab.store import RankWriter
from tdbg_lab.store.limits import MAX_NAME_CHARS, MAX_TENSORS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tdbg_lab.exchange.tensorboard.events import Item
    from tdbg_lab.store import RunFolder

__all__ = ["read"]

_MODES = {
    "train": Mode.TRAIN,
    "training": Mode.TRAIN,
    "eval": Mode.EVAL,
    "evaluation": Mode.EVAL,
    "val": Mode.EVAL,
    "valid": Mode.EVAL,
    "validation": Mode.EVAL,
    "test": Mode.EVAL,
    "predict": Mode.PREDICT,
}
_LOSS = re.compile(r"(^|[/_.\-])loss([/_.\-]|$)", re.IGNORECASE)
_MAX_ROWS = 20_000_000


class _Reading:
    """What is known while event files are read. The run is made with its first value."""

    def __init__(self, make: Callable[[], RunFolder]) -> None:
        self.folder: RunFolder | None = None
        self.rows = 0
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.last_step = -1
        self.repeated = 0
        self.too_many = 0
        self.problems: list[str] = []
        self._make = make
        self._writer: RankWriter | None = None
        self._buffers: dict[Mode, RowBuffer] = {}
        self._names: dict[tuple[Mode, str], int] = {}
        self._seen: set[tuple[int, int]] = set()

    def add(self, item: Item, mode: Mode, prefix: str) -> None:
        """Add a value, unless there was one of this tag and step before."""
        name = f"{prefix}{item.tag}"[:MAX_NAME_CHARS]
        if (mode, name) not in self._names and len(self._names) >= MAX_TENSORS:
            self.too_many += 1
            return
        number = self._names.setdefault((mode, name), len(self._names))
        if (number, item.step) in self._seen:
            self.repeated += 1
            return
        self._seen.add((number, item.step))
        self.rows += 1
        self.last_step = max(self.last_step, item.step)
        self.first_ns = item.time_ns if self.first_ns is None else min(self.first_ns, item.time_ns)
        self.last_ns = max(self.last_ns or 0, item.time_ns)
        found = item.value
        if isinstance(found, Histogram):
            value, kind = block_of(found.left, found.right, found.counts, found.known), Kind.CUSTOM
            self._buffer(mode).add(name, kind, item.step, item.time_ns, value)
        else:
            kind = Kind.LOSS if _LOSS.search(name) else Kind.SCALAR
            self._buffer(mode).add(name, kind, item.step, item.time_ns, found)

    def _buffer(self, mode: Mode) -> RowBuffer:
        if self._writer is None:
            self.folder = self._make()
            self._writer = RankWriter(self.folder.path)
        if mode not in self._buffers:
            self._buffers[mode] = RowBuffer(self._writer, mode)
        return self._buffers[mode]

    def close(self) -> None:
        """Write what waits, seal, and say what was read."""
        if self.folder is None or self._writer is None:
            return
        for buffer in self._buffers.values():
            buffer.flush()
        self._writer.close()
        finish(
            self.folder,
            created_ns=self.first_ns,
            ended_ns=self.last_ns,
            last_step=self.last_step,
            notes=_notes(self),
        )


def read(
    files: Sequence[Path], root: Path, store: Path, name: str, progress: Callable[[float], None]
) -> Path:
    """Make a run of event files, see `tdbg_lab.exchange.import_run`.

    A folder named like a mode (``train``, ``validation``) gives the mode; other folders become the
    beginning of the names.

    Raises
    ------
    ConfigError
        No file holds a scalar or a histogram.
    """
    reading = _Reading(lambda: begin(store, name=name, framework="tensorboard", source="tensorboard"))
    sizes = [file.stat().st_size for file in files]
    done = 0
    try:
        for file, size in zip(files, sizes, strict=True):
            mode, prefix = _place(file, root)
            _read_file(reading, file, mode, prefix)
            done += size
            progress(done / max(1, sum(sizes)))
    finally:
        reading.close()
    if reading.folder is None:
        why = f" ({reading.problems[0]})" if reading.problems else ""
        raise ConfigError(f"{files[0].name} holds no scalar and no histogram{why}.")
    return reading.folder.path


def _place(file: Path, root: Path) -> tuple[Mode, str]:
    """Mode and beginning of the names, by the folders below the root."""
    parts = list(file.parent.relative_to(root).parts) or [root.name]
    mode = next((_MODES[part.lower()] for part in parts if part.lower() in _MODES), Mode.TRAIN)
    if file.parent == root:
        return mode, ""
    rest = [part for part in parts if part.lower() not in _MODES]
    return mode, "".join(f"{part}/" for part in rest)


def _read_file(reading: _Reading, file: Path, mode: Mode, prefix: str) -> None:
    try:
        with file.open("rb", buffering=2**20) as opened:
            for record in read_records(opened):
                for item in read_event(record):
                    if reading.rows >= _MAX_ROWS:
                        reading.problems.append(f"only the first {_MAX_ROWS} values were taken")
                        return
                    reading.add(item, mode, prefix)
    except BrokenFileError as error:
        reading.problems.append(f"{file.name} was read up to a broken record: {error}")
    except ValueError as error:
        reading.problems.append(f"{file.name} was read up to an event that is none: {error}")
    except OSError as error:
        reading.problems.append(
            f"{file.name} cannot be read: {error.strerror or os.strerror(error.errno or 0)}"
        )


def _notes(reading: _Reading) -> str:
    lines = [f"Imported {reading.rows} values of TensorBoard."]
    if reading.repeated:
        lines.append(f"{reading.repeated} values were left out: their tag had a value at their step before.")
    if reading.too_many:
        lines.append(f"{reading.too_many} values were left out: a run holds no more than {MAX_TENSORS} tags.")
    lines += [f"{problem[:1].upper()}{problem[1:]}." for problem in reading.problems[:20]]
    return " ".join(lines)
