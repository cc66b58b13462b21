"""Activations and inputs: reduced inside the hook, at once, before anything can change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn
from torch.jit._script import RecursiveScriptModule

from tdbg_lab.capture.activations import ACTIVATION_FUNCTION, RECURRENT, named_after_one
from tdbg_lab.capture.many_calls import MAX_CALLS, tell_of_more
from tdbg_lab.capture.of_keras import is_layer
from tdbg_lab.capture.pytorch.hook import ModuleHook
from tdbg_lab.capture.pytorch.keras_layers import channel_axis_of, layer_marks
from tdbg_lab.capture.pytorch.known import KnownTensors
from tdbg_lab.capture.pytorch.measuring import record_tensors
from tdbg_lab.capture.pytorch.raw_values import record_raw
from tdbg_lab.capture.pytorch.values import activations_in, tensors_in
from tdbg_lab.records import Kind
from tdbg_lab.stats.tensors import default_channel_axis, says_its_axis
from tdbg_lab.stats.transforms import unwrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from torch.utils.hooks import RemovableHandle

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.first_part import FirstPart
    from tdbg_lab.capture.pytorch.known import Known
    from tdbg_lab.capture.pytorch.last_measured import LastMeasured
    from tdbg_lab.capture.pytorch.layer_hooks import LayerHooks
    from tdbg_lab.capture.pytorch.naming import ModuleSite

__all__ = ["ModuleProbe", "hook_modules", "is_relu", "marks_of"]

_MAX_SHAPES = 64


def hook_modules(
    engine: Engine, sites: Sequence[ModuleSite], layers: LayerHooks, last: LastMeasured, first: FirstPart
) -> None:
    """Hook every module whose outputs or inputs some collection wants."""
    scripted = []
    for site in sites:
        module = site.module()
        if module is None or site.is_loss or not (site.leaf or engine.plan.wants_module(site.path, module)):
            continue
        if isinstance(module, RecursiveScriptModule):
            scripted.append(site.label)
            continue
        for kind in (Kind.ACTIVATION, Kind.INPUT):
            probe = ModuleProbe(engine, kind, site, last, first)
            mask = probe.possible(module)
            if mask:
                hook = ModuleHook(None, engine, mask, probe.base, probe.take)
                layers.add(probe.register(hook, module), hook)
    if scripted:
        more = f" and {len(scripted) - 1} more" if len(scripted) > 1 else ""
        engine.guard.notice(
            "scripted",
            f"layers are compiled by TorchScript, which takes no hooks, so what they return is not seen: "
            f"{scripted[0]}{more}",
        )


def is_relu(module: nn.Module) -> bool:
    """Whether the module is exactly zero for all negative inputs."""
    if isinstance(module, nn.Threshold):
        return module.threshold == 0 and module.value == 0
    return isinstance(module, nn.ReLU | nn.ReLU6)


def marks_of(module: nn.Module) -> tuple[str, ...]:
    """What its outputs are marked with: rules look for units that never fire, or are saturated."""
    if is_layer(module):
        return layer_marks(module)
    if is_relu(module):
        return ("relu",)
    if isinstance(module, nn.Tanh):
        return ("tanh",)
    if isinstance(module, nn.Sigmoid):
        return ("sigmoid",)
    if isinstance(module, nn.RNNBase | nn.RNNCellBase):
        return (RECURRENT, "tanh") if getattr(module, "nonlinearity", "") == "tanh" else (RECURRENT,)
    known = named_after_one(type(module).__name__) and next(module.parameters(), None) is None
    return (ACTIVATION_FUNCTION,) if known else ()


class ModuleProbe:
    """What passes through one module: its outputs or its inputs."""

    __slots__ = ("_calls", "_engine", "_first", "_known", "_last", "_visit", "base", "kind", "path")

    def __init__(
        self, engine: Engine, kind: Kind, site: ModuleSite, last: LastMeasured, first: FirstPart
    ) -> None:
        self._engine = engine
        self._last = last
        self._first = first
        self.kind = kind
        self.path = site.path or site.label
        self.base = f"{kind}/{site.label}"
        self._visit = -1
        self._calls = 0
        self._known = KnownTensors(engine, _MAX_SHAPES)

    def possible(self, module: nn.Module) -> int:
        """Collections that may want something of this module."""
        plan = self._engine.plan
        first = plan.membership(self.base, self.kind, self.path, module)
        second = plan.membership(f"{self.base}:1", self.kind, self.path, module)
        return first.mask | second.mask

    def register(self, hook: ModuleHook, module: nn.Module) -> RemovableHandle:
        """Hang the hook on the module."""
        if self.kind is Kind.INPUT:
            return module.register_forward_pre_hook(hook, with_kwargs=True)
        return module.register_forward_hook(hook)

    def take(self, module: nn.Module, values: tuple[Any, ...], due: int) -> None:
        """Reduce what the hook got: (arguments, output) or (arguments, keyword arguments)."""
        engine = self._engine
        if engine.rootless:
            if not self._first.see(module):
                return
            due &= engine.mask  # it may have begun another mode
        if self._visit != engine.visit:
            self._visit, self._calls = engine.visit, 0
        tensors = tensors_in(values) if self.kind is Kind.INPUT else activations_in(values[1])
        found: list[tuple[torch.Tensor, Known]] = []
        for tensor in map(unwrapped, tensors):
            index = self._calls
            self._calls += 1
            if index >= MAX_CALLS:
                tell_of_more(engine, self.base)
                return
            known = self._know(index, tensor, module, values[0])
            if known.membership.raw_mask & due:
                record_raw(engine.recorder, known.key.name, tensor, known.membership.sample_rows)
            if known.membership.mask & due:
                found.append((tensor, known))
        if len(found) == 1:
            ((tensor, known),) = found
            self._last.record(known, module, values[0], tensor)
        elif found:
            self._last.forget()
            record_tensors(
                engine.recorder,
                [known.key for _, known in found],
                [tensor for tensor, _ in found],
                channel_axes=[known.repeated.axis for _, known in found],
            )

    def _know(self, index: int, tensor: torch.Tensor, module: nn.Module, args: Any) -> Known:
        identity = (index, tensor.dtype, tensor.shape)
        found = self._known.get(identity)
        if found is None:
            found = self._known.add(
                identity,
                tensor,
                self.base if index == 0 else f"{self.base}:{index}",
                self.kind,
                path=self.path,
                module=module,
                marks=marks_of(module) if self.kind is Kind.ACTIVATION else (),
                axis=self._axis(module, tuple(tensor.shape), args),
            )
        return found

    def _axis(self, module: nn.Module, shape: tuple[int, ...], args: Any) -> int | None:
        """The axis along which a tensor of this shape has its units."""
        if is_layer(module):
            return channel_axis_of(module, shape)
        kind = type(module).__name__
        axis = default_channel_axis(shape, kind)
        if self.kind is Kind.ACTIVATION and not says_its_axis(kind):  # an activation function
            given = self._last.axis_of(args, shape)
            axis = axis if given is None else given
        return axis
