"""What a trial reads: the same questions to a run of ours and to a store of the predecessor.

Steps are *global* everywhere, modes are words (``"TRAIN"`` ... ``"GLOBAL"``), workers ``worker_0``.
Nothing here waits.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tdbg_lab.store.smdebug import SmdebugStore, is_smdebug_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["CollectionFacts", "Record", "StoreRecord", "open_record"]


class CollectionFacts(Protocol):
    """A collection as the one who wrote it described it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def include_regex(self) -> Sequence[str]:
        """Its patterns."""

    @property
    def tensor_names(self) -> Sequence[str]:
        """Tensors it names."""

    @property
    def reduction_config(self) -> Mapping[str, Any] | None:
        """What is saved, as JSON."""

    @property
    def save_config(self) -> Mapping[str, Any] | None:
        """When, as JSON."""

    @property
    def save_histogram(self) -> bool:
        """Whether histograms were wanted."""


class Record(Protocol):
    """What was saved. Methods raise `NotFoundError` and `StepNotFoundError` for what was not."""

    num_workers: int
    """Workers that write; 0 while nobody has said so."""
    last_complete_step: int
    """All workers have written it and all before; -1 when there is none."""

    @property
    def ended(self) -> bool:
        """Whether training has ended."""

    @property
    def workers(self) -> list[str]:
        """Workers that saved something, by name."""

    @property
    def collections(self) -> Mapping[str, CollectionFacts]:
        """Collections by name."""

    def refresh(self) -> bool:
        """Read what is new; True when anything changed."""

    def modes(self) -> list[str]:
        """Modes with steps, without GLOBAL."""

    def steps(self, mode: str = "GLOBAL") -> list[int]:
        """Steps in order: global ones, or those counted in `mode`."""

    def mode_step(self, step: int) -> tuple[str, int] | None:
        """Mode of a step and its number in it."""

    def global_step(self, mode: str, mode_step: int) -> int | None:
        """The step that a mode counts so."""

    def step_workers(self, step: int) -> tuple[str, ...]:
        """Workers that have written a step."""

    def names(self, mode: str = "GLOBAL", step: int | None = None) -> list[str]:
        """Tensors in a mode, at a step, by name."""

    def tensor_steps(self, name: str, mode: str = "GLOBAL") -> list[int]:
        """Steps of a tensor, as `steps`."""

    def tensor_workers(self, name: str, step: int) -> list[str]:
        """Workers that saved a tensor at a step."""

    def original_name(self, name: str) -> str | None:
        """What the framework called it, when that is known."""

    def has_value(self, name: str, step: int, worker: str | None = None) -> bool:
        """Whether the values were saved."""

    def value(self, name: str, step: int, worker: str | None = None) -> NDArray[Any]:
        """The values."""

    def values(
        self, name: str, steps: Iterable[int] | None = None, worker: str | None = None
    ) -> dict[int, NDArray[Any]]:
        """The values of several steps, where they were saved."""

    def shape(self, name: str, step: int, worker: str | None = None) -> tuple[int, ...] | None:
        """The shape, when it was saved or follows from the values."""

    def reductions(self, name: str, step: int, worker: str | None = None) -> list[tuple[str, bool]]:
        """Reductions that were saved."""

    def reduction(
        self,
        name: str,
        step: int,
        reduction: str,
        *,
        abs: bool = False,  # noqa: A002
        worker: str | None = None,
    ) -> Any:
        """One of them."""

    def derived(self, name: str, step: int, reduction: tuple[str, bool], worker: str | None) -> Any:
        """A reduction that was not asked for but follows exactly from what was saved; else None."""

    def collections_of(self, name: str) -> tuple[str, ...]:
        """Collections a tensor belongs to."""


class StoreRecord(SmdebugStore):
    """A store that smdebug wrote."""

    def derived(self, _name: str, _step: int, _reduction: tuple[str, bool], _worker: str | None) -> Any:
        """Nothing but what was asked for is kept there."""
        return None


def open_record(path: str | Path) -> Record:
    """What is in a directory.

    Raises
    ------
    NotFoundError
        If there is neither a run nor a store, or not yet.
    """
    if is_smdebug_store(Path(path).expanduser()):
        return StoreRecord(path)
    from tdbg_lab.smdebug.trials.run_record import RunRecord

    return RunRecord(path)
