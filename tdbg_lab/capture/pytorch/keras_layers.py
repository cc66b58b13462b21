"""Layers of Keras on its PyTorch backend, where a loop of PyTorch trains them.

They are modules whose hooks are called, but PyTorch's own walk through a model misses those of a functional
one, and finds parameters under names of Keras's making. So the names are those that Keras's ``fit`` gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import torch
    from torch import nn
    from torch.utils.hooks import RemovableHandle

    from tdbg_lab.capture.keras.naming import LayerSite

__all__ = [
    "channel_axis_of",
    "evaluates",
    "layer_marks",
    "named_weights",
    "once_built",
    "sites_of",
    "weights_of",
]


def evaluates(kwargs: Mapping[str, Any] | None) -> bool:
    """Whether a model is called to evaluate: Keras has no mode of a model, but an argument of the call."""
    return kwargs is not None and kwargs.get("training") is False


def once_built(model: nn.Module, told: Callable[[], object]) -> RemovableHandle:
    """Call `told` when a model was called for the first time, which gives it its weights."""

    def built(*_: object) -> None:
        hook.remove()
        told()

    hook = model.register_forward_hook(built)
    return hook


def sites_of(prefix: str, model: nn.Module) -> Iterator[LayerSite]:
    """The layers of a model that are called one by one, itself among them."""
    from tdbg_lab.capture.keras.naming import layer_sites

    return (site for site in layer_sites({prefix: model}) if not site.looped)


def weights_of(prefix: str, model: nn.Module) -> Iterator[tuple[str, str, ref[nn.Module], str, Kind]]:
    """Name, path, owner, attribute and kind of each variable of a model."""
    from tdbg_lab.capture.keras.naming import layer_sites, weight_sites

    for site in weight_sites(layer_sites({prefix: model})):
        path, value = site.variable.path, site.variable.value
        for owner in (model, site.layer):  # a layer may still hold what its variable was before it was built
            held: Any = owner.torch_params
            if held._parameters.get(path) is value:  # noqa: SLF001
                yield site.name, site.module, ref(held), path, site.kind
                break


def named_weights(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """What is trained of a model, or could be, by name."""
    from tdbg_lab.capture.keras.naming import layer_sites, weight_sites

    for site in weight_sites(layer_sites({"": model})):
        if site.kind is not Kind.BUFFER:
            yield site.name, site.variable.value


def layer_marks(layer: nn.Module) -> tuple[str, ...]:
    """What the outputs of a layer are marked with."""
    from tdbg_lab.capture.keras.naming import marks_of

    return marks_of(layer)


def channel_axis_of(layer: nn.Module, shape: Sequence[int]) -> int | None:
    """The axis of an output along which a layer has its units; None for none."""
    from tdbg_lab.capture.keras.naming import channel_axis

    return channel_axis(layer, shape)
