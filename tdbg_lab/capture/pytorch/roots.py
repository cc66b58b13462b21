"""Root forwards: a call of a model that was given, not of a part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch

from tdbg_lab.capture.of_keras import is_layer
from tdbg_lab.capture.pytorch.evaluation_loss import LATEST
from tdbg_lab.capture.pytorch.keras_layers import evaluates
from tdbg_lab.capture.pytorch.losses import LossProbe, own_loss, record_parts
from tdbg_lab.capture.pytorch.moment import not_for_real
from tdbg_lab.capture.pytorch.naming import class_name
from tdbg_lab.capture.pytorch.values import tensors_in
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from torch import nn

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.functional import FunctionalProbe
    from tdbg_lab.capture.pytorch.optimizers import OptimizerWatch
    from tdbg_lab.capture.pytorch.stance import EagerStance

__all__ = ["RootProbe", "compiled_for_hooks", "in_place"]

_TRAIN = Mode.TRAIN
_LABELS_OF_STEP = "num_items_in_batch"
"""What transformers' models are told the number of labels by, of all batches of the step."""


def in_place(model: nn.Module) -> bool:
    """Whether ``model.compile()`` was called."""
    return getattr(model, "_compiled_call_impl", None) is not None


def compiled_for_hooks(model: nn.Module) -> bool:
    """Whether a model that is compiled in place is compiled only if hooks hang on it.

    PyTorch leaves the forward of its own classes alone, such as `nn.Sequential`, unless they have some.
    """
    return in_place(model) and type(model).__module__.startswith(("torch.nn.", "torch.ao."))


class RootProbe:
    """Begins and ends the forwards of one model."""

    __slots__ = (
        "_batch",
        "_engine",
        "_functional",
        "_held",
        "_hooked",
        "_is_keras",
        "_loss",
        "_name",
        "_stance",
        "_trained",
        "_watch",
    )

    def __init__(
        self,
        engine: Engine,
        model: nn.Module,
        watch: OptimizerWatch,
        stance: EagerStance,
        functional: FunctionalProbe,
        *,
        hooked: bool,
    ) -> None:
        self._engine = engine
        self._watch = watch
        self._stance = stance
        self._functional = functional
        self._name = class_name(model)
        self._loss = LossProbe(engine, self._name)
        self._hooked = hooked
        """Whether layers are hooked at all."""
        self._is_keras = is_layer(model)
        self._trained: ref[torch.Tensor] | None = next(
            (ref[torch.Tensor](one) for one in model.parameters() if one.requires_grad), None
        )
        """A parameter that is trained."""
        self._batch: ref[torch.Tensor] | None = None
        """What the last forward was given first."""
        self._held = False
        """Whether the stance was held already when the forward began."""

    def begin(self, module: nn.Module, args: Any, kwargs: Any = None) -> None:
        """Pre-hook of the model."""
        engine = self._engine
        if not_for_real():
            return
        training = module.training and not (self._is_keras and evaluates(kwargs))
        gradients = torch.is_grad_enabled()
        trained = None if self._trained is None else self._trained()
        if trained is not None and not trained.requires_grad and self._is_frozen():
            training = gradients = False
        again = engine.forwards and training and not engine.override and not self._watch
        if again and self._begins_step((args, kwargs), gradients=gradients):
            self._end_step_by_hand()
        if engine.phases is not None:
            self._look_at_batch(args, kwargs)
        engine.begin_forward(training=training, gradients=gradients)
        if engine.depth == 1:
            engine.adds_up = bool(kwargs) and kwargs.get(_LABELS_OF_STEP) is not None
            objectives = self._watch.objectives
            if objectives is not None:  # without a call, as long as nothing changes
                evaluated, LATEST.token = objectives.evaluated, objectives.evaluated.token
                in_train = gradients and engine.recorder.mode is _TRAIN
                if evaluated.learning or (evaluated.known and evaluated.listens is in_train):
                    engine.guard.run("loss/objective", evaluated.begin)
        checks = self._watch.checks
        if checks is not None and engine.depth == 1:
            checks.forward(module, (args, kwargs) if kwargs else args)
        self._held = self._stance.holds
        self._stance.early |= self._stance.within
        if engine.module_mask:
            self._begin_layers(module)

    def _begins_step(self, given: Any, *, gradients: bool) -> bool:
        """Whether a forward is of the next step, where no optimizer ends the last one.

        A backward ends it, or, where none is ever called, what was called last if it is not gone on with.
        """
        engine = self._engine
        if engine.by_backward or not gradients:
            return engine.backwards > 0
        return all(one.grad_fn is None for one in tensors_in(given))

    def _end_step_by_hand(self) -> None:
        """Without an optimizer a step ends where the next one begins."""
        engine, by_hand = self._engine, self._watch.by_hand
        if not engine.guard.run("optimizer/awaited", by_hand.awaits):
            engine.before_step()
            by_hand.read(gradients=False)
            engine.close_step()

    def _is_frozen(self) -> bool:
        """Whether nothing of the models can be trained now that could be: so they are evaluated by some.

        Programs that need the gradients of their inputs, such as forces of atoms, have no other way.
        """
        for _, value in self._watch.parameters.live():
            if value.requires_grad:
                self._trained = ref(value)
                return False
        return True

    def _look_at_batch(self, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> None:
        """Several forwards of one step may be of the same batch, as in sharpness-aware minimisation."""
        first = next(iter(args or (kwargs or {}).values()), None)
        if not isinstance(first, torch.Tensor):
            self._batch = None
        elif self._batch is not None and self._batch() is first:
            self._engine.loads_nothing()
        else:
            self._batch = ref(first)

    def _begin_layers(self, module: nn.Module) -> None:
        """Something of a layer is due in this forward."""
        engine, stance = self._engine, self._stance
        stance.take()
        if stance.within:
            engine.pass_layers()
            if not module.training:
                self._say_late()
            return
        if in_place(module):
            stance.early = True
        if engine.depth == 1:
            engine.layers_seen = False
            if engine.module_mask & self._functional.mask and stance.sure:
                self._functional.begin()

    def end(self, module: nn.Module, _args: Any, output: Any) -> None:
        """Forward hook of the model, called when it raised, too."""
        engine = self._engine
        if not_for_real():
            return
        if engine.depth <= 1 and engine.module_mask:
            if self._functional.active:
                self._functional.end()
            if self._hooked and not engine.layers_seen and output is not None:
                self._say_unseen()
        stance = self._stance
        if stance.holds and not (self._watch and (module.training or (self._held and stance.early))):
            stance.leave()  # else the loss, which may be compiled, is still to come, or all of the next step
        engine.end_forward()
        objectives = self._watch.objectives
        if objectives is not None and engine.mask & engine.costly:
            objectives.keep(output)
        if type(output) is not torch.Tensor:
            self._take_losses(output)

    def _take_losses(self, output: Any) -> None:
        """Record what the model says of its loss in what it returns."""
        engine, objectives = self._engine, self._watch.objectives
        if isinstance(output, Mapping):
            engine.guard.run("losses by name", record_parts, engine, output)
        loss = own_loss(output)
        if loss is None or self._is_known(loss):
            return
        if not torch.is_grad_enabled() and engine.may_evaluate():
            engine.see_evaluation()
        if objectives is not None:
            objectives.add_own(self._loss, loss)
        else:
            self._loss.add(loss)

    def _is_known(self, loss: torch.Tensor) -> bool:
        """Whether this is what a loss module within the model returned, under whose name it is recorded."""
        last = self._engine.last_loss
        return last is not None and last() is loss

    def _say_late(self) -> None:
        self._engine.guard.notice(
            "compiled evaluation",
            f"an evaluation of {self._name} runs as compiled code, in which no layer is called, so their "
            "outputs are not seen there",
        )

    def _say_unseen(self) -> None:
        self._engine.guard.notice(
            "layers",
            f"no layer of {self._name} is called in its forward (it runs as compiled code, as a script or "
            "as a CUDA graph, or calls layers that are no part of it), so their outputs are not seen",
        )
