"""Which processes of a distributed training write, and how they find the run that one of them makes."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tdbg_lab.errors import CaptureError, ConfigError
from tdbg_lab.store.info import read_info

if TYPE_CHECKING:
    from tdbg_lab.records import Mode, StatsRows

__all__ = ["Meeting", "Place", "Ranks", "Role", "SilentWriter", "default_place", "made_since", "role"]

Ranks = Literal["all", "first"] | Sequence[int]
"""Which ranks write: all of them, the first, or those listed."""

_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Place:
    """Which process of the training this is."""

    rank: int = 0
    world_size: int = 1


@dataclass(frozen=True, slots=True)
class Role:
    """What a process does for the run."""

    writes: bool
    """Whether its tensors are captured; a process that does not write still stops with the others."""
    chief: bool
    """Whether it makes the run, says how it ends and hears requests: the first one that writes."""


def default_place() -> Place:
    """The place that ``torch.distributed`` or its launcher gives this process."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return Place(int(distributed.get_rank()), int(distributed.get_world_size()))
    return Place(int(os.environ.get("RANK", "0") or 0), int(os.environ.get("WORLD_SIZE", "1") or 1))


def role(ranks: Ranks, place: Place) -> Role:
    """What this process does.

    Raises
    ------
    ConfigError
        `ranks` is neither ``"all"`` nor ``"first"`` nor a list of ranks that exist.
    """
    if ranks == "all":
        return Role(writes=True, chief=place.rank == 0)
    if ranks == "first":
        return Role(writes=place.rank == 0, chief=place.rank == 0)
    listed = list(ranks) if isinstance(ranks, list | tuple | range) else []
    if not listed or any(type(one) is not int or not 0 <= one < place.world_size for one in listed):
        raise ConfigError(
            f"ranks is {ranks!r}; expected 'all', 'first' or a list of ranks "
            f"from 0 to {place.world_size - 1}."
        )
    return Role(writes=place.rank in listed, chief=place.rank == min(listed))


class SilentWriter:
    """The writer of a process that does not write."""

    bytes_written = 0
    raw_left_out = None

    def take_gaps(self) -> list[str]:
        """None."""
        return []

    def append(self, rows: StatsRows) -> None:
        """Nothing."""

    def append_scalars(self, *args: Any, mode: Mode, micro: int = 0) -> None:
        """Nothing."""

    def append_spans(self, *args: Any, **kwargs: Any) -> None:
        """Nothing."""

    def write_raw(self, step: int, tensors: Any, *, mode: Mode, micro: int = 0) -> None:
        """Nothing."""

    def write_failure(self, error: str) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class Meeting:
    """How the processes of one training agree on the run: the chief says it, the others wait for it.

    With a process group it goes over the group's key-value store, which is no collective: a process
    that never attaches makes nobody hang. Without one, the others take the newest run of that
    name that is going on.

    Parameters
    ----------
    request
        What was asked for as the store: the same on all ranks.
    """

    def __init__(self, request: str, place: Place, *, timeout_s: float = 60.0) -> None:
        self._place = place
        self._request = request
        self._timeout_s = timeout_s
        self._store = _group_store() if place.world_size > 1 else None
        if self._store is not None:  # the n-th time here belongs to the n-th time there
            count = self._store.add(f"tdbg-lab/{place.rank}/{request}", 1)
            self._key = f"tdbg-lab/run/{request}/{count}"

    @property
    def connected(self) -> bool:
        """Whether the processes can talk: what `wait` answers is then what the chief said."""
        return self._store is not None

    def announce(self, path: Path, first_step: int) -> None:
        """Say which run it is; the chief does, once it is there."""
        if self._store is not None:
            self._store.set(self._key, json.dumps({"path": str(path), "first_step": first_step}))

    def wait(self, path: Path) -> tuple[Path, int]:
        """The run directory, and the step it begins with.

        Raises
        ------
        CaptureError
            Nobody made it within the time limit.
        """
        if self._store is None:
            return self._newest(path), 0
        try:
            self._store.wait([self._key], timedelta(seconds=self._timeout_s))
            told = json.loads(self._store.get(self._key))
        except (RuntimeError, ValueError) as error:
            raise self._alone(path) from error
        return Path(told["path"]), int(told["first_step"])

    def _newest(self, path: Path) -> Path:
        deadline = time.monotonic() + self._timeout_s
        path = path.absolute()
        while True:
            found = [one for one in _same_name(path) if _going_on(one)]
            if found:
                return max(found, key=lambda one: read_info(one).created_ns)
            if time.monotonic() > deadline:
                raise self._alone(path)
            time.sleep(_POLL_S)

    def _alone(self, path: Path) -> CaptureError:
        return CaptureError(
            f"Rank {self._place.rank} waited {self._timeout_s:g} s for another rank to make the run "
            f"{path.name}; call attach on all ranks, with the same store and the same ranks."
        )


def _group_store() -> Any:
    """The key-value store of the process group; None without one."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    return c10d._get_default_store() if c10d is not None else None  # noqa: SLF001 - there is no other way to it


def made_since(path: Path, since_ns: int) -> list[Path]:
    """The runs of that name, or with numbers behind it, that were made since a moment; oldest first."""
    numbered, found = re.compile(rf"{re.escape(path.name)}(-\d+)*"), {}
    for one in path.parent.iterdir() if path.parent.is_dir() else ():
        if numbered.fullmatch(one.name):
            with suppress(OSError, ValueError):
                found[one] = read_info(one).created_ns
    return sorted((one for one in found if found[one] >= since_ns), key=found.__getitem__)


def _same_name(path: Path) -> list[Path]:
    """``path``, ``path-2``, ``path-3``, ... as far as they are there."""
    found, number = [], 1
    while (one := path if number == 1 else path.with_name(f"{path.name}-{number}")).is_dir():
        found.append(one)
        number += 1
    return found


def _going_on(path: Path) -> bool:
    try:
        return read_info(path).ended_ns is None
    except (OSError, ValueError):
        return False
