"""What ``backward`` is called on: the loss of programs that compute it by functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.pytorch.checks.objective_facts import ObjectiveFacts
from tdbg_lab.capture.pytorch.losses import LossProbe
from tdbg_lab.capture.pytorch.scaled import ScaledLosses
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    import torch

    from tdbg_lab.capture.engine import Engine

__all__ = ["Objectives"]

_NAME = "objective"


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


class Objectives:
    """Records ``loss/objective``; of optimizers that take turns, ``loss/objective/<optimizer>`` of each.

    With several optimizers the values wait until the step of the run ends: whose they are is known then.

    Parameters
    ----------
    facts
        Whether to look at what a function computes them of.
    """

    def __init__(self, engine: Engine, *, facts: bool) -> None:
        self._engine = engine
        self._scaled = ScaledLosses(engine)
        self._probes = {_NAME: LossProbe(engine, _NAME)}
        self._turns: list[_Turn] = []
        self._facts = ObjectiveFacts(engine, _NAME) if facts and engine.plan.config.checks else None

    def keep(self, output: Any) -> None:
        """A model has given this, at a saved step: the loss may be computed of it."""
        if self._facts is not None:
            self._facts.keep(output)

    @property
    def needless(self) -> bool:
        """Whether a loss was seen since the last forward that says the same, and no facts are wanted."""
        engine = self._engine
        return self._facts is None and (engine.losses_logged or engine.loss_visit == engine.visit)

    def take(self, objective: torch.Tensor, *, several: bool) -> None:
        """``backward`` is called on `objective`; `several` says whether there are several optimizers."""
        engine = self._engine
        seen = engine.losses_logged or engine.loss_visit == engine.visit
        if several and engine.recorder.mode is Mode.TRAIN:
            self._hold(self._scaled.plain(objective), seen=seen)
        elif not seen:
            if self._facts is not None and engine.mask & engine.costly:
                engine.guard.run(f"check/loss/{_NAME}", self._facts.take, objective)
            self._probes[_NAME].add(self._scaled.plain(objective))
        if self._facts is not None:
            self._facts.forget()  # before backward, which gives memory back

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
        turns = self._turns
        self._turns = [] if not turns or turns[-1].players else [turns.pop()]  # its step is still to come
        for turn in turns:
            if not turn.shared:  # gradients of several passes add up, and so do their losses
                self._add(f"{_NAME}/{'+'.join(sorted(turn.players))}", turn.total)
            elif not turn.seen:
                self._add(_NAME, turn.total / turn.passes)

    def detach(self) -> None:
        """Look no longer. Idempotent."""
        self._scaled.detach()

    def _add(self, name: str, value: torch.Tensor) -> None:
        if name not in self._probes:
            self._probes[name] = LossProbe(self._engine, name)
        self._probes[name].add(value)
