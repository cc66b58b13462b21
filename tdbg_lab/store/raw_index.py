"""Which raw values a run has, refreshed while it grows."""

from __future__ import annotations

import time
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from tdbg_lab.store.attempts import rank_attempts_stamp
from tdbg_lab.store.layout import CLOCK_GRAIN_NS, list_ranks, modified_ns
from tdbg_lab.store.raw import LABELS, RawFile, list_raw, raw_header, read_raw
from tdbg_lab.store.schema import MODE_CODE, mode_code

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tdbg_lab.records import Mode


class RawIndex:
    """Files of raw values and the tensors in them. Headers are read when they are asked for."""

    def __init__(self, run_path: Path) -> None:
        self._run_path = run_path
        self._files: dict[int, list[RawFile]] = {}
        self._stamps: dict[Path, tuple[int, int]] = {}
        self._settled: set[Path] = set()
        """Ranks whose folder was last looked at when its time could no longer hide a change."""
        self._names: dict[tuple[Path, int], frozenset[str]] = {}

    def refresh(self) -> bool:
        """List what is there; True when something changed."""
        stamps: dict[Path, tuple[int, int]] = {}
        files: dict[int, list[RawFile]] = {}
        settled: set[Path] = set()
        for rank, directory in list_ranks(self._run_path):
            written_ns, looked_ns = modified_ns(directory / "raw"), time.time_ns()
            if not written_ns:
                continue
            stamps[directory] = written_ns, rank_attempts_stamp(directory)
            known = self._files.get(rank) if self._stamps.get(directory) == stamps[directory] else None
            files[rank] = known if known and directory in self._settled else list_raw(directory)
            if looked_ns - written_ns > CLOCK_GRAIN_NS:
                settled.add(directory)
        changed = files != self._files or stamps != self._stamps
        self._files, self._stamps, self._settled = files, stamps, settled
        return changed

    def names(self) -> set[str]:
        """Tensors with a raw value at some step; labels are not listed."""
        found = {name for files in self._files.values() for file in files for name in self._names_in(file)}
        return {name for name in found if not name.endswith(LABELS)}

    def files(self, name: str, mode: Mode | str | None, rank: int | None) -> list[RawFile]:
        """Files that hold a tensor. No `mode` means train when there is any, else the first there is."""
        files = [
            file
            for r, listed in self._files.items()
            if rank in {None, r}
            for file in listed
            if name in self._names_in(file)
        ]
        codes = [MODE_CODE[str(file.mode)] for file in files]
        code = mode_code(mode) if mode is not None else min(codes, default=0)
        return [file for file, of in zip(files, codes, strict=True) if of == code]

    def at(self, step: int, rank: int | None = None) -> list[RawFile]:
        """Files of one step, of all ranks or of one."""
        return [
            file
            for of, listed in sorted(self._files.items())
            if rank in {None, of}
            for file in listed[_first(listed, step) : _first(listed, step + 1)]
        ]

    def last_step(self, rank: int) -> int:
        """The last step of which a rank has written any; -1 without one."""
        files = self._files.get(rank)
        return files[-1].step if files else -1

    def has(self, file: RawFile, name: str) -> bool:
        """Whether a file holds a tensor."""
        return name in self._names_in(file)

    def read(self, file: RawFile, name: str) -> NDArray[Any]:
        """Raw value of a tensor in one file; raises as `tdbg_lab.store.raw.read_raw`."""
        return read_raw(file.path, name)

    def column(self, files: Sequence[RawFile], name: str) -> list[NDArray[Any] | None]:
        """Raw values of a tensor in some files; None for those that are gone or cannot be read."""
        return [self._read_or_none(file, name) for file in files]

    def _read_or_none(self, file: RawFile, name: str) -> NDArray[Any] | None:
        try:
            return self.read(file, name)
        except (OSError, ValueError, KeyError):
            return None

    def _names_in(self, file: RawFile) -> frozenset[str]:
        try:
            key = (file.path, file.path.lstat().st_mtime_ns)
        except OSError:
            return frozenset()
        found = self._names.get(key)
        if found is None:
            try:
                found = frozenset(raw_header(file.path))
            except OSError:  # gone, or not to be opened now
                return frozenset()
            except ValueError:  # not a file of ours
                found = frozenset()
            self._names[key] = found
        return found


def _first(files: list[RawFile], step: int) -> int:
    """Place of the first file of `step` or a later one; files are in the order of steps."""
    return bisect_left(files, step, key=lambda file: file.step)
