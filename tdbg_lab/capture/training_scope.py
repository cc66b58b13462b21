"""The end of trainings whose libraries tell callbacks of no exception: what lives as long as they do goes."""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.ending import not_reached
from tdbg_lab.errors import TrainingStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tdbg_lab.capture.handle import Handle

__all__ = ["end_with"]


def end_with(
    scope: object,
    handle: Handle,
    callbacks: Iterable[object] = (),
    *,
    ended_well: Callable[[], bool] = lambda: False,
) -> None:
    """End a run at the latest when `scope` goes.

    Parameters
    ----------
    scope
        An object that lives exactly as long as the training.
    callbacks
        All of the training: one may be Optuna's, which ends what is not worth its time.
    ended_well
        Asked then, where a training that ends well does not say so either.
    """
    trials = [trial for one in callbacks if (trial := getattr(one, "_trial", None)) is not None]

    def over() -> None:  # nothing here is reached through `scope`: both may go at once
        if not handle.attached:
            return
        if ended_well():
            handle.detach()
        else:
            error = _why(trials, handle.step)
            handle.__exit__(type(error), error, None)

    weakref.finalize(scope, over).atexit = False
    handle.end_is_told()


def _why(trials: Iterable[Any], step: int) -> Exception:
    """What ended a training: nobody tells."""
    for trial in trials:
        with contextlib.suppress(Exception):  # it asks the storage of the study
            if trial.should_prune():
                return TrainingStopped("pruned", step=step)
    return not_reached()
