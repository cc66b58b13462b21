"""Tanh and sigmoid units that are stuck at their limits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.losses.state import LossState, loss_state
from tdbg_lab.rules.memo import remembered
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.layout import Layout
    from tdbg_lab.rules.view import RunView

__all__ = ["SaturatedActivation"]

_TANH, _SIGMOID = "tanh", "sigmoid"
_FULL_SLOPE = {_TANH: 1.0, _SIGMOID: 0.25}


class _Layer(NamedTuple):
    key: TensorKey
    slope_percent: float
    """Mean derivative over the last frames, percent of the largest possible."""
    stuck_percent: float
    """Units that are always at the same limit, percent."""


@rule("saturated_activation", title="Saturated activation")
@dataclass(frozen=True, kw_only=True)
class SaturatedActivation(Rule):
    """A tanh or sigmoid layer that passes hardly any gradient, because its outputs are at their limits.

    The derivative follows from the outputs y: 1 - y² for tanh, y (1 - y) for sigmoid. So the mean
    derivative of a layer is known exactly from its statistics. A layer is saturated when it is below
    `min_slope` percent of the largest possible, or when more than `threshold_layer` percent of its units
    are always at the same limit, over `patience` recorded steps, while the loss is still high. Outputs of
    the model itself may saturate, as those of a classifier that is sure: the last layer is not judged.

    With `classic`, the condition of SageMaker Debugger to the letter, on the raw *inputs* of tanh and
    sigmoid: an element is inactive at a sample when it is outside of the limits; elements that are active in
    less than `threshold_inactivity` percent of the samples are saturated; more than `threshold_layer`
    percent of those fire (AWS developer guide, SaturatedActivation).
    """

    explains: ClassVar = ("vanishing_gradient", "weight_update_ratio", "layer_collapse", *NOT_LEARNING)

    min_slope: float = 5.0
    """Mean derivative, percent of the largest possible. Healthy layers have 20 to 100; |y| = 0.975 has 5."""
    threshold_layer: float = 50.0
    """Saturated units of a layer, percent (AWS developer guide)."""
    unit_limit: float = 0.99
    """Mean output of a unit, of the way from the middle to a limit, from which it is always there."""
    loss_low: float = 50.0
    """Loss, percent of its start, below which saturation is what the model has learnt."""
    patience: int = 5
    """Recorded steps in a row."""
    regex: str = r"(?i)(^|[._/\d])(tanh|sigmoid)([._:\d]|$)"
    """Names of the outputs of tanh and sigmoid; layers marked by capture count anyway."""
    classic: bool = False
    tanh_regex: str = r"(?i)tanh_input|^input/.*tanh"
    """Classic: names of inputs of tanh."""
    sigmoid_regex: str = r"(?i)sigmoid_input|^input/.*sigmoid"
    """Classic: names of inputs of sigmoid."""
    threshold_tanh_min: float = -9.4999
    """Classic: least input of tanh that is active."""
    threshold_tanh_max: float = 9.4999
    """Classic: largest input of tanh that is active."""
    threshold_sigmoid_min: float = -23.0
    """Classic: least input of sigmoid that is active."""
    threshold_sigmoid_max: float = 16.99999
    """Classic: largest input of sigmoid that is active."""
    threshold_inactivity: float = 1.0
    """Classic: activity of an element, percent of the samples, below which it is saturated."""

    _ADVICE: ClassVar = (
        "Normalise before the activation (BatchNorm, LayerNorm), and normalise the inputs of the model.",
        "Initialise smaller: Xavier initialisation (torch.nn.init.xavier_uniform_).",
        "Use ReLU or GELU in the hidden layers; lower the learning rate if saturation came with training.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("min_slope", "threshold_layer", "threshold_inactivity", at_least=0, at_most=100)
        self.require("unit_limit", above=0, at_most=1)
        self.require("loss_low", at_least=0)
        self.require("patience", at_least=1)
        self.require("threshold_tanh_max", above=self.threshold_tanh_min)
        self.require("threshold_sigmoid_max", above=self.threshold_sigmoid_min)

    def needs(self) -> Needs:
        """Outputs, or (classic) raw inputs of tanh and sigmoid."""
        kinds = (Kind.INPUT, Kind.ACTIVATION, Kind.CUSTOM) if self.classic else (Kind.ACTIVATION,)
        return Needs(kinds=kinds, steps=self.patience, raw=self.classic)

    def not_applicable(self, run: RunView) -> str:
        """No tanh or sigmoid."""
        if self.classic:
            if run.tensors(regex=f"{self.tanh_regex}|{self.sigmoid_regex}".replace("|(?i)", "|")):
                return ""
            return (
                "No inputs of tanh or sigmoid were recorded so far: capture them with their values, "
                "collections={'inputs': {'values': 'raw'}}."
            )
        if (why := super().not_applicable(run)) or _layers(run.seen, self.regex):
            return why
        return "No outputs of tanh or sigmoid were recorded so far."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Judge every tanh and sigmoid layer."""
        if self.classic:
            return self._check_classic(step, run)
        frames = run.frames(Kind.ACTIVATION, self.patience)
        if len(frames) < self.patience or frames[-1].step != step:
            return None
        bad = [
            one
            for key, what in _layers(run.seen, self.regex)
            if (one := self._judge(key, what, frames)) is not None
        ]
        if not bad or loss_state(run, high_percent=self.loss_low) in {LossState.LOW, LossState.EARLY}:
            return None
        old = run.active.tensor if run.active else ""
        layer = next((one for one in bad if one.key.name == old), bad[0])
        others = f" So are {len(bad) - 1} more layers." if len(bad) > 1 else ""
        return self.finding(
            step,
            f"{layer.key.name} is saturated: it passes {layer.slope_percent:.2g} % of the gradient it could, "
            f"and {layer.stuck_percent:.0f} % of its units are always at one limit.{others}",
            key=layer.key,
            evidence={
                "slope_percent": round(layer.slope_percent, 4),
                "stuck_units_percent": round(layer.stuck_percent, 2),
                "layers_count": len(bad),
                "layers": ", ".join(one.key.name for one in bad[:20]),
                "recorded_steps_count": len(frames),
            },
            advice=self._ADVICE,
            view=ViewRef("histogram", {"tensor": layer.key.name}),
        )

    def _judge(self, key: TensorKey, what: str, frames: list[Frame]) -> _Layer | None:
        """A layer that is saturated at every one of the frames."""
        told = [_slope(frame, key.name, what, self.unit_limit) for frame in frames]
        for one in told:
            if one is None or not (one[0] < self.min_slope or one[1] > self.threshold_layer):
                return None
        last = told[-1]
        return None if last is None else _Layer(key, *last)

    def _check_classic(self, step: int, run: RunView) -> Finding | None:
        limits = (
            (self.tanh_regex, self.threshold_tanh_min, self.threshold_tanh_max),
            (self.sigmoid_regex, self.threshold_sigmoid_min, self.threshold_sigmoid_max),
        )
        for regex, low, high in limits:
            for key in run.tensors(regex=regex):
                values = run.raw(key.name)
                if values is None or values.ndim < 2 or not len(values):
                    continue
                active = 100.0 * ((values > low) & (values < high)).mean(axis=0)
                saturated = 100.0 * float((active < self.threshold_inactivity).mean())
                if saturated > self.threshold_layer:
                    return self.finding(
                        step,
                        f"{saturated:.0f} % of the elements of {key.name} are saturated, more than "
                        f"{self.threshold_layer:g} %.",
                        key=key,
                        evidence={"saturated_percent": saturated, "samples_count": len(values)},
                        advice=self._ADVICE,
                        view=ViewRef("histogram", {"tensor": key.name}),
                    )
        return None


@remembered
def _layers(seen: Layout, regex: str) -> list[tuple[TensorKey, str]]:
    """Outputs of tanh and sigmoid in the order of the forward pass, and which; without the last layer."""
    found = []
    for row in seen.rows((Kind.ACTIVATION,))[:-1].tolist():
        key = seen.keys[row]
        what = next((one for one in (_TANH, _SIGMOID) if one in key.collections), "")
        if not what and re.search(regex, key.name):
            what = _TANH if "tanh" in key.name.lower() else _SIGMOID
        if what:
            found.append((key, what))
    return found


def _slope(frame: Frame, name: str, what: str, unit_limit: float) -> tuple[float, float] | None:
    """Mean derivative and units at a limit, both percent; None where it does not look like that function."""
    row = frame.index.get(name)
    if row is None:
        return None
    block = frame.block
    n = int(block.finite_count[row])
    low = -1.0 if what == _TANH else 0.0
    if n == 0 or n != block.count[row] or block.min[row] < low - 1e-3 or block.max[row] > 1.0 + 1e-3:
        return None
    square = float(block.l2[row]) ** 2 / n
    slope = (1.0 if what == _TANH else float(block.l1[row]) / n) - square
    means: NDArray[np.float64] = block.channel_mean[
        block.channel_offsets[row] : block.channel_offsets[row + 1]
    ].astype(np.float64)
    away = np.abs(means if what == _TANH else 2.0 * means - 1.0)
    stuck = 100.0 * float((away >= unit_limit).mean()) if len(away) else 0.0
    return 100.0 * max(slope, 0.0) / _FULL_SLOPE[what], stuck
