"""A tensor of a trial: its values and reductions, step by step."""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import NotFoundError
from tdbg_lab.smdebug.core.modes import ModeKeys
from tdbg_lab.smdebug.core.reductions import ALLOWED_NORMS, ALLOWED_REDUCTIONS, get_numpy_reduction
from tdbg_lab.smdebug.exceptions import (
    InvalidWorker,
    ShapeUnavailableForStep,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailableForStep,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.smdebug.trials.trial import Trial

__all__ = ["StepState", "Tensor"]


class StepState(Enum):
    """What a trial knows of a step."""

    UNAVAILABLE = 0
    """It was passed without being saved, or training ended before it."""
    AVAILABLE = 1
    """All workers have saved it."""
    NOT_YET_AVAILABLE = 2
    """It may come."""


class Tensor:
    """One tensor. Steps are global steps, unless a mode is given: then they are counted in it."""

    def __init__(self, name: str, trial: Trial, cache: bool = False) -> None:
        self.name = name
        self.trial = trial
        self.cache = cache
        self._cached: dict[tuple[int, str | None], NDArray[Any]] = {}

    def __repr__(self) -> str:
        return f"<Tensor {self.name} of trial {self.trial.name}>"

    @property
    def original_name(self) -> str | None:
        """What the framework calls it, when that is known and another name."""
        return self.trial.record.original_name(self.name)

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Steps at which it was saved.

        Parameters
        ----------
        show_incomplete_steps
            Also those that not all workers have saved yet.
        """
        self.trial.maybe_refresh(self.name)
        return self.trial.steps_of(self.name, mode, incomplete=show_incomplete_steps)

    def workers(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[str]:
        """Workers that saved it at a step.

        Raises
        ------
        TensorUnavailableForStep
            If none did.
        """
        self.trial.maybe_refresh(self.name)
        try:
            return self.trial.record.tensor_workers(self.name, self._at(step_num, mode))
        except (StepUnavailable, StepNotYetAvailable):
            raise TensorUnavailableForStep(self.name, step_num, mode) from None

    def prev_steps(self, step: int, n: int | None = None, mode: ModeKeys = ModeKeys.GLOBAL) -> list[int]:
        """The last `n` steps up to and with `step`, or all of them."""
        steps = self.steps(mode)
        before = steps[: bisect_right(steps, step)]
        return before if n is None else before[max(len(before) - n, 0) :]

    def value(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> NDArray[Any]:
        """The values.

        Parameters
        ----------
        worker
            Whose; None means the first that saved it.

        Raises
        ------
        StepUnavailable, StepNotYetAvailable
            If the step was not saved, or not so far.
        TensorUnavailableForStep
            If the tensor, or its values, were not saved at that step.
        InvalidWorker
            If the worker did not save it.
        """
        self.trial.maybe_refresh(self.name)
        step = self._at(step_num, mode)
        self._check_worker(step, worker)
        if (step, worker) in self._cached:
            return self._cached[step, worker]
        try:
            found = self.trial.record.value(self.name, step, worker)
        except NotFoundError:
            reductions = bool(self.trial.record.reductions(self.name, step, worker))
            raise TensorUnavailableForStep(self.name, step_num, mode, reductions) from None
        if self.cache:
            self._cached[step, worker] = found
        return found

    def values(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> dict[int, NDArray[Any]]:
        """The values of all steps, by step; raises as `value`."""
        steps = self.steps(mode)
        record = self.trial.record
        places = {self._at(step, mode): step for step in steps}
        found = record.values(self.name, places, worker)
        missing = [step for at, step in places.items() if at not in found]
        if missing:
            self.value(missing[0], mode, worker)  # says what is missing
        return {places[at]: found[at] for at in places if at in found}

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        abs: bool = False,  # noqa: A002
    ) -> Any:
        """One number for all elements: the one saved, else computed from the values or the statistics.

        Parameters
        ----------
        reduction_name
            One of ``min max mean std variance sum prod l1 l2``.
        abs
            Of the absolute values.

        Raises
        ------
        SMDebugValueError
            If there is no such reduction.
        TensorUnavailableForStep
            If neither it nor the values were saved, and it does not follow from the statistics.
        StepUnavailable, StepNotYetAvailable, InvalidWorker
            As `value`.
        """
        if reduction_name not in ALLOWED_REDUCTIONS and reduction_name not in ALLOWED_NORMS:
            choices = ", ".join((*ALLOWED_REDUCTIONS, *ALLOWED_NORMS))
            raise SMDebugValueError(f"There is no reduction {reduction_name!r}: choose from {choices}.")
        self.trial.maybe_refresh(self.name)
        step = self._at(step_num, mode)
        self._check_worker(step, worker)
        record = self.trial.record
        saved = record.reductions(self.name, step, worker)
        if (reduction_name, abs) in saved:
            return record.reduction(self.name, step, reduction_name, abs=abs, worker=worker)
        if record.has_value(self.name, step, worker):
            return get_numpy_reduction(reduction_name, self.value(step_num, mode, worker), abs=abs)
        found = record.derived(self.name, step, (reduction_name, abs), worker)
        if found is None:
            raise TensorUnavailableForStep(self.name, step_num, mode, bool(saved))
        return found

    def reduction_values(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[tuple[str, bool], Any]:
        """The reductions that were saved, by name and whether they are of absolute values."""
        self.trial.maybe_refresh(self.name)
        step = self._at(step_num, mode)
        self._check_worker(step, worker)
        record = self.trial.record
        return {
            (name, absolute): record.reduction(self.name, step, name, abs=absolute, worker=worker)
            for name, absolute in record.reductions(self.name, step, worker)
        }

    def shape(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> tuple[int, ...]:
        """Its shape.

        Raises
        ------
        ShapeUnavailableForStep
            If neither it nor the values were saved at that step.
        StepUnavailable, StepNotYetAvailable, InvalidWorker
            As `value`.
        """
        self.trial.maybe_refresh(self.name)
        step = self._at(step_num, mode)
        self._check_worker(step, worker)
        found = self.trial.record.shape(self.name, step, worker)
        if found is None:
            raise ShapeUnavailableForStep(self.name, step_num, mode)
        return found

    def shapes(
        self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[int, tuple[int, ...]]:
        """Its shapes by step; raises as `shape`."""
        return {step: self.shape(step, mode, worker) for step in self.steps(mode)}

    def _at(self, step_num: int, mode: ModeKeys) -> int:
        """The global step, when it is there and this tensor was saved at it."""
        trial = self.trial
        state = trial.state_of(step_num, mode)
        if state is StepState.NOT_YET_AVAILABLE:
            raise StepNotYetAvailable(step_num, mode)
        if state is StepState.UNAVAILABLE:
            raise StepUnavailable(step_num, mode)
        step = trial.global_step(mode, step_num)
        if step is None or step not in trial.steps_of(self.name, ModeKeys.GLOBAL, incomplete=True):
            raise TensorUnavailableForStep(self.name, step_num, mode)
        return step

    def _check_worker(self, step: int, worker: str | None) -> None:
        if worker is not None and worker not in self.trial.record.tensor_workers(self.name, step):
            raise InvalidWorker(worker)
