"""Losses of evaluations where no loss module is known: what computes that of the training tells them.

Of a training ``backward`` tells the loss, of an evaluation nothing does. In the first forwards of the
training it is found out which function of PyTorch computes what ``backward`` is called on; from then on that
one is listened to in evaluations, whether the program calls it or a loss module does. Where none does, it may
be a module of the program's own that somebody shows us.
"""

from __future__ import annotations

import threading
from functools import wraps
from math import isclose, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

import torch
from torch import nn

from tdbg_lab.capture.pytorch.checks.objective_facts import only_scales
from tdbg_lab.capture.pytorch.checks.predictions import PredictionProbe
from tdbg_lab.capture.pytorch.graphs import within_graph
from tdbg_lab.capture.pytorch.moment import not_for_real
from tdbg_lab.listening import forget, listen
from tdbg_lab.records import LossKind, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.accumulation import Accumulation
    from tdbg_lab.capture.pytorch.losses import LossProbe
    from tdbg_lab.listening import Listeners

__all__ = ["LATEST", "EvaluationLoss"]

_FORWARDS = 8
"""The first ones of the training, in which the function is looked for."""
_MOST = 16
"""Losses that are computed in one of them."""
_SAME = 1e-3
"""Part by which a factor may differ from one pass to the next: losses may be of half precision."""


class _Function(NamedTuple):
    """A function that computes a loss in C++: the one behind that of ``torch.nn.functional``."""

    owner: Any
    name: str
    kind: LossKind
    reduction: int
    """The place of its reduction among its arguments: 0 for none, 1 for the mean, 2 for the sum."""
    weights: int | None = None
    """The place of the weights of classes."""

    def ignored(self, args: tuple[Any, ...]) -> int | None:
        """Number of the class that does not count."""
        return _given(args, self.reduction + 1) if self in _OF_CLASSES else None

    def weights_in(self, args: tuple[Any, ...]) -> torch.Tensor | None:
        """The weights of classes."""
        return None if self.weights is None else _given(args, self.weights)


def _given(args: tuple[Any, ...], place: int) -> Any:
    return args[place] if place < len(args) else None


_NN: Any = torch._C._nn  # noqa: SLF001 - behind every form of the function, however it was imported
_FUNCTIONS = (
    _Function(_NN, "cross_entropy_loss", LossKind.LOGITS, 3, 2),
    _Function(_NN, "nll_loss_nd", LossKind.LOG_PROBABILITIES, 3, 2),
    _Function(_NN, "binary_cross_entropy", LossKind.YES_PROBABILITIES, 3),
    _Function(torch, "binary_cross_entropy_with_logits", LossKind.YES_LOGITS, 4, 3),
    _Function(_NN, "mse_loss", LossKind.DISTANCE, 2),
    _Function(_NN, "l1_loss", LossKind.DISTANCE, 2),
    _Function(_NN, "smooth_l1_loss", LossKind.DISTANCE, 2),
    _Function(_NN, "huber_loss", LossKind.DISTANCE, 2),
    _Function(torch, "kl_div", LossKind.OTHER, 2),
    _Function(torch, "poisson_nll_loss", LossKind.OTHER, 5),
)
_OF_CLASSES = _FUNCTIONS[:2]
_MEAN = 1
_is_transformed: Any = torch._C._functorch.is_functorch_wrapped_tensor  # noqa: SLF001


def _operators() -> dict[int, str]:
    """What TorchScript knows of functions in C++, by their identity."""
    table = getattr(getattr(torch.jit, "_builtins", None), "_get_builtin_table", None)
    return {} if table is None else table()


class _Latest(threading.local):
    """Whose model this thread has called last."""

    token: object = None


LATEST = _Latest()


class _Heard(NamedTuple):
    """What may be a loss, of the forward that was seen last."""

    node: Any
    """In the graph of its gradients."""
    source: _Function | nn.Module
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
        self._listened: tuple[_Function, ...] = ()
        self._heard: list[_Heard] = []
        self._found: tuple[_Function | nn.Module, float] | None = None
        """What computes the loss, and by what its mean is multiplied in what ``backward`` is called on."""

    def begin(self) -> None:
        """A model is called, and it is not known what its loss is, or a training becomes an evaluation."""
        training = self._engine.recorder.mode is Mode.TRAIN
        self._heard.clear()
        if not self.learning:
            self._listen(() if training else self._functions)
        elif training and not self._left:
            self.detach()
        else:
            self._left -= training
            self._listen(_FUNCTIONS)

    def learn(self, objective: torch.Tensor, loss: torch.Tensor) -> None:
        """``backward`` is called on `objective`, which is `loss` before a scaler multiplies it."""
        heard, self._heard = self._heard, []
        if self._engine.rootless:  # `begin` is never called
            self._left -= 1
            self._listen(_FUNCTIONS)
        ours = [one for one in reversed(heard) if only_scales(objective.grad_fn, one.node)]
        if not ours:
            if self._left < 0:
                self.detach()
            return
        # A function says more than a module that calls it.
        ours.sort(key=lambda one: isinstance(one.source, nn.Module))
        source, value, mean = ours[0].source, float(loss.detach()), float(ours[0].mean)
        if not (isfinite(value) and isfinite(mean) and value and mean):
            return
        factor, last = value / mean, self._found
        self._found = source, factor
        if last is not None and last[0] is source and isclose(last[1], factor, rel_tol=_SAME):
            self.learning, self.known = False, True
            if self._facts and isinstance(source, _Function):
                name = self._probe.name.removeprefix("loss/")
                self._probe.facts = PredictionProbe(self._engine, name, source.kind)
            self._listen(self._functions if self._engine.rootless else ())

    @property
    def _functions(self) -> tuple[_Function, ...]:
        """What to listen to in evaluations."""
        source = None if self._found is None else self._found[0]
        return (source,) if isinstance(source, _Function) else ()

    def may_be(self, module: nn.Module) -> bool:
        """Whether a module may be the loss."""
        return self.learning or (self._found is not None and self._found[0] is module)

    def hear(self, source: _Function | nn.Module, args: tuple[Any, ...], result: Any) -> None:
        """A function that is listened to has been called, or a module that may be the loss."""
        engine = self._engine
        ours = engine.rootless or LATEST.token is self.token
        if not ours or type(result) is not torch.Tensor or _is_transformed(result):
            return
        if not engine.open or engine.losses_logged or not_for_real() or within_graph(engine):
            return
        evaluates = engine.recorder.mode is not Mode.TRAIN
        if engine.rootless:
            evaluates = not result.requires_grad
        if self.learning:
            if result.grad_fn is not None and len(self._heard) < _MOST:
                engine.guard.run(self._probe.name, self._keep, source, args, result)
        elif evaluates:
            engine.guard.run(self._probe.name, self._take, source, args, result)

    def _keep(self, source: _Function | nn.Module, args: tuple[Any, ...], result: torch.Tensor) -> None:
        self._heard.append(_Heard(result.grad_fn, source, _mean(source, args, result)))

    def _take(self, source: _Function | nn.Module, args: tuple[Any, ...], result: torch.Tensor) -> None:
        if self._found is None or self._found[0] is not source:
            return
        facts = self._probe.facts
        if facts is not None and isinstance(source, _Function):
            facts.ignored = source.ignored(args)
            facts.weights = source.weights_in(args)
        factor = self._accumulation.undivided(self._found[1])
        mean = _mean(source, args, result)
        self._probe.take(None, args[:2], mean if isclose(factor, 1, rel_tol=_SAME) else mean * factor)

    def detach(self) -> None:
        """Listen no longer. Idempotent."""
        self._listen(())
        self._heard.clear()
        self.learning = self.known = False

    def _listen(self, functions: Iterable[_Function]) -> None:
        """Listen to these, and to no others."""
        wanted = tuple(functions)
        for one in self._listened:
            if one not in wanted:
                forget(one.owner, one.name, self)
        for one in wanted:
            if one not in self._listened:
                listen(one.owner, one.name, self, _telling(one))
        self._listened, self.listens = wanted, bool(wanted)


def _mean(source: _Function | nn.Module, args: tuple[Any, ...], result: torch.Tensor) -> torch.Tensor:
    """What a loss gave, as the mean over what it compares, whatever it was reduced to."""
    result = result.detach()
    if not isinstance(source, _Function):
        return result.mean()
    reduced = _given(args, source.reduction) in {None, _MEAN}
    return result if reduced else result.sum() / _count(source, args)


def _count(function: _Function, args: tuple[Any, ...]) -> Any:
    """What the mean of a loss divides by: pairs of numbers, or labels, each as often as its class weighs."""
    given, target = args[:2]
    if function not in _OF_CLASSES:
        return given.numel()
    if target.is_floating_point():
        return given.numel() // given.shape[min(1, given.ndim - 1)]
    counted, weights = target != function.ignored(args), function.weights_in(args)
    if weights is None:
        return counted.sum()
    return (weights[target.clamp(0, len(weights) - 1)] * counted).sum()  # no device is waited for


def _telling(function: _Function) -> Callable[..., Callable[..., Any]]:
    def around(original: Callable[..., Any], listeners: Listeners[EvaluationLoss]) -> Callable[..., Any]:
        @wraps(original)
        def computes(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            with torch._C.DisableTorchFunction():  # noqa: SLF001
                for one in listeners:
                    one.hear(function, args, result)
            return result

        table = _operators()
        operator = table.get(id(original))
        if operator is not None:  # a script that is compiled now finds the function by its identity
            table[id(computes)] = operator
            finalize(computes, table.pop, id(computes), None)
        return computes

    return around
