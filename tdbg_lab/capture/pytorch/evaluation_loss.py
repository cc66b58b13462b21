"""Losses of evaluations where no loss module is known: what computes that of the training tells them.

Of a training ``backward`` tells the loss, of an evaluation nothing does. In the first forwards of the
training it is found out which function of PyTorch computes what ``backward`` is called on; from then on that
one is listened to in evaluations, whether the program calls it or a loss module does. Where none does, it may
be a module of the program's own that somebody shows us, or, where Python tells what functions return, a
function of the program's own. It may be the sum of several of these.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from pathlib import Path
from traceback import walk_stack
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

import tdbg_lab
from tdbg_lab.capture.pytorch.checks.predictions import PredictionProbe
from tdbg_lab.capture.pytorch.graphs import within_graph
from tdbg_lab.capture.pytorch.loss_functions import FUNCTIONS, LossFunction
from tdbg_lab.capture.pytorch.loss_terms import (
    ANY_RETURNED,
    Heard,
    LossSource,
    Returned,
    Term,
    are_alike,
    candidates,
    same_factor,
)
from tdbg_lab.capture.pytorch.moment import not_for_real
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import CodeType

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.accumulation import Accumulation
    from tdbg_lab.capture.pytorch.losses import LossProbe

__all__ = ["LATEST", "EvaluationLoss"]

_FORWARDS = 8
"""The first ones of the training, in which the function is looked for."""
_MOST = 64
"""Losses of one of them that are looked at: the last ones."""
_IN_VAIN = 64
"""Forwards in train mode, without gradients, after which nobody waits for a loss of them: somebody acts."""
_MOST_RETURNED = 16
"""Values that a function returns, of which the loss may be one: the first of a row, or a small dictionary."""
_LEFT_OUT = tuple(f"{Path(str(one.__file__)).parent}/" for one in (torch, tdbg_lab))
"""Where functions are that are not the program's own."""
_Audible = LossFunction | Returned
_is_transformed: Any = torch._C._functorch.is_functorch_wrapped_tensor  # noqa: SLF001


class _Latest(threading.local):
    """Whose model this thread has called last."""

    token: object = None


LATEST = _Latest()
_ALL = (*FUNCTIONS, ANY_RETURNED)


class EvaluationLoss:
    """Finds what computes the loss of a training, and records what that gives in evaluations.

    Parameters
    ----------
    probe
        Records the values; those of the training come from elsewhere.
    accumulation
        Knows whether losses are divided by the number of passes of a step.
    facts
        Whether to look at what the function is given in evaluations.
    """

    def __init__(self, engine: Engine, probe: LossProbe, accumulation: Accumulation, *, facts: bool) -> None:
        self._engine = engine
        self._probe = probe
        self._accumulation = accumulation
        self._facts = facts
        self.token = object()
        """Stands for it in `LATEST`."""
        self.learning = True
        """Whether it is looked for."""
        self.known = False
        """Whether it was found."""
        self.listens = False
        self._left = _FORWARDS
        self._listened: tuple[_Audible, ...] = ()
        self._heard: deque[Heard] = deque(maxlen=_MOST)
        """Of the forward that was seen last in a training."""
        self._around: set[int] = set()
        """Identities of the code of all functions that were running when that began."""
        self._may_be: list[tuple[Term, ...]] = []
        """What may have computed the loss of the last pass."""
        self._terms: tuple[Term, ...] = ()
        """What computes the loss."""
        self._added: dict[int, torch.Tensor] = {}
        """Of an evaluation, the terms of a sum that were computed so far, by their places in it."""
        self._visit = -1
        """The visit they belong to."""
        self._in_vain = 0
        """Forwards in train mode, without gradients, that no loss has followed."""

    def begin(self) -> None:
        """A model is called, and it is not known what its loss is, or a training becomes an evaluation."""
        training = not self._may_evaluate()
        self._heard.clear()
        if not self.learning:
            self._in_vain += not training and self._engine.recorder.mode is Mode.TRAIN
            self._listen(() if training else self._sources)
        elif training and not self._left:
            self.detach()
        else:
            self._left -= training
            self._around = {id(frame.f_code) for frame, _ in walk_stack(sys._getframe())}  # noqa: SLF001
            self._listen(_ALL)

    def learn(self, objective: torch.Tensor, loss: torch.Tensor) -> None:
        """``backward`` is called on `objective`, which is `loss` before a scaler multiplies it."""
        if self._engine.rootless:  # `begin` is never called
            self._left -= 1
            self._listen(_ALL)
        last = self._may_be
        self._may_be = list(candidates(objective.grad_fn, loss, self._heard, self._around))
        self._heard.clear()
        found = next((one for one in self._may_be if any(are_alike(one, other) for other in last)), ())
        if found:
            self.learning, self.known, self._terms, self._may_be = False, True, found, []
            source = found[0].source
            if self._facts and len(found) == 1 and isinstance(source, LossFunction):
                name = self._probe.name.removeprefix("loss/")
                self._probe.facts = PredictionProbe(self._engine, name, source.kind)
            self._listen(self._sources if self._engine.rootless else ())
        elif self._left < 0:
            self.detach()

    @property
    def _sources(self) -> tuple[_Audible, ...]:
        """What to listen to in evaluations."""
        return tuple({one.source: None for one in self._terms if not isinstance(one.source, nn.Module)})

    def may_be(self, module: nn.Module) -> bool:
        """Whether a module may be the loss, or a part of it."""
        return self.learning or any(one.source is module for one in self._terms)

    def returned(self, code: CodeType, value: Any) -> bool:
        """A function that is listened to returns this: whether that may be a loss."""
        losses = list(_losses(value))
        if not losses or code.co_filename.startswith(_LEFT_OUT):
            return False
        if self._is_here:
            for place, loss in losses:
                self.hear(Returned(code, place), (), loss)
        return True

    @property
    def _is_here(self) -> bool:
        """Whether it is this thread that trains."""
        return self._engine.rootless or LATEST.token is self.token

    def hear(self, source: LossSource, args: tuple[Any, ...], result: Any) -> None:
        """A function that is listened to has been called, or a module that may be the loss."""
        engine = self._engine
        if not self._is_here or type(result) is not torch.Tensor or _is_transformed(result):
            return
        if not engine.open or engine.losses_logged or not_for_real() or within_graph(engine):
            return
        if self.learning:
            engine.guard.run(self._probe.name, self._keep, source, args, result)
        elif not result.requires_grad if engine.rootless else self._may_evaluate(result):
            engine.guard.run(self._probe.name, self._take, source, args, result)

    def _may_evaluate(self, loss: torch.Tensor | None = None) -> bool:
        """Whether the current forward is of an evaluation, or may be, if it is one without gradients.

        A loss that can be trained need not be of it.
        """
        engine = self._engine
        if engine.recorder.mode is not Mode.TRAIN:
            return loss is None or not loss.requires_grad or not engine.is_of_step()
        return not torch.is_grad_enabled() and self._in_vain < _IN_VAIN and engine.may_evaluate()

    def _keep(self, source: LossSource, args: tuple[Any, ...], result: torch.Tensor) -> None:
        self._heard.append(Heard(result.grad_fn, source, result.detach(), _mean(source, args, result)))

    def _take(self, source: LossSource, args: tuple[Any, ...], result: torch.Tensor) -> None:
        if self._visit != self._engine.visit:
            self._visit = self._engine.visit
            self._added.clear()
        terms = enumerate(self._terms)
        place = next((at for at, one in terms if one.source == source and at not in self._added), None)
        if place is None:
            return
        facts = self._probe.facts
        if facts is not None and isinstance(source, LossFunction):
            facts.ignored = source.ignored(args)
            facts.weights = source.weights_in(args)
        factor, mean = self._accumulation.undivided(self._terms[place].factor), _mean(source, args, result)
        self._added[place] = mean if same_factor(factor, 1) else mean * factor
        if len(self._added) == len(self._terms):
            first, *others = self._added.values()
            self._added.clear()
            self._in_vain = 0
            self._probe.take(None, args[:2], sum(others, start=first))

    def detach(self) -> None:
        """Listen no longer. Idempotent."""
        self._listen(())
        self._heard.clear()
        self.learning = self.known = False

    def _listen(self, wanted: tuple[_Audible, ...]) -> None:
        """Listen to these, and to no others."""
        before, self._listened = self._listened, wanted
        for one in wanted:
            if one not in before:
                one.hear(self)
        for one in before:
            if one not in wanted:
                one.forget(self)
        self.listens = bool(wanted)


def _mean(source: LossSource, args: tuple[Any, ...], result: torch.Tensor) -> torch.Tensor:
    """What a loss gave, as the mean over what it compares where that is known."""
    result = result.detach()
    return source.mean(args, result) if isinstance(source, LossFunction) else result.mean()


def _losses(value: Any) -> Iterator[tuple[int | str | None, torch.Tensor]]:
    """What may be losses of all that a function returns, each with its place: alone, in a row, or by name."""
    several: Iterable[tuple[Any, Any]] = ((None, value),)
    if type(value) in {tuple, list}:
        several = enumerate(value[:_MOST_RETURNED])
    elif type(value) is dict and len(value) <= _MOST_RETURNED:
        several = tuple(value.items())  # in one go: another thread may change it
    return ((place, one) for place, one in several if type(one) is torch.Tensor and _may_be_loss(one))


def _may_be_loss(tensor: torch.Tensor) -> bool:
    """Whether it is a number, or one for each row of a batch."""
    return tensor.ndim <= 1 and tensor.numel() > 0 and tensor.is_floating_point() and not tensor.is_sparse
