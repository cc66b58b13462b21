"""All checks of a loop together: what the session calls at its boundaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakMethod, ref

import torch

from tdbg_lab.capture.notes import Notes
from tdbg_lab.capture.pytorch.checks.batches import BatchWatch
from tdbg_lab.capture.pytorch.checks.division import note_division
from tdbg_lab.capture.pytorch.checks.gathering import GatherWatch
from tdbg_lab.capture.pytorch.checks.gradients import GradientWatch
from tdbg_lab.capture.pytorch.checks.initial import record_initial
from tdbg_lab.capture.pytorch.checks.modes import ModeWatch
from tdbg_lab.capture.pytorch.checks.pace import Pace
from tdbg_lab.capture.pytorch.checks.schedules import ScheduleWatch
from tdbg_lab.capture.pytorch.checks.settings import note_settings
from tdbg_lab.capture.pytorch.checks.trainable import TrainableWatch
from tdbg_lab.capture.pytorch.checks.turns import TurnWatch
from tdbg_lab.capture.pytorch.checks.weights import WeightWatch
from tdbg_lab.capture.pytorch.values import tensors_in
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import nn
    from torch.optim import Optimizer

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.parameters import ParameterProbe

__all__ = ["CheckWatch"]


class CheckWatch:
    """Each check is a probe of its own: one that fails is off, the others go on from the next step.

    They run within a guarded hook; so one `try` holds those of a moment. What costs more than a glance runs
    at the steps that the pace chooses.

    Parameters
    ----------
    several
        Whether other processes train with this one: replicas of the models, or other parts of them.
    changed
        A method that is called with the models when they have other modules or parameters than before; its
        owner, which owns the checks, is held weakly.
    """

    def __init__(
        self,
        engine: Engine,
        models: Mapping[str, nn.Module],
        parameters: ParameterProbe,
        *,
        several: bool,
        changed: Callable[[dict[str, nn.Module]], None],
    ) -> None:
        self._engine = engine
        self._parameters = parameters
        self._changed = WeakMethod(changed)
        self._several = several
        self._models = [(name, ref(model)) for name, model in models.items()]
        self.notes = Notes(engine)
        self._pace = pace = Pace()
        self._modes = ModeWatch(engine, self.notes, models.items())
        self._gathering = GatherWatch(engine, self.notes)
        self._batches = BatchWatch(engine, self._gathering.acted)
        self._trainable = TrainableWatch(self.notes, pace, models.items())
        self._weights = WeightWatch(self.notes, pace, several=several)
        self._schedules = ScheduleWatch(self.notes)
        self._gradients: dict[int, GradientWatch] = {}
        self._turns = TurnWatch(self.notes, self._gradients)
        self._optimizers: list[ref[Optimizer]] = []
        self._places: dict[int, int] = {}
        """Which of them an optimizer is, by its ``id``."""
        self._begun = False
        self._parts: list[int] = []
        """Modules and parameters of the models, by ``id``."""
        self._usual = True
        """Whether all forwards since the last step were ordinary ones of training."""

    def add(self, optimizer: Optimizer, instead_of: Optimizer | None = None) -> None:
        """An optimizer is watched from now on, in the place of another one that is watched no longer."""
        index = self._places.pop(id(instead_of), len(self._optimizers))
        self._optimizers[index : index + 1] = [ref(optimizer)]
        self._places[id(optimizer)] = index
        suffix, game = f"/{index}" if index else "", len(self._models) > 1
        self._gradients[index] = GradientWatch(self._engine, self.notes, self._pace, suffix, game=game)
        self._engine.guard.run("check/parameters", self._take_up, index, optimizer)
        self._engine.guard.run("check/settings", note_settings, self.notes, optimizer)

    def forward(self, module: nn.Module, inputs: Any) -> None:
        """A root is called; the engine is in its forward."""
        engine = self._engine
        if not self._begun and engine.recorder.mode is Mode.TRAIN:
            self._begun = True
            engine.guard.run("check/initial", record_initial, engine, self._parameters)
            if self._several:
                live = [model for _, weak in self._models if (model := weak()) is not None]
                engine.guard.run("check/division", note_division, self.notes, live)
        off, modes = engine.guard.problems, self._modes
        usual = module.training and not modes.evaluating and engine.recorder.mode is Mode.TRAIN
        try:
            if not usual or self._pace.looking or not torch.is_grad_enabled():
                self._usual = False
                if (probe := "check/modes") not in off:
                    modes.forward(module, inputs)
                if self._gathering.active and (probe := "check/gathering") not in off:
                    self._gather(inputs)
            if (probe := "check/batch") not in off:
                self._batches.forward(module, inputs)
        except Exception as error:  # noqa: BLE001
            engine.guard.failed(probe, error)

    def part(self, inputs: Any) -> None:
        """A part of a model is called first, where nobody calls the whole."""
        off = self._engine.guard.problems
        looking = self._pace.looking or not torch.is_grad_enabled()
        if looking and self._gathering.active and (probe := "check/gathering") not in off:
            try:
                self._gather(inputs)
            except Exception as error:  # noqa: BLE001
                self._engine.guard.failed(probe, error)

    def _gather(self, inputs: Any) -> None:
        """Rows are shown to a model, or trained on: at the steps that are looked at."""
        take = self._gathering.trains if torch.is_grad_enabled() else self._gathering.shows
        take(tensors_in(inputs))

    def before_step(self, optimizer: Optimizer, *, closure: bool, first: bool) -> None:
        """Gradients are complete. `first` says that no optimizer has stepped in this step yet."""
        index = self._places.get(id(optimizer))
        if index is None:
            return
        off = self._engine.guard.problems
        try:
            if self._pace.looking and (probe := "check/parameters") not in off:
                self._judge_parameters(index, optimizer)
            if (probe := "check/gradients") not in off:
                self._turns.before_step(index, first=first)
                self._gradients[index].before_step(closure=closure)
            if (probe := "check/weights") not in off:
                self._weights.before_step(index, optimizer)
            if first:
                if (probe := "check/modes") not in off:
                    self._modes.before_step()
                if (probe := "check/batch") not in off:
                    self._batches.before_step(closure=closure)
                if not self._schedules.none and (probe := "check/schedules") not in off:
                    self._schedules.before_step(self._live(), due=self._due())
        except Exception as error:  # noqa: BLE001
            self._engine.guard.failed(probe, error)
        self._usual = True

    def _judge_parameters(self, index: int, optimizer: Optimizer) -> None:
        step = self._engine.step
        if self._trainable.due(step, saved=self._due()):
            self._look()
        if self._trainable.looked == step:
            self._gradients[index].choose(optimizer, self._trainable.names)
        self._trainable.judge(index, optimizer)

    def after_step(self, optimizer: Optimizer) -> None:
        """The optimizer has stepped."""
        index = self._places.get(id(optimizer))
        if index is None:
            return
        off = self._engine.guard.problems
        try:
            if (probe := "check/gradients") not in off:
                self._gradients[index].after_step(follow=self._pace.ahead)
                self._turns.after_step(index)
            if (probe := "check/weights") not in off:
                self._weights.after_step(index, optimizer)
            if self._batches.closing and (probe := "check/batch") not in off:
                self._batches.before_step(closure=False)
        except Exception as error:  # noqa: BLE001
            self._engine.guard.failed(probe, error)

    def close_step(self) -> None:
        """The step is complete."""
        engine = self._engine
        self._pace.next_step()
        if (probe := "check/notes") not in engine.guard.problems:
            try:
                self.notes.write(everything=bool(engine.mask & engine.costly))
            except Exception as error:  # noqa: BLE001
                engine.guard.failed(probe, error)

    def rests(self, optimizer: Optimizer) -> bool:
        """Whether the only optimizer makes an ordinary step between two that are looked at."""
        if not (self._pace.resting and self._usual):
            return False
        guard, probe = self._engine.guard, "check/weights"
        try:
            return probe in guard.problems or self._weights.rest(self._places[id(optimizer)], optimizer)
        except Exception as error:  # noqa: BLE001
            guard.failed(probe, error)
            return False

    def after_rest(self, optimizer: Optimizer) -> None:
        """The step that rests is complete."""
        index = self._places[id(optimizer)]
        off, pace = self._engine.guard.problems, self._pace
        try:
            if (probe := "check/batch") not in off:
                self._batches.before_step(closure=False)
            if (probe := "check/gradients") not in off:
                self._gradients[index].after_step(follow=pace.ahead)
        except Exception as error:  # noqa: BLE001
            self._engine.guard.failed(probe, error)
        pace.next_step()

    def skipped(self, optimizer: Optimizer, in_a_row: int, scale: float) -> None:
        """A gradient scaler left a step out, for the `in_a_row`-th time since the last step."""
        index = self._places.get(id(optimizer))
        if index is not None:
            self._engine.guard.run("check/gradients", self._gradients[index].after_step, follow=True)
        self.notes.set("skipped_in_a_row", float(in_a_row))
        self.notes.set("scale", scale)
        self.notes.write()

    def detach(self) -> None:
        """Take off every hook and write what is not written yet. Idempotent."""
        for one in self._gradients.values():
            one.detach()
        if self._engine.open:
            self._engine.guard.run("check/notes", self.notes.write)

    # -- parts ------------------------------------------------------------------------------------

    def _live(self) -> list[Optimizer]:
        return [one for weak in self._optimizers if (one := weak()) is not None]

    def _due(self) -> bool:
        return bool(self._engine.mask & self._engine.costly)

    def _take_up(self, index: int, optimizer: Optimizer) -> None:
        """Compare the models with one optimizer more; choose which of its gradients is watched."""
        self._look()
        self._gradients[index].choose(optimizer, self._trainable.names)

    def _look(self) -> None:
        """Compare models and optimizers."""
        if self._trainable.look(self._live()):
            self._modes.find()
            live = {name: model for name, weak in self._models if (model := weak()) is not None}
            self._weights.find(list(live.items()))
            parts = self._trainable.parts  # whether they train does not matter here
            changed = self._changed()
            if parts != self._parts and self._begun and changed is not None:
                self._engine.guard.run("check/layers", changed, live)
            self._parts = parts
