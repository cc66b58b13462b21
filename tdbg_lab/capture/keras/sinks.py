"""Tensors inside what layers take and return, and gradients as they are applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from tdbg_lab.capture.many_calls import MAX_CALLS
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.capture.keras.naming import LayerSite

__all__ = ["CallCounter", "applied", "inner", "loss_scale"]

_MAX_TENSORS = 32


class CallCounter:
    """Numbers the tensors of each layer over the calls of one pass."""

    def __init__(self, backend: Backend, *, inputs: bool) -> None:
        self._backend = backend
        self._inputs = inputs
        self._counts: dict[tuple[str, Kind], int] = {}

    def tensors(self, site: LayerSite, inputs: Any, output: Any) -> Iterator[tuple[Kind, int, Any]]:
        """Kind, number and tensor of what one call took and returned.

        One more than are recorded, with the number `MAX_CALLS`, says that there are more.
        """
        if self._inputs:
            yield from self._numbered(site, Kind.INPUT, inputs)
        yield from self._numbered(site, Kind.ACTIVATION, output)

    def _numbered(self, site: LayerSite, kind: Kind, values: Any) -> Iterator[tuple[Kind, int, Any]]:
        found = [one for one in keras.tree.flatten(values) if self._backend.is_tensor(one)]
        for value in found[:_MAX_TENSORS]:
            index = self._counts.get((site.path, kind), 0)
            if index > MAX_CALLS:
                return
            self._counts[site.path, kind] = index + 1
            yield kind, index, value


def inner(optimizer: Any) -> Any:
    """The optimizer that updates, below one that scales the loss."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def loss_scale(optimizer: Any, state: Sequence[Any] | None) -> Any:
    """What the gradients given to the optimizer are multiplied by; None for nothing.

    Parameters
    ----------
    state
        Values of ``optimizer.variables`` where these have none (JAX).
    """
    if inner(optimizer) is optimizer:
        return optimizer.loss_scale_factor
    if not optimizer.built:
        return optimizer.initial_scale
    scale = optimizer.dynamic_scale
    if state is None:
        return scale.value
    return next(value for one, value in zip(optimizer.variables, state, strict=True) if one is scale)


def applied(optimizer: Any, gradients: Sequence[Any], state: Sequence[Any] | None) -> list[Any]:
    """Gradients as the update uses them: without the scale of the loss, clipped by the optimizer."""
    scale = loss_scale(optimizer, state)
    if scale is not None:
        gradients = [
            None if one is None else keras.ops.divide(one, keras.ops.cast(scale, one.dtype))
            for one in gradients
        ]
    clipped: list[Any] = list(inner(optimizer)._clip_gradients(list(gradients)))  # noqa: SLF001
    return clipped
