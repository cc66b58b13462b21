"""Finds models, losses and optimizers of PyTorch as they are first used.

Two hooks that PyTorch offers for all modules and all optimizers are enough. A model that is called
in train mode, with gradients on and an optimizer that holds its parameters, is attached to within
that call, before any of its parts has run: the first step is complete. Where only the optimizer's
step is seen (a compiled model), that step has all but the activations.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet, ref

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from tdbg_lab.capture.attaching import attach
from tdbg_lab.capture.auto.first_losses import FirstLosses
from tdbg_lab.capture.auto.living import Living, is_reached, parameter_ids
from tdbg_lab.capture.auto.names import held_with, lasting, let_go, named_as_in_program, visible
from tdbg_lab.capture.of_keras import is_layer
from tdbg_lab.capture.pytorch.backward import follow, latest, leave
from tdbg_lab.capture.pytorch.fleeting import Fleeting
from tdbg_lab.capture.pytorch.frames import outside
from tdbg_lab.capture.pytorch.libraries import as_pytorch, show_optimizers
from tdbg_lab.capture.pytorch.moment import not_for_real
from tdbg_lab.capture.pytorch.naming import is_loss
from tdbg_lab.capture.pytorch.session import TorchSession
from tdbg_lab.capture.pytorch.unwrapping import calls_hooks, unwrapped
from tdbg_lab.capture.registry import open_handles

if TYPE_CHECKING:
    from collections.abc import Iterable
    from weakref import ReferenceType

    from torch.utils.hooks import RemovableHandle

    from tdbg_lab.capture.auto.watch import AutoWatch

__all__ = ["TorchFinder"]

_MAX_KNOWN = 100_000
_MAX_PASSES = 64
"""Backward passes that a model waits for gradients of its own."""
_MAX_FRUITLESS = 32
"""Models in a row that nobody was found to train, after which the step of an optimizer is waited for: a
program that makes a layer anew in each forward would be searched at each."""
_SCRIPTED = (
    "what trains is compiled by TorchScript, which takes no hooks: expected a plain module; called as "
    "torch.nn.Sequential(model), its parameters and gradients are seen"
)
_ABOUT_OUR_HOOK = "Using .torch.compile.module.. when there are global hooks on modules"
"""PyTorch warns about the hook, of which the program knows nothing."""


class TorchFinder:
    """Attaches to what PyTorch trains."""

    def __init__(self, watch: AutoWatch, _module: str) -> None:
        self._watch = watch
        self._hooks: list[RemovableHandle] = []
        self._known: dict[int, ReferenceType[nn.Module]] = {}
        """Modules that need no further look, by id."""
        self._waiting: dict[int, _Candidate] = {}
        """Models that nobody trains so far, by id."""
        self._met: WeakSet[Optimizer] = WeakSet()
        self._copied: WeakKeyDictionary[TorchSession, int] = WeakKeyDictionary()
        """The step at which a copy of its model began to be trained first, by the training."""
        self._losses: list[RemovableHandle] = []
        self._first = FirstLosses(watch.guarded)
        self._others = show_optimizers()
        self._fruitless = 0

    def start(self) -> None:
        """Look from now on."""
        self._hooks = [
            register_module_forward_pre_hook(self._called),
            register_optimizer_step_pre_hook(self._steps),
        ]
        follow(self)
        warnings.filterwarnings("ignore", message=_ABOUT_OUR_HOOK)

    def stop(self) -> None:
        """Take the hooks off."""
        leave(self)
        self._first.detach()
        self._others.detach()
        filters: Any = warnings.filters
        filters[:] = [one for one in filters if _ABOUT_OUR_HOOK not in str(one[1])]
        for hooks in (self._hooks, self._losses):
            while hooks:
                hooks.pop().remove()
        self._known.clear()
        self._waiting.clear()

    # -- the two hooks ----------------------------------------------------------------------------

    def _called(self, module: nn.Module, _args: Any) -> None:
        if torch.compiler.is_compiling():
            return
        known = self._known.get(id(module))
        if known is None or known() is not module:
            self._watch.guarded(self._meet, module)

    def _steps(self, optimizer: Optimizer, _args: Any, _kwargs: Any) -> None:
        if torch.compiler.is_compiling():  # a step that is compiled as a whole: nothing else of it is seen
            outside(self._stepped, optimizer)
        else:
            self._stepped(optimizer)

    def _stepped(self, optimizer: Optimizer) -> None:
        if optimizer not in self._met:
            self._met.add(optimizer)
            self._watch.guarded(self._meet_optimizer, optimizer)
        if self._first.passes:
            self._first.forget()

    # -- models -----------------------------------------------------------------------------------

    def _meet(self, module: nn.Module) -> None:
        """A module is called that is not known: it is no part of a known one."""
        if not self._watch.active or not self._hooks or not_for_real():
            return
        if is_loss(module):
            self._meet_loss(module)
        elif self._watch.left_alone or any(
            session.covers(module) or session.is_wrapped_by(module) for session in _sessions()
        ):
            self._remember(module.modules())
        elif next(module.parameters(), None) is None:
            self._meet_other(module)
        elif module.training and torch.is_grad_enabled() and not _is_fitted(module):
            self._consider(module)

    def _consider(self, module: nn.Module) -> None:
        """Attach if somebody trains it; else look again at its 2nd, 4th, 8th, ... call."""
        candidate = self._waiting.get(id(module))
        if candidate is None or candidate.module() is not module:
            self._remember(part for part in module.modules() if part is not module)
            candidate = self._waiting[id(module)] = _Candidate(module)
        trainable = [one for one in module.parameters() if one.requires_grad and one.is_leaf]
        candidate.calls += bool(trainable)  # as long as all is frozen it is evaluated
        if not trainable or candidate.calls & (candidate.calls - 1) or self._fruitless >= _MAX_FRUITLESS:
            return
        living = self._look_around()
        holders = living.holders({id(one) for one in trainable})
        own = [one for one in holders if one not in self._met]
        if own and self._learns_for_another(module):
            self._remember([module])
            self._met.update(own)
        elif own:
            self._attach(living, own, called=module)
        elif holders:  # a model that is trained has got it since
            self._remember([module])
            for session in _sessions():
                session.note_gained(module, holders)
        elif candidate.moved and not is_layer(module) and self._watch.takes_another():  # by hand
            self._begin({"": module}, None, called=module)
        else:
            self._fruitless += 1

    def _learns_for_another(self, module: nn.Module) -> bool:
        """Whether a training that goes on copies its model again and again, to learn from the copies.

        So it is with a learner for each task, in meta-learning. The first ones are trainings like any other.
        """
        for session in (handle.session for handle in self._watch.handles(of_this_thread=True)):
            if not isinstance(session, TorchSession) or not session.has_equal(module):
                continue
            if session.engine.step > self._copied.setdefault(session, session.engine.step):
                return True
        return False

    # -- backward passes, as a `Follower` ---------------------------------------------------------

    last_active_ns = -1
    """Of no model of its own."""

    def begin_backward(self, objective: torch.Tensor, weight: Any) -> None:
        """Sessions record it; without one, it may be of a training that is found later."""
        self._first.begin_backward(objective, weight)

    def end_backward(self, *, own: bool) -> None:  # noqa: ARG002 - of a `Follower`
        """Models that wait may have got gradients."""
        if self._first.passes:
            self._first.end_backward()
        if self._waiting:
            self._watch.guarded(self._note_gradients)

    def _note_gradients(self) -> None:
        """Which of the models that wait have got gradients; they may be set to None before the next call."""
        gone = [key for key, candidate in self._waiting.items() if not candidate.passed()]
        for key in gone:
            del self._waiting[key]

    def _meet_optimizer(self, optimizer: Optimizer) -> None:
        """An optimizer steps for the first time, and nothing it moves was attached to as it was called."""
        if not self._watch.active or not calls_hooks(optimizer):  # it has another one make its step
            return
        moved = parameter_ids(optimizer)
        for session in _sessions():
            if session.moves(moved):
                session.meet(optimizer)
                return
        if not self._watch.left_alone:
            living = self._look_around()
            if all(one is not optimizer for one in living.inner()):
                self._attach(living, [optimizer], called=None)

    def _look_around(self) -> Living:
        """What the program holds now; an optimizer within another one needs no look of its own."""
        let_go()
        self._others.look()
        living = Living.now()
        self._met.update(living.inner())
        return living

    def _attach(self, living: Living, own: list[Optimizer], *, called: nn.Module | None) -> None:
        others = [
            one
            for one in living.companions(own)
            if one not in own and one not in self._met and living.takes_part(one)
        ]
        others = list(map(living.as_held, others))
        seen = [*visible(others), *held_with(own, others)]  # what the program cannot see is left over
        others = [one for one in others if any(one is other for other in seen)]
        optimizers = [*map(living.as_held, own), *others]
        roots = [as_pytorch(lasting(root, optimizers)) for root in living.roots(optimizers)]
        if called is None:
            roots += [
                one for one in living.beside(roots) if not any(known.covers(one) for known in _sessions())
            ]
        elif not any(_is_within(called, root) or _is_within(root, called) for root in roots):
            roots.append(called)
        if not roots:
            self._watch.missed = (
                f"{type(own[0]).__name__} moves tensors that are parameters of no model of the program: "
                "tensors of its own are seen once they are parameters of a torch.nn.Module; with copies that "
                "functional_call is given, tdbg_lab.attach(model) in the script captures what the layers "
                "return"
            )
        elif self._watch.takes_another():
            self._begin(named_as_in_program(roots, living.paths()), optimizers, called=called)

    def _begin(
        self, roots: dict[str, nn.Module], optimizers: list[Optimizer] | None, *, called: nn.Module | None
    ) -> None:
        roots = {name: one for name, one in roots.items() if not isinstance(one, torch.jit.ScriptModule)}
        if not roots:
            self._watch.missed = _SCRIPTED
            return
        handle = attach(
            roots,
            optimizer=None if optimizers is None else named_as_in_program(optimizers),
            **self._watch.next_settings(),
        )
        self._end_earlier(roots)
        self._watch.begun(handle)
        self._fruitless = 0
        self._met.update(map(unwrapped, optimizers or ()))
        for root in roots.values():
            self._remember(root.modules())
        put_around = any(_is_within(root, called) and root is not called for root in roots.values())
        if isinstance(handle.session, TorchSession):
            if called is None:
                self._hand_over(handle.session)
            elif not put_around:
                handle.session.catch_up(called)

    def _hand_over(self, session: TorchSession) -> None:
        """What ``backward`` was called on in the step that is made now, unless a module computed it."""
        loss = self._first.of_step()
        if loss is not None and not self._losses:
            session.take_first_loss(loss)

    def _end_earlier(self, roots: dict[str, nn.Module]) -> None:
        """End the trainings of these models that nothing moves any longer, as with another head."""
        for handle in self._watch.handles():
            session = handle.session
            if not isinstance(session, TorchSession) or not session.lost_its_optimizers:
                continue
            if any(session.covers(root) for root in roots.values()):
                handle.detach()

    # -- losses -----------------------------------------------------------------------------------

    def _meet_loss(self, module: nn.Module) -> None:
        """A loss is called that is not known."""
        if all(not session.covers(module) for session in _sessions()):
            self._losses = [one for one in self._losses if one.hooks_dict_ref() is not None]
            self._losses.append(module.register_forward_hook(_LossHook()))
        self._remember([module])

    def _meet_other(self, module: nn.Module) -> None:
        """What holds no parameters is called by the program itself: it may be the loss."""
        session = _newest_session()
        if session is not None:
            if session.may_be_loss(module):
                self._hooks.append(_OtherHook.on(module))
            self._remember(module.modules())  # a loss within it is a part

    # -- memory -----------------------------------------------------------------------------------

    def _remember(self, modules: Iterable[nn.Module]) -> None:
        if len(self._known) > _MAX_KNOWN:  # a program that makes modules as it goes
            self._known = {key: known for key, known in self._known.items() if known() is not None}
        for module in modules:
            self._known[id(module)] = ref(module)


def _is_within(module: nn.Module, whole: nn.Module | None) -> bool:
    return whole is not None and any(part is module for part in whole.modules())


class _Candidate:
    """A model in train mode that nobody trains so far."""

    __slots__ = ("_passes", "calls", "module", "moved")

    def __init__(self, module: nn.Module) -> None:
        self.module = ref(module)
        self.calls = 0
        self.moved = False
        """Whether a backward has reached it."""
        self._passes = 0

    def passed(self) -> bool:
        """A backward is over: look for gradients, a few times. False when the model is gone."""
        module = self.module()
        if module is not None and not self.moved and self._passes < _MAX_PASSES:
            self._passes += 1
            self.moved = is_reached(module)
        return module is not None


class _LossHook(Fleeting):
    """Tells the training whose model ran last what a loss is given and returns."""

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        """A forward hook."""
        if torch.compiler.is_compiling():
            return
        session = _newest_session()
        if session is not None:
            session.take_loss(module, args, output)


class _OtherHook(Fleeting):
    """Shows the training whose model ran last what a module returns, as long as that may be its loss."""

    handle: RemovableHandle

    @classmethod
    def on(cls, module: nn.Module) -> RemovableHandle:
        """Hang one on a module."""
        hook = cls()
        hook.handle = module.register_forward_hook(hook)
        return hook.handle

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        """A forward hook."""
        session = None if torch.compiler.is_compiling() else _newest_session()
        if session is None:
            return
        if session.may_be_loss(module):
            session.hear_module(module, args, output)
        else:
            self.handle.remove()


def _is_fitted(module: nn.Module) -> bool:
    """Whether Keras trains what is called, so that no optimizer of PyTorch is looked for."""
    if not is_layer(module):
        return False
    from tdbg_lab.capture.keras.session import KerasSession

    return any(isinstance(one.session, KerasSession) for one in open_handles())


def _newest_session() -> TorchSession | None:
    """Of the training that this thread was last seen at."""
    return latest(_sessions())


def _sessions() -> list[TorchSession]:
    """Of all handles that are attached, also those that the program made itself; the newest last."""
    return [one.session for one in open_handles() if isinstance(one.session, TorchSession)]
