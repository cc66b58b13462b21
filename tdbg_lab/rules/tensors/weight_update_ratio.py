"""Weights that move too far in one step, or hardly at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.losses.state import LossState, learns, loss_state
from tdbg_lab.rules.memo import remembered
from tdbg_lab.rules.middle import median
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.schedule import warming_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.layout import Layout
    from tdbg_lab.rules.view import RunView

__all__ = ["WeightUpdateRatio"]

_PREFIX = "optimizer/update_ratio/"
_NO_MATRICES = ("bias", "beta", "gamma")


@rule("weight_update_ratio", title="Weight update ratio")
@dataclass(frozen=True, kw_only=True)
class WeightUpdateRatio(Rule):
    """Updates that are a large part of the weights, or next to nothing, while the loss does not fall.

    |dw| / |w| of one step knows no scale; about 1e-3 is common. Judged is the median over the weights with
    two and more dimensions, over `patience` recorded steps, after warm-up: a converged model, one layer
    that begins near zero, or a single large step are healthy. Tiny updates are those of a learning rate
    that is too low; large ones those of one that is too high.

    With `classic`, the condition of SageMaker Debugger to the letter: the update of any weight, divided
    by its magnitude plus `epsilon`, is above `large_threshold` or below `small_threshold`; with raw
    weights between saved steps (mean absolute values), else of the step itself (AWS developer guide,
    WeightUpdateRatio).
    """

    explains: ClassVar = tuple(one for one in NOT_LEARNING if one != "unrelated_labels")

    max_ratio: float = 0.1
    """Median |dw| / |w| of one step above which steps are too large: ten such steps replace the weights."""
    min_ratio: float = 1e-6
    """Median |dw| / |w| of one step below which nothing is learnt: a million steps for new weights."""
    patience: int = 10
    """Recorded steps in a row of too small a ratio."""
    patience_large: int = 20
    """Recorded steps in a row of too large a ratio: small weights of a new head move by more at first."""
    classic: bool = False
    large_threshold: float = 10.0
    """Classic: largest ratio."""
    small_threshold: float = 1e-8
    """Classic: least ratio."""
    epsilon: float = 1e-9
    """Classic: added to the magnitude of the weight."""
    num_steps: int | None = None
    """Classic: compare with the saved step at least so many steps before; None for the saved step before."""

    _LARGE: ClassVar = (
        "Lower the learning rate, by a factor of ten to begin with.",
        "Clip the gradients (torch.nn.utils.clip_grad_norm_), or warm the learning rate up.",
    )
    _SMALL: ClassVar = (
        "Raise the learning rate, by a factor of ten to begin with.",
        "Check the schedule of the learning rate and the loss scale: gradients may be tiny as well.",
        "Use an optimizer with adaptive steps (Adam).",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("max_ratio", "large_threshold", above=0)
        self.require("min_ratio", "small_threshold", "epsilon", at_least=0)
        self.require("patience", "patience_large", "num_steps", at_least=1)

    def needs(self) -> Needs:
        """Update ratios of the optimizer, or (classic) raw weights."""
        if not self.classic:
            return Needs(
                kinds=(Kind.OPTIMIZER,), regex=f"^{_PREFIX}", steps=max(self.patience, self.patience_large)
            )
        steps = 2 if self.num_steps is None else self.num_steps + 1
        return Needs(kinds=(Kind.OPTIMIZER, Kind.WEIGHT), steps=steps, raw=True)

    def not_applicable(self, run: RunView) -> str:
        """No update ratios."""
        if run.tensors(Kind.OPTIMIZER, regex=f"^{_PREFIX}") or (self.classic and run.tensors(Kind.WEIGHT)):
            return ""
        return "No update ratios were recorded so far: give attach() the optimizer, and keep that collection."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Judge how far the last recorded steps moved the weights."""
        if self.classic:
            return self._check_classic(step, run)
        now = next((_median(frame) for frame in run.frames(Kind.OPTIMIZER)), np.nan)
        if not (large := now > self.max_ratio) and not now < self.min_ratio:
            return None
        patience = self.patience_large if large else self.patience
        frames = run.frames(Kind.OPTIMIZER, patience)
        if len(frames) < patience or frames[-1].step != step or warming_up(run).now:
            return None
        medians = np.array([_median(frame) for frame in frames])
        if not (medians > self.max_ratio if large else medians < self.min_ratio).all():
            return None
        if loss_state(run) is not LossState.STUCK or learns(run):
            return None
        rows, ratios = _ratios(frames[-1])
        place = int(np.argmax(ratios) if large else np.argmin(ratios))
        key = frames[-1].keys[rows[place]]
        weight = key.name.removeprefix(_PREFIX)
        return self.finding(
            step,
            f"Steps are too {'large' if large else 'small'}: each of the last {len(frames)} recorded ones "
            f"moved the weights by {medians[-1]:.1e} of their size (median over {len(rows)}; {weight} by "
            f"{ratios[place]:.1e}), and the loss does not fall.",
            key=key,
            evidence={
                "update_to_weight_median": float(medians[-1]),
                "update_to_weight": float(ratios[place]),
                "weights_count": len(rows),
                "recorded_steps_count": len(frames),
            },
            advice=self._LARGE if large else self._SMALL,
            view=ViewRef("scalars", {"tensors": [key.name]}),
            fix={"setting": "learning_rate", "factor": 0.1 if large else 10.0},
        )

    def _check_classic(self, step: int, run: RunView) -> Finding | None:
        for key, ratio in self._classic_ratios(step, run):
            if ratio > self.large_threshold or ratio < self.small_threshold:
                large = ratio > self.large_threshold
                limit = f"above {self.large_threshold:g}" if large else f"below {self.small_threshold:g}"
                return self.finding(
                    step,
                    f"{key.name.removeprefix(_PREFIX)} moved by {ratio:.2e} of its size, {limit}.",
                    key=key,
                    evidence={"update_to_weight": ratio},
                    advice=self._LARGE if large else self._SMALL,
                    view=ViewRef("statistics", {"tensors": [key.name], "statistic": "mean"}),
                )
        return None

    def _classic_ratios(self, step: int, run: RunView) -> list[tuple[TensorKey, float]]:
        frames = run.frames(Kind.WEIGHT, 2 if self.num_steps is None else self.num_steps + 1)
        found: list[tuple[TensorKey, float]] = []
        for key in frames[-1].keys if frames and frames[-1].step == step else ():
            then = [one for one in frames[:-1] if one.step <= step - (self.num_steps or 1)]
            now = run.raw(key.name) if key.kind is Kind.WEIGHT and then else None
            before = None if now is None else run.raw(key.name, then[-1].step)
            if now is not None and before is not None and now.shape == before.shape:
                size = float(np.mean(np.abs(before))) + self.epsilon
                found.append((key, float(np.mean(np.abs(now - before))) / size))
        if found:
            return found
        return [
            (key, row.value)
            for key, row in run.frame().items(Kind.OPTIMIZER)
            if key.name.startswith(_PREFIX) and key.name.endswith(("weight", "kernel", "embeddings"))
        ]


@remembered
def _ratios(frame: Frame) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rows of the update ratios of the weights with two and more dimensions, and the ratios themselves.

    Those are told from others by their names: they are not called a bias or a norm. Ratios that are not
    finite are left out.
    """
    rows = _ratio_rows(frame.layout)
    values = frame.scalar_values[rows]
    known = np.isfinite(values)
    return rows[known], values[known]


@remembered
def _ratio_rows(layout: Layout) -> NDArray[np.int64]:
    named = [(row, layout.keys[row].name) for row in layout.rows((Kind.OPTIMIZER,)).tolist()]
    rows = [row for row, name in named if name.startswith(_PREFIX) and not name.endswith(_NO_MATRICES)]
    return np.array(rows, np.int64)


@remembered
def _median(frame: Frame) -> float:
    """Median of the ratios of a frame, NaN where there is none."""
    return float(median(_ratios(frame)[1]))
