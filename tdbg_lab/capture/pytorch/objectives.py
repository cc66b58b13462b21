"""What ``backward`` is called on: the loss of programs that compute it by functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.autograd.function import BackwardCFunction

from tdbg_lab.capture.pytorch.accumulation import Accumulation, AddedUp
from tdbg_lab.capture.pytorch.checks.objective_facts import ObjectiveFacts, only_scales
from tdbg_lab.capture.pytorch.evaluation_loss import EvaluationLoss
from tdbg_lab.capture.pytorch.losses import LossProbe
from tdbg_lab.capture.pytorch.moment import in_trainer
from tdbg_lab.capture.pytorch.reach import Reach
from tdbg_lab.capture.pytorch.scaled import ScaledLosses, weighted
from tdbg_lab.capture.pytorch.summands import summands
from tdbg_lab.capture.pytorch.values import FEW_NUMBERS
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    import torch

    from tdbg_lab.capture.engine import Engine

__all__ = ["Objectives"]

_NAME = "objective"
_FARTHEST = 64
"""Nodes between a backward and the loss of a model: scaled, divided, or added to others."""
_SAME = 1e-5
"""Part by which the same loss, computed in two ways, may differ."""
_LOOKS = 4
"""The first backward passes of a loss module, in which it is found out whether it says all of the loss."""
_LARGEST = 1024
"""Above it every factor is nearly a whole number."""


def _comes_of(start: Any, wanted: Any) -> bool:
    """Whether a node of the graph is `wanted`, or near it."""
    nodes, seen = [start], {start}
    for node in nodes:
        if node is wanted:
            return True
        for following, _ in () if node is None else node.next_functions:
            if following not in seen and len(nodes) < _FARTHEST:
                seen.add(following)
                nodes.append(following)
    return False


def _leaves(start: Any) -> set[int] | None:
    """Ids of all that a backward reaches; None where layers are among it, or not all is told.

    Depth first: a layer's parameters are leaves of its own node, so that one is reached within a few nodes.
    """
    nodes, seen, found = [start], {start}, set()
    while nodes:
        node = nodes.pop()
        if node is None:
            continue
        leaf = getattr(node, "variable", None)
        of_layer = isinstance(leaf, nn.Parameter) and leaf.numel() > FEW_NUMBERS
        if of_layer or isinstance(node, BackwardCFunction):
            return None
        if leaf is not None:
            found.add(id(leaf))
        for following, _ in node.next_functions:
            if following not in seen:
                seen.add(following)
                nodes.append(following)
        if len(seen) > _FARTHEST:
            return None
    return found


def _is_of_others(objective: torch.Tensor, moved: Callable[[], set[int]]) -> bool:
    """Whether it is for an optimizer that is not known, such as that of a temperature."""
    leaves = _leaves(objective.grad_fn)
    return leaves is not None and len(leaves) > 0 and leaves.isdisjoint(moved())


def _is_multiple(objective: torch.Tensor, loss: torch.Tensor) -> bool:
    """Whether it is the same computed anew, multiplied by a scale or divided by a number of batches."""
    one, other = abs(float(objective.detach())), abs(float(loss))
    if not (0 < one < inf and 0 < other < inf):
        return False
    factor = max(one, other) / min(one, other)
    return factor < _LARGEST and abs(factor - round(factor)) < _SAME * factor


@dataclass(slots=True)
class _Turn:
    """Backward passes without a step of an optimizer in between, and the optimizers that stepped then."""

    total: torch.Tensor
    """Sum of what they were called on, where it is computed: nothing waits for a device."""
    seen: bool
    """Whether a loss module was seen that may have computed it."""
    passes: int = 1
    players: set[str] = field(default_factory=set)
    shared: bool = False
    """Whether all optimizers stepped then."""


@dataclass(slots=True)
class _Passes:
    """Backward passes of a step before which no model was seen, on losses of one kind."""

    total: torch.Tensor
    divisor: int
    """By which each was divided; 0 when they differ."""
    count: int = 1

    def add(self, loss: torch.Tensor, divisor: int) -> None:
        """One more."""
        self.total = self.total + loss
        self.divisor = divisor if divisor == self.divisor else 0
        self.count += 1

    @property
    def mean(self) -> torch.Tensor:
        """Of the losses as they were before they were divided by the number of passes."""
        return self.total if self.divisor == self.count else self.total / self.count


class Objectives:
    """Records ``loss/objective``; of optimizers that take turns, ``loss/objective/<optimizer>`` of each.

    With several optimizers the values wait until the step of the run ends: whose they are is known then.
    Gradients of one may be accumulated: ``loss / n`` is recorded as it was before. Two losses of one forward
    that are made small by a backward each are recorded both. Where no forward is seen, as of a model that is
    called by its parts, losses computed alike are taken for those of accumulated batches.

    Parameters
    ----------
    facts
        Whether to look at what a function computes them of.
    """

    def __init__(self, engine: Engine, *, facts: bool) -> None:
        self._engine = engine
        self._scaled = ScaledLosses(engine.guard.run)
        self._probes = {_NAME: LossProbe(engine, _NAME)}
        self._turns: list[_Turn] = []
        self.accumulation = Accumulation()
        self.added = AddedUp()
        self._by_trainer: bool | None = None
        """Whether the trainer of transformers trains, once ``backward`` was called."""
        self.unplaced: dict[str, _Passes] = {}
        """Of this step, as long as no forward of it is seen, by what computed the loss last."""
        self._taken_visit = -1
        """The last visit in which something was taken that belongs to the only optimizer."""
        facts = facts and engine.plan.config.checks
        self._facts = ObjectiveFacts(engine, _NAME) if facts else None
        self.evaluated = EvaluationLoss(engine, self._probes[_NAME], self.accumulation, facts=facts)
        self.own: tuple[Any, torch.Tensor] | None = None
        """The loss a model returned, its node of the graph and its value, until its use is known."""
        self._own_visit = -1
        """The last visit in which a model returned a loss."""
        self._reach = Reach()
        engine.looks_left = _LOOKS
        self.is_more = False
        """Whether ``backward`` is called on more than what a loss module gave: a penalty is added, or several
        losses are, be it of one forward or of several."""
        self._trains_own: bool | None = None
        """Whether what a model returns as its loss is what it is trained on, or a part of it."""

    def add_own(self, probe: LossProbe, loss: torch.Tensor) -> None:
        """Record the loss that a model has returned: when the step ends, where those of its passes add up.

        It need not be what the model is trained on, as that of DPO is not.
        """
        engine = self._engine
        if not engine.adds_up:
            probe.add(loss)
        elif engine.recorder.mode is Mode.TRAIN:
            engine.loss_visit = engine.visit
            self.added.add(probe, loss)
        else:
            probe.add(self.added.whole(loss))
        self._own_visit = engine.visit
        if self._trains_own is None and loss.grad_fn is not None:
            self.own = loss.grad_fn, loss.detach()

    def look(self, objective: torch.Tensor) -> None:
        """``backward`` is called on `objective`, after a model returned its loss for the first time."""
        if self.own is not None:
            node, value = self.own
            self.own = None
            self._trains_own = _comes_of(objective.grad_fn, node) or _is_multiple(objective, value)
            if self._engine.adds_up and _is_multiple(objective, value):
                ratio = float(self._scaled.plain(objective)) / float(value)
                self.added.factor = max(1, round(ratio))

    def look_for_more(self, objective: torch.Tensor) -> None:
        """``backward`` is called on `objective`: see whether a loss module that was called says all of it."""
        engine = self._engine
        node, engine.last_node = engine.last_node, None
        if node is None or engine.last_loss_visit != engine.visit:
            return
        engine.looks_left -= 1
        if not (only_scales(objective.grad_fn, node) or summands(objective.grad_fn, {node})):
            self.is_more |= _comes_of(objective.grad_fn, node)

    def keep(self, output: Any) -> None:
        """A model has given this, at a saved step: the loss may be computed of it."""
        if self._facts is not None:
            self._facts.keep(output)

    @property
    def needless(self) -> bool:
        """Whether a loss was seen since the last forward that says the same, and no facts are wanted."""
        engine = self._engine
        seen = engine.loss_visit == engine.visit and self._trains_own is not False and not self.is_more
        if seen and self._taken_visit == engine.visit:  # asked here, too: most steps are spared a call
            seen = not self._goes_on
        return self._facts is None and (engine.losses_logged or seen)

    @property
    def _goes_on(self) -> bool:
        """Whether a pass follows another one that no forward lies between, or none that is seen."""
        engine = self._engine
        within_step = engine.forwards > 0 or self._by_parts
        return within_step and self._taken_visit == engine.visit != engine.last_loss_visit

    @property
    def _by_parts(self) -> bool:
        """Whether forwards are not seen."""
        return self._engine.rootless or not self._engine.forwards_ever

    @property
    def _seen(self) -> bool:
        """Whether a loss was seen since the last forward that says the same, be it of a model or a module."""
        engine = self._engine
        if engine.losses_logged or self.is_more or engine.loss_visit != engine.visit:
            return engine.losses_logged
        if self._goes_on:  # the loss seen is another one of ours
            return False
        only_own = self._own_visit == engine.visit != engine.last_loss_visit
        return not (only_own and self._trains_own is False)

    def take(
        self,
        objective: torch.Tensor,
        weight: Any,
        *,
        several: bool,
        alone: bool,
        moved: Callable[[], set[int]],
        known: Callable[[], set[int]],
    ) -> None:
        """``backward`` is called on `objective`, where `several` optimizers are known or one that is `alone`.

        What is made small is the objective times `weight`: critics are trained by ``backward(minus_one)``.
        `moved` tells the ids of what the known optimizers move, `known` those of all parameters, too.
        """
        engine, seen = self._engine, self._seen
        further = self._goes_on
        in_step = engine.forwards > 0 and engine.override is None  # though what was called last evaluates
        if not (engine.forwards or self._reach.may_be_known(objective.grad_fn, known)):
            pass  # trained of what a model gave in an evaluation
        elif several and (in_step or engine.recorder.mode is Mode.TRAIN):
            if not _is_of_others(objective, moved):
                self._hold(self._plain(objective, weight), seen=seen)
        elif not seen and not (further and _is_of_others(objective, moved)):
            if not further and self._facts is not None and engine.mask & engine.costly:
                engine.guard.run(f"check/loss/{_NAME}", self._facts.take, objective)
            loss = self._plain(objective, weight)
            may_be_part = alone and engine.recorder.mode is Mode.TRAIN
            whole = self._part(objective, loss) if may_be_part else loss
            if self.evaluated.learning and not (engine.adds_up or self._by_trainer):
                self.evaluated.learn(objective, loss)
            if whole is not None:
                self._probes[_NAME].add(whole)
        if self._facts is not None:
            self._facts.forget()  # before backward, which gives memory back

    def _part(self, objective: torch.Tensor, loss: torch.Tensor) -> torch.Tensor | None:
        """What to record now of a pass that may be one of several in its step."""
        self._taken_visit = self._engine.visit
        if self._by_trainer is None:
            self._by_trainer = in_trainer()
        if self._engine.adds_up or self._by_trainer:
            self.added.add(self._probes[_NAME], loss)
            return None
        divisor = self._scaled.divisor(objective)
        if self._engine.forwards or not self._by_parts:
            return self.accumulation.take(loss, divisor)
        kind = type(objective.grad_fn).__name__
        if kind in self.unplaced:
            self.unplaced[kind].add(loss, divisor)
        else:
            self.unplaced[kind] = _Passes(loss, divisor)
        return None

    def _plain(self, objective: torch.Tensor, weight: Any) -> torch.Tensor:
        return weighted(self._scaled.plain(objective), weight)

    def end_backward(self) -> None:
        """A backward is over, be it of this training or not."""
        self._scaled.forget()

    def _hold(self, value: torch.Tensor, *, seen: bool) -> None:
        if not self._turns or self._turns[-1].players:
            self._turns.append(_Turn(value, seen))
        else:
            turn = self._turns[-1]
            turn.total = turn.total + value
            turn.passes += 1

    def stepped(self, optimizer: str, optimizers: AbstractSet[str]) -> None:
        """One of `optimizers` steps, or would if a gradient scaler had not left it out."""
        if self._turns:
            turn = self._turns[-1]
            turn.players.add(optimizer)
            turn.shared = turn.players >= optimizers

    def close(self) -> None:
        """The step is complete: write the losses of those who stepped in it."""
        if self._facts is not None:
            self._facts.forget()
        self.end_passes()
        turns = self._turns
        self._turns = [] if not turns or turns[-1].players else [turns.pop()]  # its step is still to come
        losses: dict[str, list[torch.Tensor]] = {}
        for turn in turns:
            if not turn.shared:  # gradients of several passes add up, and so do their losses
                losses.setdefault(f"{_NAME}/{'+'.join(sorted(turn.players))}", []).append(turn.total)
            elif not turn.seen:
                losses.setdefault(_NAME, []).append(turn.total / turn.passes)
        for name, found in losses.items():
            self._add(name, found[0] if len(found) == 1 else sum(found[1:], start=found[0]) / len(found))

    def end_passes(self) -> None:
        """The optimizer has stepped, or a gradient scaler left its step out."""
        self.added.end()
        loss = self.accumulation.end()
        if loss is not None:
            self._add(_NAME, loss)
        unplaced, self.unplaced = self.unplaced, {}
        for passes in unplaced.values():
            self._add(_NAME, passes.mean)

    def detach(self) -> None:
        """Look no longer. Idempotent."""
        self._engine.looks_left, self._engine.last_node = 0, None
        self._scaled.detach()
        self.evaluated.detach()

    def _add(self, name: str, value: torch.Tensor) -> None:
        if name not in self._probes:
            self._probes[name] = LossProbe(self._engine, name)
        self._probes[name].add(value)
