"""Everything that hangs on the models and optimizers of one handle, and how it comes off again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary, WeakSet, ref

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from tdbg_lab.capture.of_keras import is_layer
from tdbg_lab.capture.pytorch.backward import follow, leave
from tdbg_lab.capture.pytorch.checks.predictions import PredictionProbe
from tdbg_lab.capture.pytorch.checks.watch import CheckWatch
from tdbg_lab.capture.pytorch.copies import CopyWatch
from tdbg_lab.capture.pytorch.evaluated_sets import EvaluatedSets
from tdbg_lab.capture.pytorch.first_part import FirstPart
from tdbg_lab.capture.pytorch.fleeting import ScriptWatch
from tdbg_lab.capture.pytorch.functional import FunctionalProbe
from tdbg_lab.capture.pytorch.graphs import GraphWatch
from tdbg_lab.capture.pytorch.hook import BoundaryHook, StepHook
from tdbg_lab.capture.pytorch.keras_layers import once_built
from tdbg_lab.capture.pytorch.last_measured import LastMeasured
from tdbg_lab.capture.pytorch.layer_hooks import LayerHooks
from tdbg_lab.capture.pytorch.libraries import show_optimizers
from tdbg_lab.capture.pytorch.loaders import LoaderWatch
from tdbg_lab.capture.pytorch.losses import LossProbe, hook_losses
from tdbg_lab.capture.pytorch.modules import hook_modules
from tdbg_lab.capture.pytorch.naming import module_sites, parameter_sites
from tdbg_lab.capture.pytorch.objectives import Objectives
from tdbg_lab.capture.pytorch.optimizers import OptimizerWatch
from tdbg_lab.capture.pytorch.parameters import ParameterProbe
from tdbg_lab.capture.pytorch.roots import RootProbe, compiled_for_hooks, in_place
from tdbg_lab.capture.pytorch.settings import TorchSettings
from tdbg_lab.capture.pytorch.stance import EagerStance
from tdbg_lab.capture.pytorch.unwrapping import calls_hooks
from tdbg_lab.capture.pytorch.values import local
from tdbg_lab.capture.pytorch.zero import is_divided
from tdbg_lab.capture.ranks import SilentWriter, default_place
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch import nn
    from torch.utils.hooks import RemovableHandle

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.naming import ModuleSite
    from tdbg_lab.capture.pytorch.shown import ShownOptimizer

__all__ = ["Owner", "TorchSession"]

_COMPILED_LOSS = (
    "a loss is computed inside compiled code, where hooks do not fire: it is seen on saved steps only"
)


class Owner(Protocol):
    """The handle, as its hooks know it."""

    def at_step_end(self) -> None:
        """A step is complete; may raise `TrainingStopped`."""


def _are_equal(some: Mapping[str, nn.Parameter], others: Mapping[str, nn.Parameter]) -> bool:
    if not some or some.keys() != others.keys():
        return False
    try:
        return all(
            torch.equal(local(one).detach(), local(others[name]).detach()) for name, one in some.items()
        )
    except RuntimeError:  # on two devices, or without values so far
        return False


class TorchSession:
    """Hooks of one handle. Holds models and optimizers weakly; the hooks hold the handle.

    Parameters
    ----------
    owner
        Kept alive by the hooks. Its `at_step_end` is called after each step, unguarded: it may
        stop the training.
    """

    def __init__(
        self,
        engine: Engine,
        owner: Owner,
        models: Mapping[str, nn.Module],
        optimizers: Mapping[str, Optimizer],
        losses: Mapping[str, nn.Module],
    ) -> None:
        self.engine = engine
        self._removable: list[RemovableHandle] = []
        self._step_hooks: list[RemovableHandle] = []
        self._hooks_of: WeakKeyDictionary[Optimizer, tuple[RemovableHandle, ...]] = WeakKeyDictionary()
        self._in_step_hook = False
        self._told = False
        self._losses: list[BoundaryHook] = []
        self._was_optimized = bool(optimizers)
        self._stance = EagerStance(allowed=engine.plan.config.run_eager)
        self._layers = LayerHooks(fixed=not self._stance.allowed)  # compiled code is called with them
        engine.layers = ref(self._layers)
        self._last = LastMeasured(engine.recorder)
        self._resting = LayerHooks(fixed=not self._stance.allowed)
        """Hooks of roots that must not hang where nothing of a layer is due."""
        self._rested = False
        self._roots: WeakKeyDictionary[nn.Module, RootProbe] = WeakKeyDictionary()
        self._root_hooks: WeakKeyDictionary[nn.Module, tuple[RemovableHandle, ...]] = WeakKeyDictionary()
        self._given_losses: WeakSet[nn.Module] = WeakSet(losses.values())
        self._loss_probes: dict[str, LossProbe] = {}
        sites = self._sites = module_sites(models)
        self._place(sites)
        self.parameters = ParameterProbe(engine, parameter_sites(models))
        self.watch = OptimizerWatch(engine, self.parameters)
        self._first = FirstPart(engine, self.watch)
        self.settings = TorchSettings(engine, self.watch)
        if engine.plan.config.checks and not isinstance(engine.writer, SilentWriter):
            several = default_place().world_size > 1
            self.watch.checks = CheckWatch(
                engine, models, self.parameters, several=several, changed=self._take_in
            )
        self._functional = FunctionalProbe(engine, sites)
        engine.guard.state, engine.guard.put_back = torch.is_grad_enabled, torch.set_grad_enabled
        self._loaders = LoaderWatch(engine)
        self._sets = EvaluatedSets(engine)
        engine.sets = ref(self._sets)
        self._copies = CopyWatch(engine, self.parameters)
        self._graphs = GraphWatch(engine)
        self._scripts = ScriptWatch()
        self._others = show_optimizers(self._made)
        self._owner = ref(owner)
        try:
            hook_modules(engine, sites, self._layers, self._last, self._first)
            self._losses, handles = hook_losses(owner, engine, losses, sites, self._is_sure)
            self._removable += handles
            self._hook_boundaries(owner, models, optimizers)
            self.watch.objectives = Objectives(engine, facts=not self._losses)
            follow(self)
        except BaseException:
            self.detach()
            raise

    def _hook_boundaries(
        self, owner: Owner, models: Mapping[str, nn.Module], optimizers: Mapping[str, Optimizer]
    ) -> None:
        engine = self.engine
        for name, optimizer in optimizers.items():
            self.watch.add(name, optimizer)
            self._hook_optimizer(owner, optimizer)
        weak = {name: ref(model) for name, model in models.items()}
        for model in models.values():
            self._hook_root(owner, model)
            if is_layer(model) and not model.built:
                self._removable.append(once_built(model, partial(self._find_weights, weak)))
        if not optimizers and models:
            hook = StepHook(None, engine, "optimizer", self._meet)  # global: must keep nothing alive
            self._step_hooks.append(register_optimizer_step_pre_hook(hook))
        self._stance.early = any(map(in_place, models.values()))
        if engine.mask & engine.module_bits:  # whether a first forward is seen is not known yet
            self._stance.take()
        elif self._stance.early:
            self._prepare()

    # -- roots ------------------------------------------------------------------------------------

    def _hook_root(self, owner: object, model: nn.Module) -> None:
        root = RootProbe(
            self.engine, model, self.watch, self._stance, self._functional, hooked=len(self._layers) > 0
        )
        self._roots[model] = root
        hook = partial(BoundaryHook, owner, self.engine, "steps", stance=self._stance)
        before, after = hook(root.begin, None if self.watch else self._check), hook(root.end)
        handles = (
            model.register_forward_pre_hook(before, with_kwargs=True),
            # ZeRO has a hook of its own that puts other tensors in the place of those that were returned.
            model.register_forward_hook(
                after, always_call=True, prepend=any(map(is_divided, model.parameters()))
            ),
        )
        self._removable += handles
        self._root_hooks[model] = handles

    def _check(self) -> None:
        """Without an optimizer the boundary of a step is the next forward."""
        if not self.watch:
            self._at_step_end()

    # -- optimizers -------------------------------------------------------------------------------

    def _hook_optimizer(self, owner: object, optimizer: Optimizer) -> None:
        before = StepHook(owner, self.engine, "steps", self._before)
        after = StepHook(owner, self.engine, "steps", self._after, self._at_step_end)
        hooks = optimizer.register_step_pre_hook(before), optimizer.register_step_post_hook(after)
        self._hooks_of[optimizer] = hooks
        self._step_hooks += hooks

    def _made(self, shown: ShownOptimizer) -> None:
        """Another library has made an optimizer, within the program's call."""
        self.engine.guard.run("optimizer/replaced", self._replace, shown)

    def _replace(self, shown: ShownOptimizer) -> None:
        """It may have taken one over that was given, and have it move other tensors."""
        inner, owner = shown.inner, self._owner()
        if owner is not None and inner in self.watch:
            for hook in self._hooks_of.pop(inner):
                hook.remove()
            self.watch.replace(inner, shown)
            self._hook_optimizer(owner, shown)

    def _meet(self, optimizer: Optimizer, _args: Any, _kwargs: Any) -> None:
        """An optimizer steps that was not given: adopt it when it moves our parameters."""
        owner = self._owner()
        if optimizer in self.watch or owner is None or not calls_hooks(optimizer):
            return
        self._others.look()  # a library may have been loaded since
        ours = {id(value) for _, value in self.parameters.live()}
        if any(id(one) in ours for group in optimizer.param_groups for one in group["params"]):
            self.watch.join(str(len(self.watch)) if len(self.watch) else "", optimizer)
            self._hook_optimizer(owner, optimizer)

    def _before(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self._functional.active:  # the forward was interrupted
            self._functional.end()
        if self._stance.holds:
            self._stance.leave()
        if self.settings.active:
            self.engine.guard.run("settings", self.settings.before, optimizer, args, kwargs)
        self.watch.before(optimizer, args, kwargs)
        if self.engine.phases is not None:
            self.engine.step_begins()

    def _after(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self.engine.phases is not None or self.engine.rootless:
            self.engine.step_ends()
        self.watch.after(optimizer, args, kwargs)
        if self._stance.early or self.engine.rootless:
            self._prepare()
        for hook in self._losses:
            if hook.compiled and not self._told:
                self._told = True
                self.engine.guard.notice("compiled losses", _COMPILED_LOSS)

    def _prepare(self) -> None:
        """Get ready for the next step: compiled code will be running around its forwards."""
        engine, stance = self.engine, self._stance
        due = engine.module_mask
        if stance.early:
            due |= engine.due_at(engine.step) & engine.module_bits
            self._rest_roots(due=due != 0)
        if due:
            stance.within = False
            stance.take()

    def _rest_roots(self, *, due: bool) -> None:
        """Have no hooks on models that would be compiled because of them, unless a layer is due."""
        if not self._rested:
            self._rested = True
            for model, handles in self._root_hooks.items():
                for handle in handles if compiled_for_hooks(model) else ():
                    hook = (handle.hooks_dict_ref() or {}).get(handle.id)
                    if hook is not None:
                        self._resting.add(handle, hook)
        if due:
            self._resting.hang()
        else:
            self._resting.take_off()

    def _at_step_end(self) -> None:
        owner = self._owner()
        if owner is None:
            return
        if self._loaders.seen:
            self._loaders.at_step_end()
        if self._sets.batches != self._sets.accounted:
            self._sets.end_step()
        self._in_step_hook = True
        try:
            owner.at_step_end()
        except BaseException:
            self._in_step_hook = False  # the exception ends the iteration over the hooks
            if not self.engine.open:
                self._remove(self._step_hooks)
            raise
        self._in_step_hook = False

    # -- what is found while training goes on -----------------------------------------------------

    def covers(self, module: nn.Module) -> bool:
        """Whether the module is one that this session looks at, or a part of one."""
        known = module in self._roots or module in self._given_losses
        return known or any(site.module() is module for site in self._sites)

    def is_wrapped_by(self, module: nn.Module) -> bool:
        """Whether the module is put around a model, as ``DataParallel`` is, and trains nothing else."""
        if not any(part in self._roots for part in module.modules()):
            return False
        return self._holds_all_of(module)

    def _holds_all_of(self, module: nn.Module) -> bool:
        own = {id(value) for _, value in self.parameters.live()}
        return all(id(one) in own for one in module.parameters() if one.requires_grad)

    def has_equal(self, module: nn.Module) -> bool:
        """Whether a model of it has the same values under the same names, as one has that was copied."""
        own = dict(module.named_parameters())
        return any(_are_equal(dict(root.named_parameters()), own) for root in list(self._roots))

    @property
    def lost_its_optimizers(self) -> bool:
        """Whether it was given optimizers, and the program has none of them any longer."""
        return self._was_optimized and not len(self.watch)

    def moves(self, parameters: set[int]) -> bool:
        """Whether one of these parameters (by id) belongs to the models."""
        return any(id(value) in parameters for _, value in self.parameters.live())

    def meet(self, optimizer: Optimizer) -> None:
        """Adopt an optimizer that moves the models' parameters, if it is not known."""
        self._meet(optimizer, (), {})

    def _take_in(self, models: Mapping[str, nn.Module]) -> None:
        """Look at the layers as they are now: some may have come since, moved, or taken another's place."""
        sites, layers = module_sites(models), self._layers
        if sites != self._sites:
            self._sites = sites
            self._place(sites)
            hung = layers.hung
            layers.remove()
            layers.hang()
            hook_modules(self.engine, sites, layers, self._last, self._first)
            if not hung:
                layers.take_off()
            self._functional.place(sites)
        self.parameters.place(parameter_sites(models))

    def _find_weights(self, models: Mapping[str, ref[nn.Module]]) -> None:
        """A model of Keras has got its weights."""
        live = {name: model for name, weak in models.items() if (model := weak()) is not None}
        self.engine.guard.run("check/layers", self._take_in, live)

    def _place(self, sites: Iterable[ModuleSite]) -> None:
        """Tell the plan where modules are that collections name."""
        self.engine.plan.place_modules(
            {id(m): site.path for site in sites if (m := site.module()) is not None}
        )

    def note_gained(self, module: nn.Module, optimizers: Iterable[Optimizer]) -> None:
        """Say that a module is not seen that an optimizer of ours moves: it is no part of the models.

        Layers that come to a model while it is trained are taken in, where the loop is looked at; and what
        holds nothing but what is seen, as an exported model does, is another form of the same.
        """
        looked_at = self.watch.checks is not None
        if not self.engine.open or not any(one in self.watch for one in optimizers):
            return
        if looked_at and any(part is module for model in self._roots for part in model.modules()):
            return
        if self._holds_all_of(module):
            return
        self.engine.guard.notice(
            "gained",
            f"a layer ({type(module).__name__}) was added after capture had begun: what it holds and returns "
            "is not seen; expected: all layers there when capture begins",
        )

    def catch_up(self, module: nn.Module) -> None:
        """A call of `module` is under way that began before the hooks were there."""
        root = self._roots.get(module)
        if root is not None:
            self.engine.guard.run("steps", root.begin, module, ())
        else:
            self.engine.see_parts()

    def take_loss(self, module: nn.Module, args: Any, output: Any) -> None:
        """Record what a loss that is not hooked is given and returns; those of one class share their name."""
        engine = self.engine
        if not engine.open or self.covers(module):
            return
        name = type(module).__name__
        probe = self._loss_probes.setdefault(name, LossProbe(engine, name))
        if engine.plan.config.checks and engine.mask & engine.costly and not probe.is_of(module):
            engine.guard.run(
                f"check/{probe.name}",
                lambda: probe.take_over(module, PredictionProbe.of(engine, name, module)),
            )
        engine.guard.run(probe.name, probe.take, module, args if probe.is_of(module) else (), output)

    def may_be_loss(self, module: nn.Module) -> bool:
        """Whether what a module gives may be the loss that nobody has told."""
        objectives = self.watch.objectives
        return objectives is not None and objectives.evaluated.may_be(module)

    def hear_module(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """A module that may be the loss was called."""
        if self.watch.objectives is not None and not self.engine.depth:
            self.watch.objectives.evaluated.hear(module, args, output)

    # -- backward passes --------------------------------------------------------------------------

    @property
    def last_active_ns(self) -> int:
        """When this thread was seen to train last, by `time.perf_counter_ns`; -1 if another one trains."""
        engine = self.engine
        return engine.last_active_ns if engine.open and engine.trains_here else -1

    def begin_backward(self, objective: torch.Tensor, weight: Any) -> None:
        """What is recorded of it, and that Python is free from now on."""
        engine = self.engine
        if engine.open:
            try:  # `Guard.run` would take a call more, at each step
                engine.begin_backward()
            except Exception as error:  # noqa: BLE001
                engine.guard.failed("backward", error)
            self._take_objective(objective, weight)
            engine.recorder.calm(now=True)

    def _take_objective(self, objective: torch.Tensor, weight: Any) -> None:
        """Record what ``backward`` is called on, where no loss is seen otherwise or optimizers take turns."""
        engine, watch = self.engine, self.watch
        objectives = watch.objectives
        if objectives is None:
            return
        if objectives.own is not None:
            engine.guard.run("loss/objective", objectives.look, objective)
        if engine.looks_left:
            engine.guard.run("loss/objective", objectives.look_for_more, objective)
        several = not watch.alone and len(watch) > 1 and not watch.within_closure
        if objectives.needless and not several:
            return
        for hook in self._losses:
            if hook.compiled:
                return  # their values, which are seen on saved steps only, stay the one series
        engine.guard.run(
            "loss/objective",
            objectives.take,
            objective,
            weight,
            several=several,
            alone=watch.alone,
            moved=watch.moved,
            known=watch.known,
        )

    def take_first_loss(self, loss: torch.Tensor) -> None:
        """The step that is made now is the first, and ``backward`` was called on this in it."""
        if not self._stance.early:  # else the model may tell a loss of its own from the next step on
            self._take_objective(loss, None)

    def end_backward(self, *, own: bool) -> None:
        """A backward is over; `own` says that it belongs to the training."""
        engine, watch = self.engine, self.watch
        engine.recorder.calm(now=False)
        if watch.objectives is not None:
            watch.objectives.end_backward()
        if not own or not engine.open:
            return
        if engine.phases is not None and not watch.within_closure:
            engine.end_backward()
        if engine.recorder.mode is Mode.TRAIN and not watch:
            watch.by_hand.read(gradients=True)

    def _is_sure(self) -> bool:
        return self._stance.sure

    # -- the end ----------------------------------------------------------------------------------

    def detach(self) -> None:
        """Take off every hook. Idempotent.

        Called from within an optimizer's own hook (a stop that does not raise), the hooks on
        optimizers stay, inert, because their dictionary is being iterated over; the next call
        takes them off.
        """
        leave(self)
        self._functional.end()
        self._stance.leave()
        self.watch.detach()
        self._loaders.detach()
        self._sets.detach()
        self._copies.detach()
        self._graphs.detach()
        self._scripts.detach()
        self._others.detach()
        self._layers.remove()
        self._first.detach()
        self._resting.remove()
        self._remove(self._removable)
        if not self._in_step_hook:
            self._remove(self._step_hooks)

    @staticmethod
    def _remove(handles: list[RemovableHandle]) -> None:
        while handles:
            handles.pop().remove()
