"""The names the predecessor gives to what a Keras model has.

=======================  ===================================================
weight                   ``dense/weights/dense/kernel:0``
... in a tape loop       ``weights/dense/kernel:0``
gradient                 ``gradients/dense/kernelGrad``
input, output            ``dense/inputs``, ``dense/outputs``; ``..._0``, ``..._1`` if there are several
optimizer variable       ``Adam/dense/kernel/m:0``, ``Adam/iter:0``
=======================  ===================================================

Layers are named by their path through the model, without the model's own name, which is what
TensorFlow 2 called the variables of sequential and functional models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.keras.naming import WeightSite, layer_sites, weight_sites
from tdbg_lab.capture.keras.optimizers import optimizer_slots
from tdbg_lab.capture.keras.sinks import inner
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tdbg_lab.capture.keras.naming import LayerSite

__all__ = ["ModelNames", "VariableNames", "gradient_name", "kind_of", "optimizer_names", "variable_name"]

_MOMENTS = {"momentum": "m", "velocity": "v"}
_SLOTS = dict.fromkeys(("Adam", "AdamW", "Nadam"), _MOMENTS) | {"Adamax": {"m": "m", "u": "v"}}
"""What the optimizers of TensorFlow 2 called their variables, where Keras 3 calls them otherwise."""


def variable_name(variable: Any) -> str:
    """Name of a variable of which nothing else is known: its path, as TensorFlow has it."""
    name = str(getattr(variable, "path", None) or variable.name)
    return name if ":" in name else f"{name}:0"


def gradient_name(variable: str) -> str:
    """Name of the gradient of a variable called so."""
    return f"gradients/{variable.partition(':')[0]}Grad"


class VariableNames:
    """Names of variables that came from nowhere: their paths. Grows with `add`."""

    layers: Sequence[LayerSite] = ()

    def __init__(self, weights: Iterable[WeightSite] = ()) -> None:
        self.weights: list[WeightSite] = list(weights)
        self._of: dict[int, str] = {id(one.variable): one.name for one in self.weights}

    def add(self, variable: Any) -> None:
        """Add a variable, if it is not there."""
        if id(variable) not in self._of:
            name = variable_name(variable).partition(":")[0]
            self.weights.append(WeightSite(name, "", None, variable, kind_of(name)))
            self._of[id(variable)] = name

    def of(self, variable: Any) -> str:
        """``dense/kernel:0``."""
        name = self._of.get(id(variable))
        return variable_name(variable) if name is None else f"{name}:0"


class ModelNames(VariableNames):
    """Layers and weights of a model, as they are when it is made; `stale` says when to make it anew."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._count = len(model.variables)
        layers = layer_sites({"": model})
        super().__init__(weight_sites(layers))
        self.layers = [one for one in layers if not one.looped]
        """The model itself first: its output is the prediction."""

    @property
    def stale(self) -> bool:
        """Whether something was built since."""
        return len(self._model.variables) != self._count

    def weight(self, site: WeightSite) -> str:
        """``dense/weights/dense/kernel:0``."""
        layer, below, _ = site.name.partition("/")
        return f"{layer if below else self._model.name}/weights/{site.name}:0"


def kind_of(variable: str) -> Kind:
    """Weight or bias, by name."""
    return Kind.BIAS if "bias" in variable else Kind.WEIGHT


def optimizer_names(optimizer: Any, names: VariableNames) -> Iterator[tuple[str, Any]]:
    """Name and variable of all an optimizer keeps; nothing before it is built."""
    optimizer = inner(optimizer)
    kind = type(optimizer).__name__
    slots = _SLOTS.get(kind, {})
    for variable, what, site in optimizer_slots(optimizer, names.weights):
        called = slots.get(what, "iter" if what == "iteration" else what)
        yield f"{kind}/{called}:0" if site is None else f"{kind}/{site.name}/{called}:0", variable
