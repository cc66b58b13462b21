"""How the data loaders of a training are set: ``rank-*/loaders.json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from tdbg_lab.store.layout import list_ranks, read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["LoaderFacts", "read_loaders", "write_loaders"]

_FILE: Final = "loaders.json"
_MAX_LOADERS = 16
_MAX_BYTES = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class LoaderFacts:
    """One data loader that training took batches from."""

    rank: int = 0
    kind: str = ""
    """Class of its data set."""
    num_workers: int = 0
    batch_size: int | None = None
    pin_memory: bool = False
    prefetch_factor: int | None = None
    persistent_workers: bool = False
    rows: int | None = None
    """Length of the data set, where it has one."""


def write_loaders(rank_path: Path, facts: Sequence[LoaderFacts]) -> None:
    """Write the facts of one rank.

    Raises
    ------
    StoreError
        If they cannot be written.
    """
    write_json(rank_path / _FILE, {"loaders": [asdict(one) for one in facts[:_MAX_LOADERS]]})


def read_loaders(run_path: Path) -> list[LoaderFacts]:
    """The facts of all ranks, by rank; what cannot be read is left out."""
    found: list[LoaderFacts] = []
    for rank, directory in list_ranks(run_path):
        try:
            loaders = read_json(directory / _FILE, _MAX_BYTES).get("loaders")
        except (OSError, ValueError):
            continue
        rows = loaders if isinstance(loaders, list) else []
        found += [_facts(rank, one) for one in rows[:_MAX_LOADERS] if isinstance(one, dict)]
    return found


def _facts(rank: int, value: dict[str, Any]) -> LoaderFacts:
    return LoaderFacts(
        rank=rank,
        kind=str(value.get("kind", ""))[:200],
        num_workers=_whole(value.get("num_workers")) or 0,
        batch_size=_whole(value.get("batch_size")),
        pin_memory=value.get("pin_memory") is True,
        prefetch_factor=_whole(value.get("prefetch_factor")),
        persistent_workers=value.get("persistent_workers") is True,
        rows=_whole(value.get("rows")),
    )


def _whole(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**62 else None
