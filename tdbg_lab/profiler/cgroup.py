"""Limits of the container we run in: control groups of Linux, version 2 and the older version 1."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

__all__ = ["Cgroup", "Container", "OldCgroup", "own_container"]

_MOUNT = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_UNLIMITED_BYTES = 2**60
"""Version 1 says "no limit" by a number about as large as there is."""


class Container(Protocol):
    """What a container may use and uses. Every reading is None where there is no limit."""

    cores: float | None
    """CPU time we may use per second, or None."""
    memory_limit_bytes: int | None

    def cpu_seconds(self) -> float | None:
        """CPU time used so far, s."""

    def memory_used_bytes(self) -> int | None:
        """Memory in use without the page cache that can be given back."""


class Cgroup:
    """A control group of version 2: all controllers in one directory.

    Parameters
    ----------
    root
        Directory of the group.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.cores = self._read_cores()
        limit = _number(root / "memory.max")
        self.memory_limit_bytes = limit or None

    def cpu_seconds(self) -> float | None:
        """CPU time used so far, s."""
        usage = _field(self._root / "cpu.stat", "usage_usec")
        return None if usage is None else usage / 1e6

    def memory_used_bytes(self) -> int | None:
        """Memory in use without the page cache that can be given back."""
        used = _number(self._root / "memory.current")
        cache = _field(self._root / "memory.stat", "inactive_file") or 0
        return None if used is None else max(0, used - cache)

    def _read_cores(self) -> float | None:
        words = _text(self._root / "cpu.max").split()
        if len(words) != 2 or not all(word.isdigit() for word in words) or int(words[1]) == 0:
            return None
        return int(words[0]) / int(words[1])


class OldCgroup:
    """A control group of version 1: a directory for each controller.

    Parameters
    ----------
    memory, cpu, accounting
        Directories of the controllers ``memory``, ``cpu`` and ``cpuacct``; the last two are often one.
    """

    def __init__(self, memory: Path, cpu: Path, accounting: Path) -> None:
        self._memory = memory
        self._accounting = accounting
        quota, period = _number(cpu / "cpu.cfs_quota_us"), _number(cpu / "cpu.cfs_period_us")
        self.cores = quota / period if quota and period else None
        """CPU time we may use per second, or None: the quota is -1 then."""
        limit = _number(memory / "memory.limit_in_bytes")
        self.memory_limit_bytes = limit if limit and limit < _UNLIMITED_BYTES else None

    def cpu_seconds(self) -> float | None:
        """CPU time used so far, s."""
        usage = _number(self._accounting / "cpuacct.usage")
        return None if usage is None else usage / 1e9

    def memory_used_bytes(self) -> int | None:
        """Memory in use without the page cache that can be given back."""
        used = _number(self._memory / "memory.usage_in_bytes")
        cache = _field(self._memory / "memory.stat", "total_inactive_file") or 0
        return None if used is None else max(0, used - cache)


def own_container(mount: Path = _MOUNT, membership: Path = _MEMBERSHIP) -> Container:
    """The control group of this process; without any, one without limits.

    Parameters
    ----------
    mount
        Where the groups are mounted.
    membership
        File that names our group in each hierarchy: a line ``number:controllers:path`` each.
    """
    groups: dict[str, str] = {}
    for line in _text(membership).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        groups.update(dict.fromkeys(controllers.split(","), path))
    if "memory" in groups or "cpu" in groups:
        memory, cpu, accounting = (
            _own(mount / name, groups.get(name, "/"), sign)
            for name, sign in (
                ("memory", "memory.limit_in_bytes"),
                ("cpu", "cpu.cfs_quota_us"),
                ("cpuacct", "cpuacct.usage"),
            )
        )
        return OldCgroup(memory, cpu, accounting)
    return Cgroup(_own(mount, groups.get("", "/"), "memory.max", "cpu.max"))


def _own(mount: Path, path: str, *signs: str) -> Path:
    """Our group below `mount`; a container often sees its own group as the root, whatever its path says."""
    own = mount / path.lstrip("/")
    inside = ".." not in own.parts
    return own if inside and any((own / sign).is_file() for sign in signs) else mount


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _field(path: Path, name: str) -> int | None:
    for line in _text(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.isdigit():
            return int(value)
    return None
