"""What the profiler of SageMaker Debugger wrote: system metrics, timelines, profiles of Python code.

::

    system/incremental/<hour>/<minute>.algo-<n>.json        samples
    framework/pevents/<hour>/<us>_<node>_<what>_timeline.json     spans
    framework/<node>_<what>timeline.json.tmp                      spans, still being written
    framework/<framework>/<cprofile|pyinstrument>/<node>/<from>_<to>/python_stats[.json|.html]
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tdbg_lab.store.layout import entries, open_regular, subfolder
from tdbg_lab.store.limits import MAX_PROBLEMS
from tdbg_lab.store.schema import SCHEMAS
from tdbg_lab.store.smdebug.bounds import MAX_PROFILE_BYTES, MAX_PROFILE_FILES, MAX_SAMPLES, MAX_SPANS
from tdbg_lab.store.smdebug.samples import Sample, parse_samples, with_totals
from tdbg_lab.store.smdebug.timeline import Span, Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["ProfileFolder", "PythonProfile", "began_ns", "is_profile_folder"]

_SAMPLES = re.compile(r"\d{10}\.algo-\d{1,6}\.json")
_TIMELINE = re.compile(r"(?:\d{1,18}_)?(.{1,256}?)_(?:python|model_|horovod_|smdataparallel_)?timeline\.json")
_MOMENT = re.compile(r"([a-z]{1,40})-(\d{1,18}|\*)-([a-z]{1,40})-(\d{1,18})(?:\.\d*)?")
_BASE = re.compile(rb'"start_time_since_epoch_in_micros": ?(\d{1,17})')
_HEAD_BYTES = 4096
_FIRST_FILES = 16
"""Timelines looked at for when a job began: one a process, the earliest first."""
_OPEN = ".tmp"
_TIME = {"spans": "start_ns", "system": "time_ns"}
_DEPTH = 3
"""Folders between ``framework`` or ``system`` and their files."""
_PROFILERS = ("cprofile", "pyinstrument")


@dataclass(frozen=True, slots=True)
class PythonProfile:
    """A profile of Python code between two moments."""

    profiler: str
    """``cprofile`` or ``pyinstrument``."""
    node: str
    start: tuple[str, str, str, int]
    """Mode, step, phase and time (us since the epoch) of its beginning."""
    end: tuple[str, str, str, int]
    path: Path


@dataclass(slots=True)
class _File:
    """What was read of one file."""

    inode: int
    size: int = 0
    timeline: Timeline = field(default_factory=Timeline)
    tables: list[tuple[int, pa.Table]] = field(default_factory=list)
    """Rank and rows."""


def is_profile_folder(path: Path) -> bool:
    """Whether a folder is what the profiler writes into (``profiler-output``)."""
    system, framework = subfolder(path, "system"), subfolder(path, "framework")
    if system is not None and subfolder(system, "incremental") is not None:
        return True
    return framework is not None and (
        subfolder(framework, "pevents") is not None
        or any(_TIMELINE.fullmatch(entry.name.removesuffix(_OPEN)) for entry in entries(framework))
    )


def began_ns(path: Path) -> int:
    """When the first timeline or sample began, from the beginning of a few files; 0 when none tells."""
    found = []
    system, framework = subfolder(path, "system"), subfolder(path, "framework")
    if system is not None:
        minutes = [int(file.name[:10]) for file in _walk(system, _DEPTH) if _SAMPLES.fullmatch(file.name)]
        found += [min(minutes) * 10**9] if minutes else []
    if framework is not None:
        names = ((file.name.removesuffix(_OPEN), file) for file in _walk(framework, _DEPTH))
        for _, file in sorted((name, file) for name, file in names if _TIMELINE.fullmatch(name))[
            :_FIRST_FILES
        ]:
            match = _BASE.search(_rest(file, 0, _HEAD_BYTES))
            found += [int(match[1]) * 1000] if match else []
    return min(found, default=0)


class ProfileFolder:
    """Samples and spans of one profiler folder, refreshed while it grows. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last_write_ns = 0
        self._files: dict[str, dict[str, _File]] = {"spans": {}, "system": {}}
        self._problems: dict[str, str] = {}
        self._nodes: dict[str, int] = {}
        self._rows = {"spans": 0, "system": 0}
        self._limits = {"spans": MAX_SPANS, "system": MAX_SAMPLES}

    @property
    def problems(self) -> list[str]:
        """What could not be read, and why."""
        return list(self._problems.values())

    def refresh(self) -> bool:
        """Read what is new; True when there was something."""
        changed = self._look("system", subfolder(self.path, "system"), _SAMPLES)
        return self._look("spans", subfolder(self.path, "framework"), _TIMELINE) or changed

    def events(self, stream: str, first_ns: int, last_ns: int) -> list[tuple[int, pa.Table]]:
        """Tables of spans or samples that begin between, both inclusive, with their rank."""
        low, high = (
            pa.scalar(int(ns), pa.int64()) for ns in np.clip([first_ns, last_ns], -(2**63), 2**63 - 1)
        )
        found = []
        for file in self._files[stream].values():
            for rank, table in file.tables:
                time_ns = table[_TIME[stream]]
                inside = pc.and_(pc.greater_equal(time_ns, low), pc.less_equal(time_ns, high))
                found.append((rank, table.filter(inside)))
        return found

    def python_profiles(self) -> list[PythonProfile]:
        """Profiles of Python code, by path; their content is left to the profilers' own tools."""
        framework = subfolder(self.path, "framework")
        found: list[PythonProfile] = []
        for path in sorted(_walk(framework, 4)) if framework is not None else ():
            if path.name.startswith("python_stats") and path.parts[-4] in _PROFILERS:
                first, _, last = path.parent.name.partition("_")
                start, end = _moment(first), _moment(last)
                if start is not None and end is not None:
                    found.append(PythonProfile(path.parts[-4], path.parts[-3], start, end, path))
        return found

    def _look(self, stream: str, folder: Path | None, names: re.Pattern[str]) -> bool:
        known, changed = self._files[stream], False
        seen: set[str] = set()
        for path in _walk(folder, _DEPTH) if folder is not None else ():
            match = names.fullmatch(path.name.removesuffix(_OPEN))
            if match is None or len(seen) >= MAX_PROFILE_FILES:
                continue
            place = str(path)
            seen.add(place)
            try:
                changed = self._read(stream, path, match) or changed
            except OSError as error:  # renamed meanwhile, or not ours to read
                if path.exists():
                    self._problem(path, f"{path.name} cannot be read: {error.strerror or error}.")
        gone = known.keys() - seen
        for place in gone:
            self._rows[stream] -= sum(table.num_rows for _, table in known.pop(place).tables)
        return changed or bool(gone)

    def _read(self, stream: str, path: Path, match: re.Match[str]) -> bool:
        """Read what a file has more than before."""
        facts = path.lstat()
        file = self._files[stream].get(str(path))
        if file is not None and (file.inode != facts.st_ino or facts.st_size < file.size):
            self._rows[stream] -= sum(table.num_rows for _, table in file.tables)
            file = None
        if file is not None and facts.st_size == file.size:
            return False
        file = self._files[stream][str(path)] = file or _File(facts.st_ino)
        if facts.st_size > MAX_PROFILE_BYTES:
            self._problem(path, f"{path.name} is larger than {MAX_PROFILE_BYTES} bytes and is left out.")
            return False
        self.last_write_ns = max(self.last_write_ns, facts.st_mtime_ns)
        return self._take(stream, path, file, match)

    def _take(self, stream: str, path: Path, file: _File, match: re.Match[str]) -> bool:
        data = _rest(path, file.size)
        if stream == "spans":
            file.size += len(data)
            tables = [(self._rank(match[1]), _spans(file.timeline.feed(data, last=path.suffix != _OPEN)))]
            broken = file.timeline.broken
        else:
            data = data[: data.rfind(b"\n") + 1]
            file.size += len(data)
            samples, broken = parse_samples(data)
            tables = _samples(samples)
        if broken:
            self._problem(path, f"{path.name}: {broken} lines are not what the profiler writes; left out.")
        rows = sum(table.num_rows for _, table in tables)
        if self._rows[stream] + rows > self._limits[stream]:
            self._problem(
                path, f"There are more than {self._limits[stream]} {stream}; the others are left out."
            )
            return False
        self._rows[stream] += rows
        file.tables += tables
        return bool(rows)

    def _rank(self, node: str) -> int:
        return self._nodes.setdefault(node, len(self._nodes))

    def _problem(self, path: Path, text: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems[str(path)] = text


def _rest(path: Path, start: int, limit: int = MAX_PROFILE_BYTES) -> bytes:
    with os.fdopen(open_regular(path), "rb") as file:
        file.seek(start)
        return file.read(limit)


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    """Files of a folder and of those below, links left out."""
    for entry in entries(folder):
        if entry.is_file(follow_symlinks=False):
            yield folder / entry.name
        elif depth and entry.is_dir(follow_symlinks=False):
            yield from _walk(folder / entry.name, depth - 1)


def _moment(text: str) -> tuple[str, str, str, int] | None:
    """``train-3-forwardpassend-1620000000000000``: mode, step, phase, time."""
    match = _MOMENT.fullmatch(text)
    return (match[1], match[2], match[3], int(match[4])) if match else None


def _spans(spans: Sequence[Span]) -> pa.Table:
    columns: dict[str, Any] = {name: [getattr(span, name) for span in spans] for name in Span._fields}
    return _table("spans", {**columns, "device": [""] * len(spans)}, len(spans))


def _samples(samples: Sequence[Sample]) -> list[tuple[int, pa.Table]]:
    by_rank: dict[int, list[Sample]] = {}
    for sample in with_totals(samples):
        by_rank.setdefault(sample.rank, []).append(sample)
    fields = Sample._fields[:-1]
    return [
        (rank, _table("system", {name: [getattr(s, name) for s in own] for name in fields}, len(own)))
        for rank, own in sorted(by_rank.items())
    ]


def _table(stream: str, columns: dict[str, Any], n: int) -> pa.Table:
    schema = SCHEMAS[stream]
    columns["seq"] = range(n)
    return pa.table({name: pa.array(columns[name], schema.field(name).type) for name in schema.names}, schema)
