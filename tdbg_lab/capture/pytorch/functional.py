"""Activation functions that are called as functions: ``F.relu(x)``, ``x.tanh()``, ``torch.softmax(x, 1)``.

And attention, whose softmax is within a fused function. No module hook sees them. A mode that looks at each
function call is active within root forwards of saved steps, and only there. The module that calls is found on
the call stack.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - everybody calls it so
from torch.overrides import TorchFunctionMode

from tdbg_lab.capture.activations import ACTIVATION_FUNCTION, has_units
from tdbg_lab.capture.many_calls import MAX_CALLS, tell_of_more
from tdbg_lab.capture.pytorch.attention import FUSED, attention_weights
from tdbg_lab.capture.pytorch.function_modes import leave
from tdbg_lab.capture.pytorch.graphs import within_graph
from tdbg_lab.capture.pytorch.known import KnownTensors
from tdbg_lab.capture.pytorch.measuring import record_one
from tdbg_lab.capture.pytorch.raw_values import record_raw
from tdbg_lab.records import Kind, Mode
from tdbg_lab.stats.tensors import default_channel_axis
from tdbg_lab.stats.transforms import unwrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import FrameType
    from weakref import ref

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.known import Known
    from tdbg_lab.capture.pytorch.naming import ModuleSite

    _Made = Callable[[], torch.Tensor | None]
    """Gives what a function call is shown by; None for nothing."""

__all__ = ["FunctionalProbe"]

_MAX_KNOWN = 1024
_MAX_FRAMES = 24
_NAMES = (
    "relu", "relu6", "leaky_relu", "prelu", "rrelu", "elu", "selu", "celu", "gelu", "silu", "mish", "glu",
    "sigmoid", "logsigmoid", "hardsigmoid", "tanh", "hardtanh", "softplus", "softsign", "softmax",
    "log_softmax", "softmin", "gumbel_softmax", "hardswish", "tanhshrink", "softshrink", "hardshrink",
)  # fmt: skip
_MARKS = {
    "relu": ("relu",),
    "relu6": ("relu",),
    "tanh": ("tanh",),
    "sigmoid": ("sigmoid",),
    **{name: (ACTIVATION_FUNCTION,) for name in _NAMES if has_units(name)},
}
_ATTENTION = "attention_weights"
_CLOSELY = 16
"""Steps that are looked at whatever they cost, the first ones: each call of a function has a price where some
are looked at, and attention weights, which no model computes, have a high one."""
_EVERY = 4
"""Steps from one to the next after them."""
_CLAMPS = {"clamp", "clip", "clamp_min"}
"""Rectifiers when they cut off at zero, and nothing above."""


def _functions() -> dict[Any, str]:
    """Every form of an activation function, with its name."""
    found: dict[Any, str] = {}
    for place in (F, torch, torch.Tensor):
        for name in (*_NAMES, *_CLAMPS):
            for form in (name, f"{name}_"):
                function = getattr(place, form, None)
                if function is not None:
                    found[function] = name
    return found


_FUNCTIONS = _functions()


def _name(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """The activation function that a call is; ``clamp(min=0)`` is ``relu``."""
    name = _FUNCTIONS.get(function)
    if name not in _CLAMPS:
        return name
    low, high = (*args[1:], None, None)[:2]
    low, high = kwargs.get("min", low), kwargs.get("max", high)
    return "relu" if high is None and type(low) in (int, float) and low == 0 else None


class _Watching(TorchFunctionMode):
    """Passes every call on unchanged, and shows the result of those that are activation functions."""

    def __init__(self, see: Callable[[str, _Made, FrameType | None], None]) -> None:
        super().__init__()
        self._see = see

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Called instead of each function."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = _name(func, args, kwargs)
        if name is not None and isinstance(result, torch.Tensor):
            self._see(name, lambda: result, sys._getframe(1))  # noqa: SLF001
        elif func in FUSED:
            self._see(_ATTENTION, partial(attention_weights, func, args, kwargs), sys._getframe(1))  # noqa: SLF001
        return result


class FunctionalProbe:
    """The results of activation functions, under the name of the module that calls them."""

    def __init__(self, engine: Engine, sites: Sequence[ModuleSite]) -> None:
        self._engine = engine
        wanted = engine.plan.config.functional
        self.mask = engine.plan.mask_of(Kind.ACTIVATION) if wanted else 0
        """Collections that may want something of what is seen here."""
        self._naming = sum(1 << i for i, one in enumerate(engine.plan.collections) if one.chooses)
        """Collections that name what they hold."""
        self._known = KnownTensors(engine, _MAX_KNOWN)
        self._calls: dict[tuple[str, str], int] = {}
        self._turns: dict[Mode, tuple[int, int]] = {}
        """The last step that was looked at whole, and how many there were."""
        self._whole = False
        """Whether this one is: for attention, and for functions where none was seen so far."""
        self._found: set[Mode] = set()
        """Where functions were seen: they are at each step."""
        self.place(sites)
        self._visit = -1
        self._mode: _Watching | None = None
        self.active = False
        """Whether it looks at function calls now."""

    def place(self, sites: Sequence[ModuleSite]) -> None:
        """From now on these are the modules."""
        self._sites: dict[int, tuple[ref[nn.Module], ModuleSite]] = {
            id(module): (site.module, site) for site in sites if (module := site.module()) is not None
        }
        self._known.clear()
        self._turns.clear()

    def begin(self) -> None:
        """Look at function calls from now on, if there is something to be seen in this forward."""
        self.end()
        engine = self._engine
        self._whole = bool(engine.module_mask & self._naming) or self._is_turn(engine.recorder.mode)
        if not self._whole and engine.recorder.mode not in self._found:
            return
        self._mode, self.active = _Watching(self._seen), True  # before it is entered: an interrupt may come
        self._mode.__enter__()  # type: ignore[no-untyped-call]

    def end(self) -> None:
        """Look away. Idempotent."""
        leave(self._mode)
        self._mode, self.active = None, False

    def _seen(self, name: str, made: _Made, frame: FrameType | None) -> None:
        due = self._engine.module_mask & self.mask
        if due and not within_graph(self._engine):
            self._engine.guard.run("functional", self._take, name, made, frame, due)

    def _take(self, name: str, made: _Made, frame: FrameType | None, due: int) -> None:
        engine = self._engine
        site, module = self._caller(frame)
        if site is None or module is None or _is_own(site, module, name):
            return
        if name != _ATTENTION:
            self._found.add(engine.recorder.mode)
        elif not self._whole:
            return
        result = made()
        if result is None:
            return
        if self._visit != engine.visit:
            self._visit = engine.visit
            self._calls.clear()
        index = self._calls.get((site.path, name), 0)
        self._calls[site.path, name] = index + 1
        if index >= MAX_CALLS:
            tell_of_more(engine, f"{name} in {site.label}")
            return
        tensor = unwrapped(result)
        known = self._know(site, module, name, index, tensor)
        if known.membership.raw_mask & due:
            record_raw(engine.recorder, known.key.name, tensor, known.membership.sample_rows)
        if known.membership.mask & due:
            record_one(engine.recorder, known, tensor)

    def _is_turn(self, mode: Mode) -> bool:
        """Whether it is the turn of this step to be looked at whole."""
        step = self._engine.step
        last, n = self._turns.get(mode, (-_EVERY, 0))
        if step != last:
            if n >= _CLOSELY and step - last < _EVERY:
                return False
            self._turns[mode] = step, n + 1
        return True

    def _know(
        self, site: ModuleSite, module: nn.Module, name: str, index: int, tensor: torch.Tensor
    ) -> Known:
        """What follows from where the result of a function comes from, its type and its shape."""
        identity = site.path, name, index, tensor.dtype, tensor.shape
        known = self._known.get(identity)
        if known is None:
            shape = tuple(tensor.shape)
            known = self._known.add(
                identity,
                tensor,
                "activation/" + (f"{site.path}." if site.path else "") + f"{name}_{index}",
                Kind.ACTIVATION,
                path=site.path,
                module=module,
                marks=_MARKS.get(name, ()),
                axis=1 if _beside_channels(module, shape) else default_channel_axis(shape, ""),
            )
        return known

    def _caller(self, frame: FrameType | None) -> tuple[ModuleSite | None, nn.Module | None]:
        """The innermost module one of whose methods is running."""
        for _ in range(_MAX_FRAMES):
            if frame is None:
                break
            code = frame.f_code
            if code.co_argcount and code.co_varnames[0] == "self":
                found = self._sites.get(id(frame.f_locals.get("self")))
                if found is not None and (module := found[0]()) is not None:
                    return found[1], module
            frame = frame.f_back
        return None, None


def _beside_channels(module: nn.Module, shape: Sequence[int]) -> bool:
    """Whether a sequence has its channels before its places, by the layers beside the function."""
    if len(shape) != 3:
        return False
    beside = list(module.children())
    channels = {one.out_channels for one in beside if isinstance(one, nn.Conv1d | nn.ConvTranspose1d)}
    channels |= {one.num_features for one in beside if isinstance(one, nn.BatchNorm1d)}
    features = {one.out_features for one in beside if isinstance(one, nn.Linear)}
    return shape[1] in channels and shape[2] not in features


def _is_own(site: ModuleSite, module: nn.Module, function: str) -> bool:
    """Whether the function is all that the module does, whose output is seen anyway: ``nn.ReLU``, a loss."""
    if site.is_loss or not site.leaf:
        return site.is_loss
    if function == _ATTENTION:
        return False  # the output of a layer that attends is what it found
    kind = next(one for one in type(module).__mro__ if not one.__name__.startswith("FSDP"))
    name = kind.__name__.lower()
    return kind.__module__.startswith(("torch.", "keras.")) or "activation" in name or name.endswith(function)
