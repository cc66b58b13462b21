"""Whether layers that behave differently in training and evaluation are in the mode they should be in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.parameter import is_lazy

from tdbg_lab.capture.pytorch.values import tensors_in
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.notes import Notes

__all__ = ["ModeWatch"]

_MAX_PARTS = 64
_TRAIN = Mode.TRAIN
_OFF_STEPS = 2
"""Optimizer steps for which a part must have been off: of those that are looked at, the second is at most
five steps from the first that was made so."""


class _Part(NamedTuple):
    """A layer that does something else in training than in evaluation."""

    name: str
    module: ref[nn.Module]
    trained: ref[nn.Module] | None
    """Itself, where it has parameters, or else the last layer before it that has some."""


class ModeWatch:
    """Dropout and batch normalisation of the models, looked at in each root forward."""

    def __init__(self, engine: Engine, notes: Notes, models: Iterable[tuple[str, nn.Module]]) -> None:
        self.evaluating = False
        """Whether the last forward was one of an evaluation."""
        self._engine = engine
        self._notes = notes
        self._models = [(name, ref(model)) for name, model in models]
        self._parts: dict[int, list[_Part]] = {}
        self._unused: set[str] = set()
        """Batch normalisations that nothing had ever been normalised by when they were found."""
        self._apart: dict[tuple[int, bool], list[_Part]] = {}
        """Parts that were in another mode than the whole at its last forward, by the whole and its mode."""
        self._off: list[_Part] = []
        """Parts that were in eval mode in a forward of training since the last step."""
        self._off_steps: dict[str, int] = {}
        self._passes = 0
        self._evaluations = 0
        self._in_eval = 0
        """Eval forwards with gradients since the last step."""
        self._attacked = False
        """Whether one of them was of inputs with gradients, as those have that are to mislead the model."""
        self._attacks = 0
        """Steps of training that followed on such forwards."""
        self._run = 0
        self._begun = False
        self.find()

    def find(self) -> None:
        """Look the layers up anew: the models changed."""
        self._parts, self._unused = {}, set()
        dropouts = norms = 0
        for prefix, weak in self._models:
            model = weak()
            if model is None:
                continue
            parts = self._parts[id(model)] = []
            trained: ref[nn.Module] | None = None
            for name, module in model.named_modules():
                if next(module.parameters(recurse=False), None) is not None:
                    trained = ref(module)
                if module is not model and len(parts) < _MAX_PARTS and _is_sensitive(module):
                    norm = isinstance(module, _NormBase)
                    dropouts, norms = dropouts + (not norm), norms + norm
                    one = _Part(f"{prefix}.{name}" if prefix else name, ref(module), trained)
                    parts.append(one)
                    if norm and _is_unused(module):
                        self._unused.add(one.name)
        self._notes.set("normalises", float(any(_begins_normalised(weak()) for _, weak in self._models)))
        self._notes.set("dropout_layers", float(dropouts))
        self._notes.set("batch_norm_layers", float(norms))

    def forward(self, module: nn.Module, inputs: Any) -> None:
        """A root is called."""
        training = module.training
        parts = self._parts.get(id(module))
        evaluating = self._engine.recorder.mode is not _TRAIN
        if evaluating or self.evaluating or not training or not torch.is_grad_enabled():
            self._note_evaluation(parts or (), inputs, evaluating=evaluating, training=training)
        if not parts:
            return
        apart = [one for one in parts if (part := one.module()) is not None and part.training is not training]
        if apart or self._apart.get((id(module), training)):
            self._note_parts(id(module), apart, training=training)

    def _note_evaluation(
        self, parts: Sequence[_Part], inputs: Any, *, evaluating: bool, training: bool
    ) -> None:
        """A forward that is not one of training, in its engine's mode or its own, or follows such a one."""
        grad = torch.is_grad_enabled()
        if evaluating and not self.evaluating:
            self._evaluations += 1
            self._notes.set("evaluations", float(self._evaluations))
        self.evaluating = evaluating
        if training and (evaluating or not grad):
            if any((part := one.module()) is not None and part.training for one in parts):
                self._passes += 1
                if self._passes & (self._passes - 1) == 0:  # at the powers of two
                    self._notes.set("eval_in_train", float(self._passes))
        elif not training and grad:
            self._in_eval += 1
            self._attacked = self._attacked or any(one.requires_grad for one in tensors_in(inputs))

    def _note_parts(self, whole: int, apart: list[_Part], *, training: bool) -> None:
        """Note which parts are in another mode than the whole."""
        fact = "part_in_eval" if training else "part_in_train"
        for one in self._apart.get((whole, training), ()):
            if one not in apart:
                self._notes.clear(f"{fact}/{one.name}")
                if training and self._off_steps.pop(one.name, 0):
                    self._notes.clear(f"part_off/{one.name}")
        for one in apart:
            self._notes.set(f"{fact}/{one.name}", 1.0, module=one.name)
        self._apart[whole, training] = apart
        if training and torch.is_grad_enabled():
            self._off += [one for one in apart if one not in self._off]

    def _note_off(self) -> None:
        """Note which parts were off in a step that trains the layer they belong to."""
        off, self._off = self._off, []
        for one in off:
            count = self._off_steps[one.name] = self._off_steps.get(one.name, 0) + 1
            if count == _OFF_STEPS and self._should_train(one):
                self._notes.set(f"part_off/{one.name}", 1.0, module=one.name)

    def _should_train(self, part: _Part) -> bool:
        """Whether a part in eval mode is one by mistake: the layer it belongs to has a gradient.

        To hold the running statistics of a trained network is one way to fine-tune it: of all its layers that
        are trained. Those that nothing was ever normalised by hold nothing.
        """
        if not _has_gradient(part):
            return False
        module = part.module()
        if not isinstance(module, _NormBase) or _is_unused(module):
            return True
        return any(
            isinstance(other := one.module(), _NormBase)
            and other.training
            and one.name not in self._unused
            and _has_gradient(one)
            for parts in self._parts.values()
            for one in parts
        )

    def before_step(self) -> None:
        """The optimizer is about to step: note in what mode the forwards ran."""
        if self._off:
            self._note_off()
        if self._in_eval or self._run or not self._begun:
            trained = self._engine.forwards > 0
            minded = any(self._parts.values())
            wrong = self._in_eval > 0 and not trained and minded
            self._run = self._run + 1 if wrong else 0
            if self._in_eval and not trained and not minded:
                self._engine.trains_in_eval = True
            if self._attacked and trained:
                self._attacks += 1
                if self._attacks & (self._attacks - 1) == 0:  # at the powers of two
                    self._notes.set("attacks", float(self._attacks))
            self._in_eval, self._attacked = 0, False
            self._notes.set("train_in_eval", float(self._run))
            if self._run == 1:
                self._notes.set("unused_norms", float(len(self._unused)))
            self._begun = True


def _begins_normalised(model: nn.Module | None) -> bool:
    """Whether the first layer, in the order they were made, is a normalisation."""
    leaves = (one for one in model.modules() if not one._modules) if model is not None else iter(())  # noqa: SLF001
    first = next(leaves, None)
    return isinstance(first, _NormBase | nn.LayerNorm | nn.GroupNorm)


def _has_gradient(part: _Part) -> bool:
    """Whether the layer that a part belongs to is trained."""
    layer = part.trained() if part.trained is not None else None
    return layer is not None and any(
        one.grad is not None for one in layer.parameters(recurse=False) if one.requires_grad
    )


def _is_unused(norm: _NormBase) -> bool:
    """Whether nothing was ever normalised by it, in training."""
    mean, variance = norm.running_mean, norm.running_var
    if mean is None or variance is None or mean.is_meta or is_lazy(mean):
        return False
    return not mean.any() and bool((variance == 1).all())


def _is_sensitive(module: nn.Module) -> bool:
    """Whether a layer does something else in training than in evaluation."""
    if isinstance(module, _DropoutNd):
        return module.p > 0
    if isinstance(module, _NormBase):
        return module.track_running_stats
    return isinstance(module, nn.RNNBase | nn.MultiheadAttention) and float(module.dropout) > 0
