"""The spool: run directories on their way to an object store.

A run in it is an ordinary run directory with a folder ``.upload`` beside its files::

    place.json          where the run goes, and whether this machine has the chief rank
    writer-00000.json   which process writes for a rank
    state.json          what the sender says: what waits, since when it fails and why
    lock                held by the sender

Nothing in it is a secret.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConfigError, StoreError
from tdbg_lab.records import RunStatus
from tdbg_lab.store.info import read_info
from tdbg_lab.store.layout import entries, make_subfolder, read_json, write_json
from tdbg_lab.store.process import ProcessMark
from tdbg_lab.store.remote.lock import FileLock
from tdbg_lab.store.remote.own_folders import byte_limit, folder_sizes, own_folder
from tdbg_lab.store.remote.url import StoreUrl, parse_url

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "SPOOL_VARIABLE",
    "UPLOAD",
    "Spooled",
    "UploadState",
    "spool_path",
    "spool_root",
    "spooled_runs",
    "tidy",
]

SPOOL_VARIABLE = "TDBG_SPOOL"
SIZE_VARIABLE = "TDBG_SPOOL_BYTES"
UPLOAD = ".upload"
"""The folder of the sender in a run directory; hidden, so it is neither read nor sent."""
_PLACE, _STATE, _WRITER = "place.json", "state.json", "writer-"
_MAX_RUNS = 10_000
"""Runs beyond which sent ones are removed: each sender looks through all there are."""


@dataclass(frozen=True, slots=True)
class UploadState:
    """What the sender of a run says."""

    time_ns: int = 0
    waiting_bytes: int = 0
    """Not sent yet, at the last look."""
    sent_bytes: int = 0
    """By this sender."""
    failing_since_ns: int | None = None
    problem: str | None = None
    """Why it does not go on, one sentence."""
    done: bool = False
    """The run has ended and all of it is on the object store."""


@dataclass(frozen=True, slots=True)
class Spooled:
    """A run in the spool."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the directory, which is the last part of the address."""
        return self.path.name

    def place(self) -> tuple[StoreUrl, bool]:
        """Where the run goes, and whether the chief rank is here.

        Raises
        ------
        OSError, ValueError
            If the directory does not say.
        """
        value = read_json(self.path / UPLOAD / _PLACE)
        return parse_url(str(value.get("url", ""))), value.get("chief") is True

    def set_place(self, url: StoreUrl, *, chief: bool) -> None:
        """Say where the run goes; it counts as unsent then.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        folder = make_subfolder(self.path, UPLOAD)
        write_json(folder / _PLACE, {"url": str(url), "chief": chief})
        self.set_state(replace(self.state(), done=False))

    def is_guest(self) -> bool:
        """Whether the chief rank of the run is on another machine."""
        try:
            return not self.place()[1]
        except (OSError, ValueError):
            return False

    def state(self) -> UploadState:
        """What the sender said last."""
        try:
            value = read_json(self.path / UPLOAD / _STATE)
            return UploadState(**value)
        except (OSError, ValueError, TypeError):
            return UploadState()

    def set_state(self, state: UploadState) -> None:
        """Say where the sending stands.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        write_json(self.path / UPLOAD / _STATE, asdict(replace(state, time_ns=time.time_ns())))

    def add_writer(self, rank: int) -> None:
        """Say that this process writes for `rank`: the sender waits for its end.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        folder = make_subfolder(self.path, UPLOAD)
        write_json(folder / f"{_WRITER}{rank:05d}.json", asdict(ProcessMark.own()))

    def writers(self) -> list[int]:
        """Process numbers of those who write into the run and are alive."""
        folder = self.path / UPLOAD
        names = [each.name for each in entries(folder) if each.name.startswith(_WRITER)]
        return [pid for name in names if (pid := _alive(folder / name)) is not None]

    def is_running(self) -> bool:
        """Whether the run has not ended and a process that writes into it is alive."""
        try:
            return read_info(self.path).status is RunStatus.RUNNING and bool(self.writers())
        except (OSError, ValueError):
            return False

    def lock(self) -> FileLock:
        """The lock of the sender, not taken yet."""
        return FileLock(self.path / UPLOAD / "lock")


def spool_root() -> Path:
    """The spool: ``TDBG_SPOOL``, else a folder in the user's cache."""
    return own_folder(SPOOL_VARIABLE, "spool")


def spool_path(url: StoreUrl) -> Path:
    """The directory in the spool for a run; its name is the last part of the address.

    Raises
    ------
    ConfigError
        If `url` names a bucket, not a folder in it.
    """
    if not url.path:
        raise ConfigError(
            f"{url} is a whole bucket; expected a folder for the run, such as {url}/runs/first."
        )
    digest = hashlib.sha256(str(url.parent).encode()).hexdigest()[:12]
    return spool_root() / digest / url.name


def spooled_runs() -> Iterator[Spooled]:
    """All runs in the spool, sent or not."""
    for group in sorted(entries(spool_root()), key=lambda each: each.name):
        for each in sorted(entries(Path(group.path)), key=lambda each: each.name):
            if (Path(each.path) / UPLOAD / _PLACE).is_file():
                yield Spooled(Path(each.path))


def tidy() -> None:
    """Remove runs that are sent completely, those sent longest ago first, while the spool holds too much."""
    limit = byte_limit(SIZE_VARIABLE)
    sizes = {spooled: sum(folder_sizes(spooled.path)) for spooled in spooled_runs()}
    total, count = sum(sizes.values()), len(sizes)
    for spooled in sorted(sizes, key=lambda each: each.state().time_ns):
        if total <= limit and count <= _MAX_RUNS:
            return
        lock = spooled.lock()
        try:
            gone = spooled.state().done and not spooled.writers() and lock.acquire()
        except StoreError:  # nobody could say that he needs it
            return
        if gone:
            shutil.rmtree(spooled.path, ignore_errors=True)
            lock.release()
            total -= sizes[spooled]
            count -= 1


def _alive(file: Path) -> int | None:
    """Number of the process a file names, if it lives; told by number and time of creation."""
    try:
        value: dict[str, Any] = read_json(file)
        mark = ProcessMark(
            int(value["pid"]), float(value["created_s"]), float(value.get("since_boot_s", 0.0))
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return mark.pid if mark.find() is not None else None
