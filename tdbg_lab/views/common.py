"""Parameters and small choices that several views share."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Kind, Mode
from tdbg_lab.views.param import Param

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import TensorKey
    from tdbg_lab.run import Run

__all__ = [
    "DISTRIBUTED",
    "MODE",
    "MODE_DASH",
    "MODE_WORD",
    "RANK",
    "REGEX",
    "SCALE",
    "STEP",
    "STEP_RANGE",
    "chosen_tensor",
    "chosen_tensors",
    "mode_of",
    "near_step",
    "points",
    "step_bounds",
]

DISTRIBUTED = (
    Kind.ACTIVATION.value,
    Kind.GRADIENT.value,
    Kind.WEIGHT.value,
    Kind.BIAS.value,
    Kind.INPUT.value,
    Kind.CUSTOM.value,
    Kind.BUFFER.value,
)
"""Kinds with many elements, in the order in which a view without a choice looks for one."""

MODE = Param(
    "mode",
    "Mode",
    "choice",
    choices=("train", "eval", "predict"),
    choice_labels=("Training", "Evaluation", "Prediction"),
    help="Default: training, where there is any.",
)
MODE_DASH = {Mode.TRAIN: "solid", Mode.EVAL: "dash", Mode.PREDICT: "dot"}
"""Line styles, where the lines of all modes are drawn."""
MODE_WORD = {Mode.TRAIN: "", Mode.EVAL: " (eval)", Mode.PREDICT: " (predict)"}
"""What follows the name of such a line."""
STEP = Param("step", "Step", "step", help="Default: the last one; follows a live run.")
STEP_RANGE = Param("steps", "Steps", "range", help="First and last step to draw. Default: all.")
REGEX = Param("regex", "Name pattern", "regex", help="Regular expression searched in the names of tensors.")
RANK = Param("rank", "Rank", "int", minimum=0, maximum=100_000, help="Default: all ranks, merged.")
SCALE = Param(
    "scale",
    "Value axis",
    "choice",
    "signed_log",
    choices=("signed_log", "linear"),
    choice_labels=("Signed log", "Linear"),
    help="Signed log shows all sizes on both sides of zero.",
)


def points(default: int, maximum: int = 10_000) -> Param:
    """How many points along x to draw at most."""
    return Param(
        "n_out", "Points", "int", default, minimum=4, maximum=maximum, help="At most, along the x axis."
    )


def mode_of(run: Run, mode: str | None) -> Mode:
    """The mode asked for; by default training where there is any, else the first there is."""
    if mode is not None:
        return Mode(mode)
    modes = list(run.modes())
    return modes[0] if modes and Mode.TRAIN not in modes else Mode.TRAIN


def step_bounds(steps: tuple[float | None, float | None] | None) -> tuple[int, int] | None:
    """A range of steps as `Run` takes it; open ends become far ones."""
    if steps is None or steps == (None, None):
        return None
    first, last = steps
    return int(first or 0), int(last) if last is not None else 2**53


def near_step(steps: NDArray[np.int64], step: int | None) -> int:
    """The last of `steps` (ascending, not empty) that is not after `step`; the first if all are."""
    if step is None:
        return int(steps[-1])
    return int(steps[max(int(np.searchsorted(steps, step, side="right")) - 1, 0)])


def chosen_tensor(run: Run, tensor: str | None, *, mode: Mode) -> str | None:
    """`tensor`, or the first one of the first kind in `DISTRIBUTED` there is; None while there is none.

    A layer with weights goes before those that only reshape or resize what they are given, what has many
    elements before a number.
    """
    if tensor is not None:
        return tensor if run.tensors() else None
    trained = {key.module for key in run.tensors() if key.kind == Kind.WEIGHT}
    for kind in DISTRIBUTED:
        keys = [key for key in run.tensors(mode=mode) if key.kind == kind]
        if keys:
            keys = [key for key in keys if prod(key.shape) != 1] or keys
            return next((key for key in keys if key.module in trained), keys[0]).name
    return None


def chosen_tensors(
    run: Run,
    tensors: Iterable[str] | None,
    regex: str | None,
    *,
    kinds: Sequence[str],
    mode: Mode | None = None,
) -> list[TensorKey]:
    """Keys by name, by pattern, or of the first kind there is; in layer order."""
    known = run.tensors(mode=mode)
    if tensors:
        wanted = set(tensors)
        return [key for key in known if key.name in wanted]
    if regex is not None:
        return run.tensors(regex=regex, mode=mode)
    for kind in kinds:
        found = [key for key in known if key.kind == kind]
        if found:
            return found
    return []
