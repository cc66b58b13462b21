"""Tensors that spread too much or hardly at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Mode, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.losses.state import LossState, loss_state
from tdbg_lab.rules.memo import remembered
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.tensors.selection import selected, why_nothing
from tdbg_lab.rules.tensors.spread import spreads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.layout import Layout
    from tdbg_lab.rules.view import RunView

__all__ = ["TensorVariance"]


_SIGNAL = 0.05
"""Share of a layer's output that differs between samples, from which it is no rounding."""
_OTHER_WAY = 5.0
"""The same in its unit, over that of a layer with small weights, from which a signal has another way."""


@rule("tensor_variance", title="Variance of tensors")
@dataclass(frozen=True, kw_only=True)
class TensorVariance(Rule):
    """Weights so large, or so small, for their number of inputs that signals grow or die in them.

    What is judged is the gain: standard deviation times the root of the number of inputs of a unit, about
    1 with Xavier and He initialisation, whatever the width is. Trained networks range from 0.1 to some
    tens. A finding needs `patience` recorded steps outside of the limits while the loss does not fall. Small
    weights that grow by `growth` meanwhile have begun at zero on purpose (the last layer of a residual
    branch, an adapter), under an optimizer whose steps are as small as the weights: they are left alone.
    So are those round which a signal has another way: outputs of later layers, or beside, differ much more.

    With `classic`, the condition of SageMaker Debugger to the letter: the variance of any chosen tensor is
    above `max_threshold` or below `min_threshold`, which are both off unless given (AWS developer guide,
    TensorVariance).
    """

    explains: ClassVar = (*NOT_LEARNING, "vanishing_gradient")

    max_gain: float = 300.0
    """Largest gain, std * sqrt(inputs); embeddings with unit variance and 10,000 columns have 100."""
    min_gain: float = 1e-3
    """Least gain. Weights that begin at exactly zero are not judged."""
    growth: float = 1.2
    """Gain at the last of those steps over that at the first, from which small weights grow."""
    patience: int = 5
    """Recorded steps in a row."""
    classic: bool = False
    max_threshold: float | None = None
    """Classic: largest variance; None for no limit."""
    min_threshold: float | None = None
    """Classic: least variance; None for no limit."""
    collection_names: str | None = None
    """Classic: collections to look at, joined by commas."""
    regex: str | None = None
    """Classic: names of tensors to look at, besides; without both, all but facts of the optimizer."""

    _ADVICE: ClassVar = (
        "Initialise with Xavier (tanh, sigmoid) or He (ReLU) initialisation (torch.nn.init).",
        "Normalise inputs and layers (BatchNorm, LayerNorm).",
        "Lower the learning rate if the weights grew, or the weight decay if they shrank.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("max_gain", above=0)
        self.require("growth", at_least=1)
        self.require("min_gain", "max_threshold", "min_threshold", at_least=0)
        self.require("patience", at_least=1)

    def needs(self) -> Needs:
        """Weights; classic: whatever is chosen."""
        return Needs(kinds=() if self.classic else (Kind.WEIGHT,), steps=self.patience)

    def not_applicable(self, run: RunView) -> str:
        """No weights; classic: no limit given, or nothing that can be looked at."""
        if not self.classic:
            return super().not_applicable(run)
        if self.max_threshold is None and self.min_threshold is None:
            return "Neither max_threshold nor min_threshold is given: there is no variance to compare with."
        return why_nothing(run, self.collection_names, self.regex)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Judge the weights of the last recorded steps."""
        if self.classic:
            return self._check_classic(step, run)
        frames = run.frames(Kind.WEIGHT, self.patience)
        if len(frames) < self.patience or frames[-1].step != step:
            return None
        gradients = next(iter(run.frames(Kind.GRADIENT, 1)), None)
        for row in self._outside(frames[-1]):
            key = frames[-1].keys[row]
            if gradients is not None and f"gradient/{key.name}" not in gradients.index:
                continue  # frozen
            before = [frame.index.get(key.name, -1) for frame in frames]
            if not all(at in self._outside(frame) for at, frame in zip(before, frames, strict=True)):
                continue
            if self._grows(_gains(frames[0])[before[0]], _gains(frames[-1])[row]):
                continue
            if loss_state(run) is LossState.STUCK and not self._is_bypassed(key, frames[-1], run):
                return self._found(step, key, float(_gains(frames[-1])[row]))
        return None

    def _outside(self, frame: Frame) -> NDArray[np.int64]:
        """Rows whose gain is outside of the limits."""
        gains = _gains(frame)
        return np.flatnonzero((gains > self.max_gain) | ((gains > 0) & (gains < self.min_gain)))

    def _grows(self, before: float, now: float) -> bool:
        """Whether small weights are on their way up: of a branch that begins at zero on purpose."""
        return bool(now < self.min_gain and now > self.growth * before)

    def _is_bypassed(self, key: TensorKey, weights: Frame, run: RunView) -> bool:
        """Whether layers behind small weights get a signal all the same: round them, or from beside."""
        if _gains(weights)[weights.index[key.name]] > self.max_gain:
            return False
        frame = next(iter(run.frames(Kind.ACTIVATION, 1)), None)
        if frame is None:
            return False
        rows = frame.rows(Kind.ACTIVATION).tolist()
        own = [row for row in rows if frame.keys[row].module == key.module]
        if not own:
            return False
        others = [row for row in rows if row > own[-1]]
        others = others or [row for row in rows if frame.keys[row].shape == frame.keys[own[-1]].shape]
        return any(
            spreads(frame)[row] > _SIGNAL and _signal(frame, row) > _OTHER_WAY * _signal(frame, own[-1])
            for row in others
        )

    def _found(self, step: int, key: TensorKey, gain: float) -> Finding:
        much = gain > self.max_gain
        return self.finding(
            step,
            f"{key.name} spreads {'too much' if much else 'hardly at all'}: its standard deviation times the "
            f"root of its {_inputs(key)} inputs is {gain:.3g}, where about 1 keeps the size of signals; the "
            "loss does not fall.",
            key=key,
            evidence={"gain": gain, "inputs_count": _inputs(key), "recorded_steps_count": self.patience},
            advice=self._ADVICE,
            view=ViewRef("histogram", {"tensor": key.name}),
        )

    def _check_classic(self, step: int, run: RunView) -> Finding | None:
        high = math.inf if self.max_threshold is None else self.max_threshold
        low = -math.inf if self.min_threshold is None else self.min_threshold
        for mode in Mode:
            for key, row in selected(run.frame(mode), self.collection_names, self.regex):
                variance = row.std**2
                if variance > high or variance < low:
                    limit = f"above {high:g}" if variance > high else f"below {low:g}"
                    return self.finding(
                        step,
                        f"The variance of {key.name} is {variance:.3g}, {limit}.",
                        key=key,
                        evidence={"variance": variance},
                        advice=self._ADVICE,
                        view=ViewRef("statistics", {"tensors": [key.name], "statistic": "std"}),
                    )
        return None


def _signal(frame: Frame, row: int) -> float:
    """What differs between samples in a layer's output, in its unit."""
    return float(spreads(frame)[row] * frame.block.l2[row] / np.sqrt(max(1, frame.block.count[row])))


def _inputs(key: TensorKey) -> int:
    """Inputs of one unit, for either order of the axes: all but the largest axis.

    None of a vector with axes of one before it, as the token of classes is: it is added, not multiplied by.
    """
    if len(key.shape) < 2 or min(key.shape) == 0:
        return 0
    inputs = math.prod(key.shape) // max(key.shape)
    return 0 if inputs == 1 and len(key.shape) > 2 else inputs


@remembered
def _scales(layout: Layout) -> NDArray[np.float64]:
    """Root of the inputs of each row, NaN for all but weights with two and more dimensions."""
    scales = np.full(len(layout.keys), np.nan)
    for row in layout.rows((Kind.WEIGHT,)).tolist():
        if inputs := _inputs(layout.keys[row]):
            scales[row] = math.sqrt(inputs)
    return scales


@remembered
def _gains(frame: Frame) -> NDArray[np.float64]:
    """Gain of each row, NaN for all but weights with two and more dimensions."""
    return frame.block.std * _scales(frame.layout)
