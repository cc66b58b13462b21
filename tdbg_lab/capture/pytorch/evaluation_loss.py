"""Losses of evaluations where no loss module is known: what computes that of the training tells them.

Of a training ``backward`` tells the loss, of an evaluation nothing does. In the first forwards of the
training it is found out which function of PyTorch computes what ``backward`` is called on; from then on that
one is listened to in evaluations, whether the program calls it or a loss module does. Where none does, it may
be a module of the program's own that somebody shows us, or, where Python tells what functions return, a
function of the program's own.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from itertools import islice
from math import isclose, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

import tdbg_lab
from tdbg_lab.capture.pytorch.checks.objective_facts import only_scales
from tdbg_lab.capture.pytorch.checks.predictions import PredictionProbe
from tdbg_lab.capture.pytorch.graphs import within_graph
from tdbg_lab.capture.pytorch.loss_functions import FUNCTIONS, LossFunction
from tdbg_lab.capture.pytorch.moment import not_for_real
from tdbg_lab.capture.returns import RETURNS
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
_MOST_RETURNED = 16
"""Values that a function returns, of which the loss may be one."""
_SAME = 1e-3
"""Part by which a factor may differ from one pass to the next: losses may be of half precision."""
_LEFT_OUT = tuple(f"{Path(str(one.__file__)).parent}/" for one in (torch, tdbg_lab))
"""Where functions are that are not the program's own."""
_is_transformed: Any = torch._C._functorch.is_functorch_wrapped_tensor  # noqa: SLF001


class _Latest(threading.local):
    """Whose model this thread has called last."""

    token: object = None


LATEST = _Latest()


class _Returned(NamedTuple):
    """A loss that a function of the program's own returns: alone, or in its place among others."""

    code: CodeType
    place: int | str | None

    def hear(self, listener: EvaluationLoss) -> None:
        RETURNS.hear(self.code, listener)

    def forget(self, listener: EvaluationLoss) -> None:
        RETURNS.forget(self.code, listener)


class _AnyReturned:
    """What any function returns."""

    @staticmethod
    def hear(listener: EvaluationLoss) -> None:
        RETURNS.hear(None, listener)

    @staticmethod
    def forget(listener: EvaluationLoss) -> None:
        RETURNS.forget(None, listener)


_ALL = (*FUNCTIONS, _AnyReturned())
_Source = LossFunction | nn.Module | _Returned


class _Heard(NamedTuple):
    """What may be a loss, of the forward that was seen last."""

    node: Any
    """In the graph of its gradients."""
    source: _Source
    mean: torch.Tensor


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
        self._listened: tuple[LossFunction | _Returned | _AnyReturned, ...] = ()
        self._heard: deque[_Heard] = deque(maxlen=_MOST)
        self._calls: Counter[_Source] = Counter()
        """Of functions that returned numbers, in the forward that was seen last."""
        self._found: tuple[_Source, float] | None = None
        """What computes the loss, and by what its mean is multiplied in what ``backward`` is called on."""

    def begin(self) -> None:
        """A model is called, and it is not known what its loss is, or a training becomes an evaluation."""
        training = self._engine.recorder.mode is Mode.TRAIN
        self._clear()
        if not self.learning:
            self._listen(() if training else self._sources)
        elif training and not self._left:
            self.detach()
        else:
            self._left -= training
            self._listen(_ALL)

    def learn(self, objective: torch.Tensor, loss: torch.Tensor) -> None:
        """``backward`` is called on `objective`, which is `loss` before a scaler multiplies it."""
        if self._engine.rootless:  # `begin` is never called
            self._left -= 1
            self._listen(_ALL)
        ours = self._computed(objective)
        self._clear()
        if ours is None:
            if self._left < 0:
                self.detach()
            return
        source, value, mean = ours.source, float(loss.detach()), float(ours.mean)
        if not (isfinite(value) and isfinite(mean) and value and mean):
            return
        factor, last = value / mean, self._found
        self._found = source, factor
        if last is not None and last[0] == source and isclose(last[1], factor, rel_tol=_SAME):
            self.learning, self.known = False, True
            if self._facts and isinstance(source, LossFunction):
                name = self._probe.name.removeprefix("loss/")
                self._probe.facts = PredictionProbe(self._engine, name, source.kind)
            self._listen(self._sources if self._engine.rootless else ())

    def _computed(self, objective: torch.Tensor) -> _Heard | None:
        """What of all that was heard is the loss.

        A function of PyTorch says more than a module that calls it, and an inner function of the program more
        than an outer one, which may be a whole step; but what is called more than once is a tool.
        """
        ours = [one for one in self._heard if only_scales(objective.grad_fn, one.node)]
        for kind in LossFunction, nn.Module, _Returned:
            for one in ours:
                if isinstance(one.source, kind) and self._calls[one.source] <= 1:
                    return one
        return None

    @property
    def _sources(self) -> tuple[LossFunction | _Returned, ...]:
        """What to listen to in evaluations."""
        source = None if self._found is None else self._found[0]
        return () if source is None or isinstance(source, nn.Module) else (source,)

    def may_be(self, module: nn.Module) -> bool:
        """Whether a module may be the loss."""
        return self.learning or (self._found is not None and self._found[0] is module)

    def returned(self, code: CodeType, value: Any) -> None:
        """A function that is listened to returns this."""
        if not self._is_here:
            return
        for place, number in _numbers(value):
            source = _Returned(code, place)
            if not self.learning:
                if self._found is not None and self._found[0] == source:
                    self.hear(self._found[0], (), number)
            elif not code.co_filename.startswith(_LEFT_OUT):
                self._calls[source] += 1
                self.hear(source, (), number)

    @property
    def _is_here(self) -> bool:
        """Whether it is this thread that trains."""
        return self._engine.rootless or LATEST.token is self.token

    def hear(self, source: _Source, args: tuple[Any, ...], result: Any) -> None:
        """A function that is listened to has been called, or a module that may be the loss."""
        engine = self._engine
        if not self._is_here or type(result) is not torch.Tensor or _is_transformed(result):
            return
        if not engine.open or engine.losses_logged or not_for_real() or within_graph(engine):
            return
        evaluates = engine.recorder.mode is not Mode.TRAIN
        if engine.rootless:
            evaluates = not result.requires_grad
        if self.learning:
            if result.grad_fn is not None:
                engine.guard.run(self._probe.name, self._keep, source, args, result)
        elif evaluates:
            engine.guard.run(self._probe.name, self._take, source, args, result)

    def _keep(self, source: _Source, args: tuple[Any, ...], result: torch.Tensor) -> None:
        self._heard.append(_Heard(result.grad_fn, source, _mean(source, args, result)))

    def _take(self, source: _Source, args: tuple[Any, ...], result: torch.Tensor) -> None:
        if self._found is None or self._found[0] is not source:
            return
        facts = self._probe.facts
        if facts is not None and isinstance(source, LossFunction):
            facts.ignored = source.ignored(args)
            facts.weights = source.weights_in(args)
        factor = self._accumulation.undivided(self._found[1])
        mean = _mean(source, args, result)
        self._probe.take(None, args[:2], mean if isclose(factor, 1, rel_tol=_SAME) else mean * factor)

    def detach(self) -> None:
        """Listen no longer. Idempotent."""
        self._listen(())
        self._clear()
        self.learning = self.known = False

    def _clear(self) -> None:
        self._heard.clear()
        self._calls.clear()

    def _listen(self, wanted: tuple[LossFunction | _Returned | _AnyReturned, ...]) -> None:
        """Listen to these, and to no others."""
        before, self._listened = self._listened, wanted
        for one in wanted:
            if one not in before:
                one.hear(self)
        for one in before:
            if one not in wanted:
                one.forget(self)
        self.listens = bool(wanted)


def _mean(source: _Source, args: tuple[Any, ...], result: torch.Tensor) -> torch.Tensor:
    """What a loss gave, as the mean over what it compares where that is known."""
    result = result.detach()
    return source.mean(args, result) if isinstance(source, LossFunction) else result.mean()


def _numbers(value: Any) -> Iterator[tuple[int | str | None, torch.Tensor]]:
    """Single numbers that a function returns, with their places: alone, in a row, or by name."""
    several: Iterable[tuple[Any, Any]] = ((None, value),)
    if type(value) in {tuple, list}:
        several = enumerate(value[:_MOST_RETURNED])
    elif type(value) is dict:
        several = islice(value.items(), _MOST_RETURNED)
    return ((place, one) for place, one in several if type(one) is torch.Tensor and one.numel() == 1)
