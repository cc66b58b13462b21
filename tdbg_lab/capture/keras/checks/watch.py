"""All checks of a loop together: what the session calls around its steps and passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.keras.checks.batches import BatchWatch
from tdbg_lab.capture.keras.checks.modes import ModeWatch
from tdbg_lab.capture.keras.checks.settings import SettingsWatch
from tdbg_lab.capture.keras.checks.weights import WeightWatch
from tdbg_lab.capture.notes import Notes
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.capture.keras.checks.modes import PassModes
    from tdbg_lab.capture.keras.naming import LayerSite, WeightSite

__all__ = ["LoopWatch"]


class LoopWatch:
    """Each check is a probe of its own: one that fails is off, the others go on."""

    def __init__(self, engine: Engine, backend: Backend) -> None:
        self._engine = engine
        notes = self._notes = Notes(engine)
        self._batches = BatchWatch(backend, notes)
        self._modes = ModeWatch(notes)
        self._settings = SettingsWatch(notes)
        self._weights = WeightWatch(backend, notes)
        self._every_batch = backend.cheap_peek

    def find(self, layers: Sequence[LayerSite], weights: Sequence[WeightSite]) -> None:
        """Look layers and weights up anew: the models changed."""
        self._engine.guard.run("check/modes", self._modes.find, layers)
        self._engine.guard.run("check/weights", self._weights.find, weights)

    def before_step(self, batch: Any, read: Callable[[Any], Any]) -> None:
        """A step is about to train on `batch`, or None; `read` gives the value of a variable."""
        guard = self._engine.guard
        if batch is not None and self._every_batch:
            guard.run("check/digest", self._batches.look, batch)
        guard.run("check/weights", self._weights.before, read)

    def will_update(self, optimizer: Any, rate: float) -> None:
        """An optimizer is about to take a step with this learning rate."""
        self._engine.guard.run("check/settings", self._settings.look, optimizer, rate)

    def passed(self, mode: Mode, modes: PassModes | None) -> None:
        """A pass through the models was watched."""
        if modes is not None:
            self._engine.guard.run("check/modes", self._modes.passed, self._engine.step, mode, modes)

    def after_step(self, read: Callable[[Any], Any] | None, *, everything: bool) -> None:
        """The step is over.

        Parameters
        ----------
        read
            Gives the value of a variable; None after a step that was not looked at.
        everything
            Whether all that is known is written again, as it is at steps that are saved.
        """
        guard = self._engine.guard
        guard.run("check/weights", self._weights.after, read)
        self._engine.enter_train_step()
        guard.run("check/notes", self._write, everything)

    def _write(self, everything: bool) -> None:  # noqa: FBT001
        self._notes.write(everything=everything)

    def detach(self) -> None:
        """Write what is not written yet, to the last step of training."""
        if self._engine.open:
            self._engine.return_to(Mode.TRAIN)
            self._engine.guard.run("check/notes", self._write, False)
        self._weights.find(())
