"""Units of any activation function that always answer the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.losses.state import LossState, learns, loss_state
from tdbg_lab.rules.memo import remembered
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.layout import Layout
    from tdbg_lab.rules.view import RunView

__all__ = ["DeadUnits"]

_MARKS = frozenset({"activation_function", "recurrent"})
_LEAST_UNITS = 4
"""A layer of fewer may be below zero by chance."""
_LEAST_SIZE = 1e-3
"""Outputs of a layer that is dead altogether are tiny: they need not be constant beside each other."""


class _Layer(NamedTuple):
    row: int
    """In the newest frame."""
    dead: int
    units: int
    slope: bool = False
    """They vary, but below zero only."""

    @property
    def percent(self) -> float:
        return 100.0 * self.dead / self.units


@rule("dead_units", title="Dead or saturated units")
@dataclass(frozen=True, kw_only=True)
class DeadUnits(Rule):
    """Too many units of a GELU, SiLU, LeakyReLU, ELU, ... that give the same whatever the input is.

    Such functions have no exact zeros to count. A unit is dead (GELU far below zero) or saturated (ELU at -1,
    Hardtanh at its limits) when its mean over a batch stays the same from batch to batch, to a hundred
    thousandth of the layer's size: the mean of a unit that varies moves with the samples of the batch.
    While the training loss falls, or has fallen far, that is worth a notice, unless hardly any unit is left.

    So is a unit of a recurrent layer whose gates are shut. The slope of LeakyReLU keeps units from dying.
    Still, a layer in which no unit is ever above zero has no bend that is used, and is reported when the loss
    does not fall.

    ReLU is left to ``dead_relu``, which sees each observation; tanh and sigmoid to ``saturated_activation``.
    """

    threshold_layer: float = 50.0
    """Dead units of a layer, percent, above which it is reported."""
    threshold_critical: float = 90.0
    """Dead units of a layer, percent, from which it is critical: hardly any gradient passes."""
    variation: float = 1e-5
    """Range of a unit's means over the batches, as a share of the layer's root mean square, up to which it is
    constant. Sampling moves the mean of a live unit by a hundredth or so."""
    patience: int = 10
    """Recorded batches in a row."""

    explains: ClassVar[tuple[str, ...]] = (
        *("vanishing_gradient", "weight_update_ratio", "unchanged_tensor", "all_zero", "constant_output"),
        *("tensor_variance", "dead_relu", "learning_rate", "layer_collapse"),
        *NOT_LEARNING,
    )
    _ADVICE: ClassVar = (
        "Lower the learning rate: one large step can push biases so far that units never return.",
        "Normalise before the activation (BatchNorm, LayerNorm), and normalise the inputs of the model.",
        "Initialise smaller, with zero biases; those of forget gates with one.",
        "Restart from a checkpoint before the units died: no gradient passes through them.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("threshold_layer", "threshold_critical", at_least=0, at_most=100)
        self.require("variation", at_least=0)
        self.require("patience", at_least=2)

    def needs(self) -> Needs:
        """Activations with means per unit."""
        return Needs(kinds=(Kind.ACTIVATION,), steps=self.patience)

    def not_applicable(self, run: RunView) -> str:
        """Without a marked activation function."""
        if why := super().not_applicable(run):
            return why
        if _marked(run.seen):
            return ""
        return "No outputs of GELU, SiLU, LeakyReLU, ELU or recurrent layers were recorded so far."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare the means of the last batches, unit by unit."""
        frames = run.frames(Kind.ACTIVATION, self.patience)
        if len(frames) < self.patience or frames[-1].step != step:
            return None
        bad = [one for row in _marked(frames[-1].layout) if (one := self._judge(row, frames)) is not None]
        learning = bool(bad) and learns(run)
        bad = [one for one in bad if not one.slope or (loss_state(run) is LossState.STUCK and not learning)]
        if not bad:
            return None
        old = run.active.tensor if run.active else ""
        keys = frames[-1].keys
        one = next((one for one in bad if keys[one.row].name == old), bad[0])
        return self._found(step, one, bad, frames, mild=Severity.NOTICE if learning else Severity.WARNING)

    def _judge(self, row: int, frames: list[Frame]) -> _Layer | None:
        """A layer with too many dead units."""
        name, block = frames[-1].keys[row].name, frames[-1].block
        means, first = _means(frames[-1], name), _means(frames[0], name)
        count = int(block.count[row])
        if not len(means) or len(first) != len(means) or block.finite_count[row] != count:
            return None
        below = len(means) >= _LEAST_UNITS and _below_zero(frames, name)
        slope = _Layer(row, len(means), len(means), slope=True) if below else None
        limit = self.variation * max(float(block.l2[row]) / np.sqrt(count), _LEAST_SIZE)
        if 100.0 * (np.abs(means - first) <= limit).mean() <= self.threshold_layer:  # as in healthy runs
            return slope
        every = [_means(frame, name) for frame in frames]
        if any(len(one) != len(means) for one in every):
            return None
        dead = int((np.ptp(every, axis=0) <= limit).sum())
        layer = _Layer(row, dead, len(means))
        if layer.percent <= self.threshold_layer or (dead == len(means) and _varies(frames[-1], row, limit)):
            return slope
        return layer

    def _found(
        self, step: int, layer: _Layer, bad: list[_Layer], frames: list[Frame], *, mild: Severity
    ) -> Finding:
        key = frames[-1].keys[layer.row]
        critical = layer.percent >= self.threshold_critical and not layer.slope
        others = f" So do units of {len(bad) - 1} more layers." if len(bad) > 1 else ""
        what = (
            f"No unit of {key.name} is above zero in any of {len(frames)} recorded batches: its units pass "
            f"on their slope only, and the loss does not fall.{others}"
            if layer.slope
            else f"{layer.dead} of {layer.units} units ({layer.percent:.0f} %) of {key.name} give the same "
            f"in all of {len(frames)} recorded batches: they are dead or saturated.{others}"
        )
        return self.finding(
            step,
            what,
            severity=Severity.CRITICAL if critical else mild,
            key=key,
            evidence={
                "units_below_zero_count" if layer.slope else "dead_units_count": layer.dead,
                "units_count": layer.units,
                "units_percent" if layer.slope else "dead_units_percent": round(layer.percent, 2),
                "batches_count": len(frames),
                "layers_count": len(bad),
                "layers": ", ".join(frames[-1].keys[one.row].name for one in bad[:20]),
            },
            advice=self._ADVICE,
            view=ViewRef("histogram", {"tensor": key.name}),
            step_first=frames[0].step,
        )


@remembered
def _marked(layout: Layout) -> list[int]:
    """Rows of marked activation functions, and of recurrent layers."""
    rows = layout.rows((Kind.ACTIVATION,)).tolist()
    return [row for row in rows if not _MARKS.isdisjoint(layout.keys[row].collections)]


def _below_zero(frames: list[Frame], name: str) -> bool:
    """Whether the layer gave nothing but negative numbers in each of the batches."""
    rows = [frame.index.get(name, -1) for frame in reversed(frames)]
    return all(
        row >= 0 and frame.block.max[row] < 0 for row, frame in zip(rows, reversed(frames), strict=True)
    )


def _means(frame: Frame, name: str) -> NDArray[np.float64]:
    """Mean of each unit; empty when it was not recorded."""
    block, row = frame.block, frame.index.get(name)
    if row is None:
        return np.zeros(0)
    found: NDArray[np.float64] = block.channel_mean[
        block.channel_offsets[row] : block.channel_offsets[row + 1]
    ].astype(np.float64)
    return found


def _varies(frame: Frame, row: int, limit: float) -> bool:
    """Whether samples differ although no mean moves: the work of a normalisation, not of dead units."""
    within = float(frame.block.l2[row]) ** 2 / int(frame.block.count[row]) - float(
        np.mean(_means(frame, frame.keys[row].name) ** 2)
    )
    return within > (100.0 * limit) ** 2
