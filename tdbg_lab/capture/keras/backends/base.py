"""What a backend of Keras has to offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from tdbg_lab.capture.keras.seen import Seen
    from tdbg_lab.capture.keras.watch import Sink
    from tdbg_lab.records import LossKind, Mode, StatsBlock

__all__ = ["Backend", "Watcher"]


class Watcher(Protocol):
    """Opens the watch on a pass; given to a backend by the session."""

    def __call__(self, sink: Sink | None, *, apply: bool) -> AbstractContextManager[None]:
        """Tell `sink` what happens within the ``with`` block; updates happen only with `apply`."""


class Backend(Protocol):
    """How values are read and steps are seen."""

    name: str
    cheap_peek: bool
    """Whether a step may be looked ahead to whatever is saved."""

    def eager(self, model: Any) -> bool:
        """Whether Keras runs the step eagerly, so that it can be watched itself."""

    def unseen(self, model: Any) -> str:
        """Why outputs and gradients of this model cannot be seen; ``""`` when they can."""

    def is_tensor(self, value: Any) -> bool:
        """Whether `value` is a dense tensor of this backend."""

    def described(self, value: Any) -> tuple[str, tuple[int, ...]]:
        """Name of the dtype, and shape."""

    def array(self, value: Any) -> NDArray[Any]:
        """The value on the host; it may share memory with the tensor."""

    def at_hand(self, value: Any) -> NDArray[Any] | None:
        """The value, where it is on the host and need not be waited for; None else."""

    def few(self, value: Any) -> NDArray[np.float64]:
        """Some values of a weight, on the host; waits."""

    def left(self, values: Sequence[Any]) -> Sequence[Any]:
        """What is remembered of each weight after a step, without waiting; None where that would be dear."""

    def replaced(self, value: Any, left: Any) -> NDArray[np.float64] | None:
        """What some values were, if they are not known to be still what was `left`; None if they are."""

    def summarize(self, values: Sequence[Any], axes: Sequence[int | None]) -> StatsBlock:
        """Statistics, one row each."""

    def given_probabilities(self, value: Any, kind: LossKind) -> LossKind:
        """What a loss takes the predictions for: some backends find the logits behind probabilities."""

    def peek(self, model: Any, mode: Mode, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """The batch that comes next, and arguments for Keras's function that still hold it.

        Raises
        ------
        StopIteration
            There is no further batch.
        """

    def build(self, model: Any, mode: Mode, batch: Any, watcher: Watcher) -> None:
        """Build a model that Keras would only build within the step."""

    def look(
        self,
        model: Any,
        mode: Mode,
        args: tuple[Any, ...],
        batch: Any,
        watcher: Watcher,
        *,
        inputs: bool,
    ) -> Seen:
        """Compute outputs, losses and gradients of `batch`; nothing of the training's state changes.

        What layers take is only brought out with `inputs`.
        """

    def before(self, model: Any, args: tuple[Any, ...]) -> Callable[[Any], Any]:
        """Reads variables as they are before a train step."""

    def after(self, model: Any, result: Any) -> Callable[[Any], Any]:
        """Reads variables as they are after a train step."""

    def logs(self, result: Any) -> Any:
        """The logs in what Keras's function returned."""

    def kept(self, values: Sequence[Any]) -> Any:
        """Small values that stay as they are whatever the next step does; read later by `numbers`."""

    def numbers(self, kept: Any) -> list[float]:
        """The numbers behind `kept`; waits for the device."""

    def ready(self, kept: Any) -> bool:
        """Whether `numbers` would not have to wait."""
