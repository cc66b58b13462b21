"""Names of layers and weights: the path through the model, without the model's own name.

::

    encoder/dense/kernel            weight `kernel` of layer `dense` in the nested model `encoder`
    activation/encoder/dense        what that layer returns
    encoder.dense                   the same layer in the module tree

Keras's own ``variable.path`` depends on where a layer was built, so the same model would have other
names as `Sequential` than as functional model; a path through the model does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import keras

from tdbg_lab.capture.activations import ACTIVATION_FUNCTION, has_units
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["LayerSite", "WeightSite", "channel_axis", "is_relu", "layer_sites", "marks_of", "weight_sites"]

_WHOLE = (keras.layers.RNN, keras.layers.TimeDistributed)
"""Layers that call their children in a loop: what passes through those cannot be told apart."""
_GATED = (keras.layers.LSTM, keras.layers.GRU)
"""Layers whose `activation` is not the last thing they do."""
_MAX_CHANNELS = 4096


@dataclass(frozen=True, slots=True)
class LayerSite:
    """A layer and its place."""

    path: str
    """Names from the model down, joined by ``/``; the model's own is ``""``."""
    layer: Any
    leaf: bool
    """It has no layers of its own, or calls them in a loop."""
    looped: bool = False
    """It is called from within a loop of the layer above."""
    aliases: tuple[str, ...] = ()
    """Other paths of the same layer."""

    @property
    def module(self) -> str:
        """The path as the module tree has it, with dots."""
        return self.path.replace("/", ".")

    @property
    def label(self) -> str:
        """Path, or the name of a model that is attached as a whole."""
        return self.path or str(self.layer.name)


@dataclass(frozen=True, slots=True)
class WeightSite:
    """A variable of a layer."""

    name: str
    module: str
    layer: Any
    variable: Any
    kind: Kind
    aliases: tuple[str, ...] = ()


def layer_sites(models: Mapping[str, Any]) -> list[LayerSite]:
    """All layers of all models in the order of their definition, shared ones once.

    Parameters
    ----------
    models
        Models by the name that stands before their paths; ``""`` for a single one.
    """
    found: dict[int, LayerSite] = {}
    for prefix, model in models.items():
        for site in _walk(model, prefix, looped=False):
            first = found.setdefault(id(site.layer), site)
            if first is not site:
                found[id(site.layer)] = replace(first, aliases=(*first.aliases, site.path))
    return list(found.values())


def _walk(layer: Any, path: str, *, looped: bool) -> Iterator[LayerSite]:
    children = _children(layer)
    whole = isinstance(layer, _WHOLE)
    yield LayerSite(path, layer, not children or whole, looped)
    taken: dict[str, int] = {}
    for child in children:
        taken[child.name] = count = taken.get(child.name, 0) + 1
        name = child.name if count == 1 else f"{child.name}_{count - 1}"
        yield from _walk(child, f"{path}/{name}" if path else name, looped=looped or whole)


def _children(layer: Any) -> list[Any]:
    layers = layer.layers if isinstance(layer, keras.Model) else ()
    known = {id(one) for one in layers}
    below = layer._flatten_layers(include_self=False, recursive=False)  # noqa: SLF001 - the only way down
    rest = [one for one in below if id(one) not in known and not _is_inside(layer, one)]
    return [one for one in (*layers, *rest) if not isinstance(one, keras.layers.InputLayer)]


def _is_inside(layer: Any, child: Any) -> bool:
    """Whether `child` is the functional model that a `Sequential` wraps itself in."""
    return (
        isinstance(layer, keras.Sequential)
        and isinstance(child, keras.Model)
        and child is getattr(layer, "_functional", None)
    )


def weight_sites(layers: Sequence[LayerSite]) -> list[WeightSite]:
    """All variables of all layers, those of random generators left out; shared ones once.

    Layers within a loop (the cell of an RNN) belong to it like all others: only what passes through
    them is not seen.
    """
    order: dict[int, list[tuple[str, LayerSite, Any, Kind]]] = {}
    for site in layers:
        for variable, trainable in _own(site.layer):
            for path in (site.path, *site.aliases):
                name = f"{path}/{variable.name}" if path else str(variable.name)
                order.setdefault(id(variable), []).append((name, site, variable, _kind(variable, trainable)))
    sites: list[WeightSite] = []
    taken: set[str] = set()
    for places in order.values():
        name, site, variable, kind = places[0]
        while name in taken:  # two variables of one layer with the same name
            name += "'"
        taken.add(name)
        aliases = tuple(dict.fromkeys(place[0] for place in places[1:] if place[0] != name))
        sites.append(WeightSite(name, site.module, site.layer, variable, kind, aliases))
    return sites


def _own(layer: Any) -> list[tuple[Any, bool]]:
    trainable = [(one, True) for one in layer._trainable_variables]  # noqa: SLF001 - those of no sublayer
    return trainable + [(one, False) for one in layer._non_trainable_variables]  # noqa: SLF001


def _kind(variable: Any, trainable: bool) -> Kind:  # noqa: FBT001
    if not trainable:
        return Kind.BUFFER
    name = str(variable.name).lower()
    return Kind.BIAS if "bias" in name or name == "beta" else Kind.WEIGHT


def is_relu(layer: Any) -> bool:
    """Whether what the layer returns is exactly zero for all negative inputs of its activation."""
    if isinstance(layer, keras.layers.ReLU):
        return not layer.negative_slope and not layer.threshold
    activation = getattr(layer, "activation", None)
    relu = (keras.activations.relu, keras.activations.relu6)
    return any(activation is one for one in relu) and not isinstance(layer, _GATED)


def channel_axis(layer: Any, shape: Sequence[int]) -> int | None:
    """The axis of an output along which the layer has its units; None when there is none to tell apart."""
    if len(shape) < 2:
        return None
    first = getattr(layer, "data_format", None) == "channels_first"
    axis = 1 if first else len(shape) - 1
    return axis if 1 <= shape[axis] <= _MAX_CHANNELS else None


def marks_of(layer: Any) -> tuple[str, ...]:
    """What its outputs are marked with: rules look for units that never fire, or are saturated."""
    if is_relu(layer):
        return ("relu",)
    activation = getattr(layer, "activation", None)
    if isinstance(layer, _GATED):
        return ()
    if activation is keras.activations.tanh:
        return ("tanh",)
    if activation is keras.activations.sigmoid:
        return ("sigmoid",)
    name = getattr(activation, "__name__", type(layer).__name__)
    return (ACTIVATION_FUNCTION,) if has_units(name) else ()
