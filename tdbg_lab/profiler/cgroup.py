"""Limits of the container we run in (cgroup version 2)."""

from __future__ import annotations

from pathlib import Path

__all__ = ["Cgroup"]


class Cgroup:
    """What a container may use and uses. Every reading is None where there is no limit.

    Parameters
    ----------
    root
        Directory of the cgroup; by default that of this process.
    """

    def __init__(self, root: Path | None = None) -> None:
        self._root = _own_root() if root is None else root
        self.cores = self._read_cores()
        """CPU time we may use per second, or None."""
        self.memory_limit_bytes = self._read_memory_limit()

    def cpu_seconds(self) -> float | None:
        """CPU time used so far, s."""
        usage = _field(self._text("cpu.stat"), "usage_usec")
        return None if usage is None else usage / 1e6

    def memory_used_bytes(self) -> int | None:
        """Memory in use without the page cache that can be given back."""
        current = self._text("memory.current")
        if not current.strip().isdigit():
            return None
        return max(0, int(current) - (_field(self._text("memory.stat"), "inactive_file") or 0))

    def _read_cores(self) -> float | None:
        words = self._text("cpu.max").split()
        if len(words) != 2 or not all(word.isdigit() for word in words) or int(words[1]) == 0:
            return None
        return int(words[0]) / int(words[1])

    def _read_memory_limit(self) -> int | None:
        text = self._text("memory.max").strip()
        return int(text) if text.isdigit() and int(text) > 0 else None

    def _text(self, name: str) -> str:
        try:
            return (self._root / name).read_text()
        except (OSError, UnicodeDecodeError):
            return ""


def _own_root() -> Path:
    mount = Path("/sys/fs/cgroup")
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return mount
    for line in lines:
        if line.startswith("0::"):
            own = mount / line[3:].lstrip("/")
            if (own / "memory.max").is_file() or (own / "cpu.max").is_file():
                return own
    return mount


def _field(text: str, name: str) -> int | None:
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.isdigit():
            return int(value)
    return None
