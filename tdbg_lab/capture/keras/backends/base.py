"""What a backend of Keras has to offer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tdbg_lab.capture.keras.entry import EntryRole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from tdbg_lab.capture.keras.checks.modes import PassModes
    from tdbg_lab.capture.keras.compared import Pair
    from tdbg_lab.capture.keras.naming import LayerSite
    from tdbg_lab.capture.keras.watch import Sink
    from tdbg_lab.records import Kind, LossKind, Mode, StatsBlock

__all__ = ["Backend", "Output", "Seen", "Watcher", "backend_named"]


@dataclass(frozen=True, slots=True)
class Output:
    """One tensor that went into a layer or came out of it."""

    site: LayerSite
    kind: Kind
    """``activation`` or ``input``."""
    index: int
    """Over all calls of the layer in this pass, and all tensors of a call."""
    value: Any


@dataclass(slots=True)
class Seen:
    """What one pass showed, in order."""

    outputs: list[Output] = field(default_factory=list)
    gradients: list[tuple[int, Any]] = field(default_factory=list)
    """``id`` of the variable and its gradient, unscaled and clipped."""
    losses: list[Any] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    """What losses were computed of."""
    entry: Any = None
    """What the first layer with weights was called with."""
    role: EntryRole = EntryRole.WEIGHS
    """What that layer does with it."""
    modes: PassModes | None = None
    """What layers were told of training."""


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


def backend_named(name: str) -> Backend | None:
    """The backend of Keras with this name; None when it is not supported."""
    if name == "tensorflow":
        from tdbg_lab.capture.keras.backends.tensorflow import TensorFlowBackend

        return TensorFlowBackend()
    if name == "jax":
        from tdbg_lab.capture.keras.backends.jax import JaxBackend

        return JaxBackend()
    if name == "torch":
        from tdbg_lab.capture.keras.backends.torch import TorchBackend

        return TorchBackend()
    return None
