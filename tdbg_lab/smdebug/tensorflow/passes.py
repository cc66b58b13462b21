"""What a pass through a Keras model shows, until the hook knows the names of all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.capture.keras.checks.modes import PassModes
from tdbg_lab.capture.keras.sinks import CallCounter, applied
from tdbg_lab.capture.many_calls import MAX_CALLS
from tdbg_lab.records import Kind
from tdbg_lab.smdebug.tensorflow.names import gradient_name
from tdbg_lab.stats import summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.capture.keras.naming import LayerSite
    from tdbg_lab.capture.keras.seen import Seen
    from tdbg_lab.records import StatsBlock

__all__ = ["Pass", "Taken"]


@dataclass(frozen=True, slots=True)
class Taken:
    """A tensor, reduced when it was seen, because the training may change it afterwards."""

    dtype: str
    shape: tuple[int, ...]
    block: StatsBlock
    values: NDArray[Any] | None
    """A copy of its values, when they are wanted."""

    @classmethod
    def of(cls, backend: Backend, value: Any, *, values: bool) -> Taken:
        """From a tensor of the backend, or an array."""
        if not backend.is_tensor(value):
            value = np.asarray(value)
            return cls(str(value.dtype), value.shape, summarize([value]), value.copy() if values else None)
        dtype, shape = backend.described(value)
        block = backend.summarize([value], [None])
        return cls(dtype, shape, block, np.array(backend.array(value)) if values else None)


class Pass:
    """Collects one pass; it is the sink of `tdbg_lab.capture.keras.watch.watch`.

    Parameters
    ----------
    wants
        Whether a tensor called so is saved at this step, and whether its values are needed for it.
    name_of
        Name of a variable, by ``id``.
    batch
        Whether a batch is seen beside it, whose tensors are the model's ``inputs``.
    """

    def __init__(
        self,
        backend: Backend,
        wants: Callable[[str], tuple[bool, bool]],
        name_of: Callable[[int], str | None],
        *,
        batch: bool = True,
    ) -> None:
        self.modes = PassModes()
        self._backend = backend
        self._batch = batch
        self._wants = wants
        self._name_of = name_of
        self._counter = CallCounter(backend, inputs=True)
        self._layers: dict[tuple[str, Kind, str], list[Taken]] = {}
        self._gradients: dict[str, Taken] = {}

    def output(self, site: LayerSite, inputs: Any, output: Any) -> None:
        """A layer was called."""
        for kind, index, value in self._counter.tensors(site, inputs, output):
            if index < MAX_CALLS:
                self._take(site, kind, value)

    def _take(self, site: LayerSite, kind: Kind, value: Any) -> None:
        name = _layer_name(site, kind)
        if name == "inputs" and self._batch:
            return
        saved, values = self._wants(name)
        indexed, more = self._wants(f"{name}_{len(self._layers.get((name, kind, site.module), ()))}")
        if saved or indexed:
            taken = Taken.of(self._backend, value, values=values or more)
            self._layers.setdefault((name, kind, site.module), []).append(taken)

    def loss(self, _value: Any) -> None:
        """The loss comes with the logs."""

    def compared(self, _model: Any, _y: Any, _y_pred: Any) -> None:
        """What losses compare is for rules that the predecessor had not."""

    def gradients(
        self, optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any] | None, state: Any
    ) -> None:
        """Gradients are about to be applied."""
        owned = optimizer._trainable_variables if variables is None else variables  # noqa: SLF001
        values = applied(optimizer, gradients, state)
        self.take_gradients((id(one), value) for one, value in zip(owned, values, strict=True))

    def take_gradients(self, found: Iterable[tuple[int, Any]]) -> None:
        """Take gradients by ``id`` of their variables."""
        for variable, value in found:
            of = self._name_of(variable)
            if value is None or of is None:
                continue
            name = gradient_name(of)
            saved, values = self._wants(name)
            if saved:
                self._gradients[name] = Taken.of(self._backend, value, values=values)

    def take_seen(self, seen: Seen) -> None:
        """Take what a second function saw."""
        for one in seen.outputs:
            self._take(one.site, one.kind, one.value)
        self.take_gradients(seen.gradients)

    def found(self) -> Iterator[tuple[str, Kind, str, Taken]]:
        """Name, kind, module and tensor of all that was seen."""
        for (name, kind, module), tensors in self._layers.items():
            several = len(tensors) > 1
            for index, taken in enumerate(tensors):
                yield f"{name}_{index}" if several else name, kind, module, taken
        for name, taken in self._gradients.items():
            yield name, Kind.GRADIENT, "", taken


def _layer_name(site: LayerSite, kind: Kind) -> str:
    """``dense/outputs``; the output of the model is the prediction."""
    if not site.path:
        return "predictions" if kind is Kind.ACTIVATION else "inputs"
    return f"{site.path}/{'outputs' if kind is Kind.ACTIVATION else 'inputs'}"
