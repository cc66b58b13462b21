"""Names of modules and parameters: dotted paths without the wrappers around a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any
from weakref import ref

from torch import nn
from torch.optim import Optimizer

from tdbg_lab.capture.of_keras import is_layer
from tdbg_lab.capture.pytorch.keras_layers import named_weights, sites_of, weights_of
from tdbg_lab.capture.things import by_name
from tdbg_lab.errors import CaptureError
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

__all__ = [
    "ModuleSite",
    "ParameterSite",
    "class_name",
    "is_loss",
    "module_sites",
    "named",
    "named_parameters",
    "parameter_sites",
]

_WRAPPERS = {
    "DistributedDataParallel": ("module",),
    "DataParallel": ("module",),
    "FullyShardedDataParallel": ("_fsdp_wrapped_module",),
    "_FabricModule": ("_forward_module", "_original_module"),
}
"""Classes that only wrap a model, with the names they give it."""
_KINDS: dict[type, str] = {nn.Module: "a torch.nn.Module", Optimizer: "a torch.optim.Optimizer"}
_CALLBACKS = {
    "xgboost": "tdbg_lab.XGBoostCallback",
    "lightgbm": "tdbg_lab.LightGBMCallback",
    "transformers": "tdbg_lab.TransformersCallback",
    "lightning": "tdbg_lab.LightningCallback",
    "pytorch_lightning": "tdbg_lab.LightningCallback",
    "ignite": "tdbg_lab.IgniteHandler",
}
"""What captures the training of other libraries' estimators and trainers."""
_QUANTIZERS = frozenset(
    {"ObserverBase", "FakeQuantizeBase", "FakeQuantizerBase", "FakeQuantizer", "QuantProxyFromInjector"}
)
"""Classes of PyTorch, torchao and Brevitas that observe or round what passes through."""
_WHOLE = (nn.MultiheadAttention,)
"""Modules that use their children without calling them."""


@dataclass(frozen=True, slots=True)
class ModuleSite:
    """A module and its place."""

    path: str
    module: ref[nn.Module]
    leaf: bool
    is_loss: bool
    name: str = ""
    """What its tensors are named after, where that is not the path."""

    @property
    def label(self) -> str:
        """Name or path, or the class of a model that is attached as a whole."""
        module = self.module()
        return self.name or self.path or (class_name(module) if module is not None else "")


@dataclass(frozen=True, slots=True)
class ParameterSite:
    """A parameter or buffer, found again through its module: it may be replaced while training."""

    name: str
    path: str
    """Of the module that owns it."""
    owner: ref[nn.Module]
    attribute: str
    kind: Kind
    aliases: tuple[str, ...] = ()
    """Other names of the same parameter."""


def class_name(module: nn.Module) -> str:
    """Name of the class, without what ``fully_shard`` puts before it."""
    name = type(module).__name__
    sharded = any(base.__name__ == "FSDPModule" for base in type(module).__mro__)
    return name.removeprefix("FSDP") if sharded else name


def named(things: Any, what: str, of: type) -> dict[str, Any]:
    """One thing, a mapping or a sequence of them: always a mapping; one thing has the name ``""``.

    Raises
    ------
    CaptureError
        Something in it is not of type `of`.
    """
    given = by_name(things, of)
    kind = _KINDS[of]
    if given is None or (what == "model" and not given and things is not None):
        raise CaptureError(_refusal(what, things, f"{kind}, a mapping or a list of them"))
    for name, one in given.items():
        if not isinstance(one, of):
            raise CaptureError(_refusal(f"{what} {name!r}" if name else what, one, kind))
    return given


def _refusal(what: str, thing: Any, expected: str) -> str:
    """One sentence about something that is given by mistake, and what to give instead where that is known."""
    if isinstance(thing, type):
        return f"{what} is the class {thing.__name__}; expected an instance of it: {thing.__name__}(...)."
    if isinstance(thing, Mapping | list | tuple) and not thing:
        return f"{what} is empty; expected {expected}."
    callback = _CALLBACKS.get(type(thing).__module__.partition(".")[0])
    instead = f"; {callback} captures this one" if callback else ""
    if what.startswith("loss") and callable(thing):
        instead = "; log what a function returns by handle.log_loss(name, value)"
    return f"{what} is of type {type(thing).__name__}; expected {expected}{instead}."


def module_sites(models: Mapping[str, nn.Module]) -> list[ModuleSite]:
    """All modules of all models, each once, in the order of their definition."""
    sites: list[ModuleSite] = []
    seen: set[int] = set()
    for prefix, model in models.items():
        if is_layer(model):
            sites += [
                ModuleSite(one.module, ref(one.layer), one.leaf, is_loss=False, name=one.label)
                for one in sites_of(prefix, model)
            ]
            continue
        wrappers = _wrapper_paths(model)
        quantizer = None
        for raw, module in model.named_modules():
            if id(module) in seen or raw in wrappers or _is_parametrization(raw):
                continue
            seen.add(id(module))
            path = _clean(raw, wrappers, prefix)
            if quantizer is None or not raw.startswith(quantizer):
                quantizer = f"{raw}." if _rounds(module) else None
            leaf = quantizer is None and _is_leaf(module)
            sites.append(ModuleSite(path, ref(module), leaf, is_loss(module)))
    return sites


def _is_leaf(module: nn.Module) -> bool:
    """Whether what it returns is a layer's output: it has no other layers in it."""
    parts = [part for name, part in module.named_children() if name != "parametrizations"]
    return isinstance(module, _WHOLE) or all(map(_rounds, parts))


def _rounds(module: nn.Module) -> bool:
    """Whether it is what quantization-aware training puts into a layer, and no layer itself."""
    return not _QUANTIZERS.isdisjoint(kind.__name__ for kind in type(module).__mro__)


def parameter_sites(models: Mapping[str, nn.Module]) -> list[ParameterSite]:
    """All parameters and buffers, shared ones once, under the first of their names."""
    sites = []
    order: dict[int, list[tuple[str, str, nn.Module, str, Kind]]] = {}
    for prefix, model in models.items():
        if is_layer(model):
            sites += [ParameterSite(*one) for one in weights_of(prefix, model)]
            continue
        wrappers = _wrapper_paths(model)
        for raw, module in model.named_modules(remove_duplicate=False):
            path = _clean(raw, wrappers, prefix)
            for attribute, value in _own(module):
                name = f"{path}.{attribute}" if path else attribute
                kind = _kind(attribute, value)
                order.setdefault(id(value), []).append((name, path, module, attribute, kind))
    for places in order.values():
        name, path, module, attribute, kind = places[0]
        aliases = tuple(dict.fromkeys(place[0] for place in places[1:] if place[0] != name))
        sites.append(ParameterSite(name, path, ref(module), attribute, kind, aliases))
    return sites


def named_parameters(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The parameters of a model by their names in it."""
    return named_weights(model) if is_layer(model) else model.named_parameters()


def _own(module: nn.Module) -> list[tuple[str, Any]]:
    parameters = [(name, one) for name, one in module._parameters.items() if one is not None]  # noqa: SLF001
    buffers = [(name, one) for name, one in module._buffers.items() if one is not None]  # noqa: SLF001
    return parameters + buffers


def _kind(attribute: str, value: Any) -> Kind:
    if not isinstance(value, nn.Parameter):
        return Kind.BUFFER
    return Kind.BIAS if "bias" in attribute.lower() else Kind.WEIGHT


def is_loss(module: nn.Module) -> bool:
    """Whether the module computes a loss."""
    if isinstance(module, nn.modules.loss._Loss):  # noqa: SLF001
        return True
    return type(module).__name__.endswith("Loss") and next(module.parameters(), None) is None


def _is_parametrization(raw: str) -> bool:
    return "parametrizations" in raw.split(".")


def _wrapper_paths(model: nn.Module) -> dict[str, list[str]]:
    """Raw paths of wrapper modules, with the raw paths of what they wrap."""
    wrappers = {}
    for raw, module in model.named_modules():
        names = ("_orig_mod",) if hasattr(module, "_orig_mod") else _WRAPPERS.get(type(module).__name__, ())
        if names:
            wrappers[raw] = [f"{raw}.{name}".lstrip(".") for name in names]
    return wrappers


def _clean(raw: str, wrappers: Mapping[str, Sequence[str]], prefix: str) -> str:
    """The path without the parts that only wrap, behind the model's name."""
    for inner in sorted(chain.from_iterable(wrappers.values()), key=len, reverse=True):
        if raw == inner or raw.startswith(f"{inner}."):
            outer, _, _ = inner.rpartition(".")
            raw = ".".join(part for part in (outer, raw[len(inner) :].lstrip(".")) if part)
    return ".".join(part for part in (prefix, raw) if part)
