"""Where a forward begins, of models that are called by their parts.

Policies that are asked for an action by one method and trained by another, encoders and decoders that are
called one by one: nobody calls the whole. Then the layer that is called first says when a step begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch

from tdbg_lab.capture.pytorch.hook import BoundaryHook
from tdbg_lab.capture.pytorch.moment import not_for_real
from tdbg_lab.capture.pytorch.stance import has_compiled
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from torch import nn
    from torch.utils.hooks import RemovableHandle

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.optimizers import OptimizerWatch

__all__ = ["FirstPart"]

_MOST = 8
"""Layers that may be the first one, by turns."""


class FirstPart:
    """Finds the layers that are called first, at saved steps, and listens to them from then on."""

    def __init__(self, engine: Engine, watch: OptimizerWatch) -> None:
        self._engine = engine
        self._watch = watch
        self._hooks: WeakKeyDictionary[nn.Module, RemovableHandle] = WeakKeyDictionary()
        self._step = -1
        """The last step of which the first layer is known."""

    def see(self, layer: nn.Module) -> bool:
        """A layer was called at a saved step. Whether that was in the mode that is recorded from now on."""
        engine = self._engine
        if not engine.depth and self._step != engine.step and layer.training and torch.is_grad_enabled():
            self._learn(layer)
        return layer.training is (engine.recorder.mode is Mode.TRAIN)

    def _learn(self, module: nn.Module) -> None:
        """A layer is the first of a step."""
        self._step = self._engine.step
        if self._engine.recorder.mode is not Mode.TRAIN:
            self._engine.begin_parts()
        # Where something is compiled, that may hide the whole: for a hook it would be compiled anew.
        if not has_compiled() and len(self._hooks) < _MOST and module not in self._hooks:
            hook = BoundaryHook(None, self._engine, "first part", self._begin)
            self._hooks[module] = module.register_forward_pre_hook(hook)

    def _begin(self, module: nn.Module, inputs: Any) -> None:
        engine = self._engine
        if not engine.rootless or engine.depth or not_for_real():
            return
        if module.training and torch.is_grad_enabled():
            engine.begin_parts()
        if self._watch.checks is not None:
            self._watch.checks.part(inputs)

    def detach(self) -> None:
        """Take the hooks off. Idempotent."""
        while self._hooks:
            self._hooks.popitem()[1].remove()
