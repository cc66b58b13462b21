"""Watches one pass through a model: what its layers return, its loss, and the gradients it ends in.

Nothing is left behind: methods of the instances are replaced while the ``with`` block lasts. Whether
the pass runs eagerly or is being traced into a graph is the sink's affair.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tdbg_lab.capture.guard import Guard
    from tdbg_lab.capture.keras.checks.modes import PassModes
    from tdbg_lab.capture.keras.naming import LayerSite

__all__ = ["Sink", "replaced", "watch"]


class Sink(Protocol):
    """Takes what a pass shows."""

    modes: PassModes

    def output(self, site: LayerSite, inputs: Any, output: Any) -> None:
        """A layer was called with `inputs` (arguments, keyword arguments) and returned `output`."""

    def loss(self, value: Any) -> None:
        """The total loss of the batch."""

    def compared(self, model: Any, y: Any, y_pred: Any) -> None:
        """What the loss was computed of: labels and predictions."""

    def gradients(
        self, optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any] | None, state: Any
    ) -> None:
        """Gradients as they are given to an optimizer; `state` are its variables where it has none."""


@contextmanager
def replaced(thing: Any, name: str, value: Any) -> Iterator[None]:
    """Replace a method of one object, past whatever its class does when attributes are set."""
    missing = object()
    before = vars(thing).get(name, missing)
    object.__setattr__(thing, name, value)
    try:
        yield
    finally:
        if before is missing:
            vars(thing).pop(name, None)
        else:
            object.__setattr__(thing, name, before)


@contextmanager
def watch(
    guard: Guard,
    sink: Sink | None,
    *,
    sites: Sequence[LayerSite],
    models: Sequence[Any],
    optimizers: Mapping[str, Any],
    apply: bool,
    losses: bool = True,
) -> Iterator[None]:
    """Tell `sink` what happens within the ``with`` block.

    Parameters
    ----------
    sites
        Layers to watch.
    sink
        None to watch nothing, and only keep optimizers from updating.
    apply
        Whether optimizers update anything. False for a pass that only looks.
    losses
        Whether the loss itself is told, and not only what it is computed of.
    """
    with ExitStack() as stack:
        if sink is not None:
            for site in sites:
                stack.enter_context(replaced(site.layer, "call", _layer_call(guard, sink, site)))
            for model in models:
                stack.enter_context(replaced(model, "call", _model_call(guard, sink, model)))
                if hasattr(model, "compute_loss"):
                    stack.enter_context(
                        replaced(model, "compute_loss", _loss_call(guard, sink, model, told=losses))
                    )
        for optimizer in optimizers.values():
            for name, make in (("apply", _apply_call), ("stateless_apply", _stateless_call)):
                stack.enter_context(replaced(optimizer, name, make(guard, sink, optimizer, apply=apply)))
        yield


def _layer_call(guard: Guard, sink: Sink, site: LayerSite) -> Callable[..., Any]:
    original = site.layer.call

    def call(*args: Any, **kwargs: Any) -> Any:
        output = original(*args, **kwargs)
        guard.run(f"activation/{site.label}", sink.output, site, (args, kwargs), output)
        guard.run("check/modes", _tell_part, sink, site.layer, kwargs)
        return output

    return call


def _model_call(guard: Guard, sink: Sink, model: Any) -> Callable[..., Any]:
    original = model.call

    def call(*args: Any, **kwargs: Any) -> Any:
        guard.run("check/modes", _tell_root, sink, kwargs)
        return original(*args, **kwargs)

    return call


def _tell_part(sink: Sink, layer: Any, kwargs: dict[str, Any]) -> None:
    sink.modes.part(layer, kwargs)


def _tell_root(sink: Sink, kwargs: dict[str, Any]) -> None:
    sink.modes.root(kwargs)


def _loss_call(guard: Guard, sink: Sink, model: Any, *, told: bool) -> Callable[..., Any]:
    original = model.compute_loss

    def compute_loss(*args: Any, **kwargs: Any) -> Any:
        value = original(*args, **kwargs)
        if told:
            guard.run("loss", sink.loss, value)
        y, y_pred = (
            kwargs.get(name, args[place] if len(args) > place else None)
            for place, name in ((1, "y"), (2, "y_pred"))
        )
        if y is not None and y_pred is not None:
            guard.run("check/loss", sink.compared, model, y, y_pred)
        return value

    return compute_loss


def _apply_call(guard: Guard, sink: Sink | None, optimizer: Any, *, apply: bool) -> Callable[..., Any]:
    original = optimizer.apply

    def call(grads: Any, trainable_variables: Any = None) -> Any:
        grads = list(grads)
        variables = None if trainable_variables is None else list(trainable_variables)
        if sink is not None:
            guard.run("gradients", sink.gradients, optimizer, grads, variables, None)
        return original(grads, variables) if apply else None

    return call


def _stateless_call(guard: Guard, sink: Sink | None, optimizer: Any, *, apply: bool) -> Callable[..., Any]:
    original = optimizer.stateless_apply

    def call(optimizer_variables: Any, grads: Any, trainable_variables: Any) -> Any:
        if sink is not None:
            guard.run("gradients", sink.gradients, optimizer, list(grads), None, list(optimizer_variables))
        if apply:
            return original(optimizer_variables, grads, trainable_variables)
        return trainable_variables, optimizer_variables

    return call
