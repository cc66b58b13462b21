"""The machines that a training runs on, as the sampler of each rank found them: ``rank-*/machine.json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from tdbg_lab.store.layout import list_ranks, read_json, write_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MachineFacts", "read_machines", "write_machine"]

_FILE: Final = "machine.json"
_MAX_BYTES = 2**16
_MAX_GPUS = 256
_MAX_CHARS = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineFacts:
    """What the sampler of one rank reads."""

    rank: int = 0
    host: str = ""
    """Name of the machine in its network."""
    interval_s: float = 0.5
    """Time between two samples, s."""
    gpus: tuple[str, ...] = ()
    """Its GPUs that are read, by their names in the samples."""
    problem: str = ""
    """Why some or all GPUs cannot be read, in a sentence; empty when all can."""


def write_machine(rank_path: Path, facts: MachineFacts) -> None:
    """Write the facts of one rank.

    Raises
    ------
    StoreError
        If they cannot be written.
    """
    write_json(rank_path / _FILE, asdict(facts))


def read_machines(run_path: Path) -> list[MachineFacts]:
    """The facts of all ranks, by rank; what cannot be read is left out."""
    found: list[MachineFacts] = []
    for rank, directory in list_ranks(run_path):
        try:
            found.append(_facts(rank, read_json(directory / _FILE, _MAX_BYTES)))
        except (OSError, ValueError):
            continue
    return found


def _facts(rank: int, value: dict[str, Any]) -> MachineFacts:
    gpus, interval = value.get("gpus"), value.get("interval_s")
    return MachineFacts(
        rank=rank,
        host=_text(value.get("host")),
        interval_s=float(interval) if isinstance(interval, int | float) and 0 < interval < 1e6 else 0.5,
        gpus=tuple(_text(one) for one in gpus[:_MAX_GPUS]) if isinstance(gpus, list) else (),
        problem=_text(value.get("problem")),
    )


def _text(value: object) -> str:
    return value[:_MAX_CHARS] if isinstance(value, str) else ""
