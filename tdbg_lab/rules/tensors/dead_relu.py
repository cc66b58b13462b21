"""ReLU units that never fire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.memo import remembered
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.tensors.frozen import frozen_modules

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.view import RunView

__all__ = ["DeadRelu"]

_MOST_BATCHES = 32
"""Recorded batches that are looked back on at most."""


class _Layer(NamedTuple):
    key: TensorKey
    dead: int
    units: int
    observations: int
    zero_frac: float
    """Share of zeros over all units and batches."""
    batches: int
    step_first: int
    at_once: int
    """Dead units that fired in the recorded batch before the first of these."""

    @property
    def percent(self) -> float:
        return 100.0 * self.dead / self.units

    @property
    def percent_at_once(self) -> float:
        return 100.0 * self.at_once / self.units


@rule("dead_relu", title="Dead ReLU")
@dataclass(frozen=True, kw_only=True)
class DeadRelu(Rule):
    """Too many units of a ReLU layer that gave nothing but zeros over many batches.

    A unit is a feature of a linear layer, a channel of a convolution, the last axis of a sequence.
    Sparse layers are healthy: trained transformers have 3 to 6 percent of non-zero ReLU outputs (Lazy
    Neuron, ICLR 2023). So it is not zeros that are counted, but units that never fired in any of the
    last `patience` recorded batches, or of more where batches are too small for `min_observations`.
    The units that are left do the work: where a loss is recorded, dead ones are worth a notice, unless hardly
    any is left. What they cost, if anything, the loss shows, and a loss that stays high with half of the
    units has another cause more often. But units that all died at once make a warning: one step that was too
    large killed them.

    A ReLU is known by the collection ``relu``, by its name, or by its behaviour: outputs that are
    never negative and often exactly zero, behind a layer with weights.

    With `classic`, the condition of SageMaker Debugger to the letter, batch by batch: a unit is dead
    when it is positive in less than `threshold_inactivity` percent of the observations; more than
    `threshold_layer` percent of dead units fire the rule (AWS developer guide, DeadRelu).
    """

    explains: ClassVar = (
        *("vanishing_gradient", "weight_update_ratio", "constant_output", "learning_rate", "layer_collapse"),
        *NOT_LEARNING,
    )

    threshold_layer: float = 50.0
    """Dead units of a layer, percent, above which it is reported (AWS developer guide)."""
    threshold_critical: float = 90.0
    """Dead units of a layer, percent, from which it is critical: hardly any gradient passes."""
    threshold_inactivity: float = 0.0
    """Activity of a unit, percent of the observations, up to which it is dead. Classic: 1.0, exclusive."""
    hysteresis: float = 10.0
    """The trouble is over when fewer units are dead than `threshold_layer` less this, percent points."""
    patience: int = 10
    """Recorded batches in a row in which a unit must not fire."""
    min_observations: int = 256
    """Observations of each unit (samples x positions) that are needed before it is judged."""
    regex: str = r"(?i)relu"
    """Names of ReLU outputs."""
    classic: bool = False

    _ADVICE: ClassVar = (
        "Lower the learning rate: one large step can push biases so far down that units never return.",
        "Use LeakyReLU, ELU or GELU, which pass a gradient on the negative side.",
        "Normalise before the activation (BatchNorm, LayerNorm), or use He initialisation with zero biases.",
        "Restart from a checkpoint before the units died: a dead unit gets no gradient and does not recover.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("patience", "min_observations", at_least=1)
        self.require(
            *("threshold_layer", "threshold_critical", "threshold_inactivity", "hysteresis"),
            at_least=0,
            at_most=100,
        )

    def needs(self) -> Needs:
        """Activations with statistics per channel."""
        return Needs(kinds=(Kind.ACTIVATION,), steps=self._batches)

    @property
    def _batches(self) -> int:
        """Recorded batches to look back on, at most: small ones have few observations each."""
        return 1 if self.classic else max(self.patience, min(_MOST_BATCHES, self.min_observations))

    def not_applicable(self, run: RunView) -> str:
        """No activations, or none that could be a ReLU."""
        if why := super().not_applicable(run):
            return why
        if self._candidates(run):
            return ""
        return "No ReLU outputs were recorded so far: none is named so, and none behaves like one."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Judge every ReLU layer over the last batches."""
        frames = run.frames(Kind.ACTIVATION, self._batches)
        if not frames or frames[-1].step != step:
            return None
        suspects = self._suspects(frames[-1])
        if suspects is not None and not suspects:
            return None
        layers = [
            layer
            for key in self._candidates(run)
            if suspects is None or key.name in suspects
            if (layer := self._judge(key, frames)) is not None
        ]
        old = run.active.tensor if run.active else ""
        limit = self.threshold_layer
        bad = [x for x in layers if x.percent > (limit - self.hysteresis if x.key.name == old else limit)]
        if not bad:
            return None
        named = next((layer for layer in bad if layer.key.name == old), bad[0])
        harmless = run.losses() and not any(one.percent_at_once > limit for one in bad)
        return self._found(step, named, bad, mild=Severity.NOTICE if harmless else Severity.WARNING)

    def _suspects(self, frame: Frame) -> set[str] | None:
        """Layers with enough units that were silent in this batch: no others can have as many dead ones.

        Nearly every step of a healthy run ends here. None where a unit that fires may be dead, too.
        """
        if self.classic or self.threshold_inactivity > 0:
            return None
        block, rows = frame.block, frame.rows(Kind.ACTIVATION)
        widths = np.diff(block.channel_offsets)[rows]
        rows, widths = rows[widths > 0], widths[widths > 0]
        if not len(rows):
            return set()
        starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
        units = np.arange(widths.sum()) + np.repeat(block.channel_offsets[rows] - starts, widths)
        observations = np.repeat(block.count[rows] // widths, widths)
        silent = (1.0 - block.channel_zero_frac[units].astype(np.float64)) * observations <= 0.5
        percent = 100.0 * np.add.reduceat(silent, starts, dtype=np.int64) / widths
        return {frame.keys[row].name for row in rows[percent > self.threshold_layer - self.hysteresis]}

    def _found(self, step: int, layer: _Layer, bad: list[_Layer], *, mild: Severity) -> Finding:
        critical = layer.percent >= self.threshold_critical
        others = (
            f" So are {len(bad) - 1} more layers."
            if len(bad) > 2
            else " So is another layer."
            if len(bad) > 1
            else ""
        )
        return self.finding(
            step,
            f"{layer.dead} of {layer.units} units ({layer.percent:.0f} %) of {layer.key.name} are dead: "
            f"zero in all {layer.observations} observations of {layer.batches} recorded batches.{others}",
            severity=Severity.CRITICAL if critical or self.classic else mild,
            key=layer.key,
            evidence={
                "dead_units_count": layer.dead,
                "units_count": layer.units,
                "dead_units_percent": round(layer.percent, 2),
                "zeros_percent": round(100.0 * layer.zero_frac, 2),
                "observations_per_unit_count": layer.observations,
                "batches_count": layer.batches,
                "layers_count": len(bad),
                "layers": ", ".join(one.key.name for one in bad[:20]),
            },
            advice=self._ADVICE,
            view=ViewRef("histogram", {"tensor": layer.key.name}),
            step_first=layer.step_first,  # dead in all of these batches
        )

    def _judge(self, key: TensorKey, frames: list[Frame]) -> _Layer | None:
        """Dead units of one layer; None when too little was seen."""
        seen: list[_Activity] = []
        observations = step_first = 0
        before: _Activity | None = None
        enough = False
        for frame in reversed(frames):
            one = _activity(frame).get(key.name)
            if one is None or (seen and len(one.fired) != len(seen[0].fired)):
                continue
            if enough:
                before = one
                break
            seen.append(one)
            observations, step_first = observations + one.observations, frame.step
            enough = len(seen) >= self.patience and observations >= self.min_observations
        if not observations or not (self.classic or enough):
            return None
        fired = np.sum([one.fired for one in seen], axis=0)
        if self.classic:
            dead = fired < (self.threshold_inactivity or 1.0) / 100.0 * observations
        else:  # shares are float32: half an observation is none
            dead = fired <= max(self.threshold_inactivity / 100.0 * observations, 0.5)
        zero_frac = sum(one.zero_count for one in seen) / max(1, sum(one.count for one in seen))
        at_once = 0 if before is None else int((dead & (before.fired > 0.5)).sum())
        return _Layer(
            key, int(dead.sum()), len(fired), observations, zero_frac, len(seen), step_first, at_once
        )

    def _candidates(self, run: RunView) -> list[TensorKey]:
        """ReLU outputs in the order of the forward pass."""
        activations = run.tensors(Kind.ACTIVATION)
        tagged = {key.name for key in activations if "relu" in key.collections}
        chosen = tagged | {key.name for key in run.tensors(Kind.ACTIVATION, regex=self.regex)}
        if not tagged:
            chosen |= _behaving(run)
        return [key for key in activations if key.name in chosen]


@dataclass(frozen=True, slots=True)
class _Activity:
    """How often the units of one layer fired in one step."""

    fired: NDArray[np.float64]
    """Observations above zero of each unit, shape ``(C,)``."""
    observations: int
    """Of each unit."""
    zero_count: int
    count: int


@remembered
def _activity(frame: Frame) -> dict[str, _Activity]:
    """Activity of every layer with channels."""
    found = {}
    block = frame.block
    for row in frame.rows(Kind.ACTIVATION):
        zeros = block.channel_zero_frac[block.channel_offsets[row] : block.channel_offsets[row + 1]]
        if len(zeros):
            count = int(block.count[row])
            fired = (1.0 - zeros.astype(np.float64)) * (count // len(zeros))
            name = frame.keys[row].name
            found[name] = _Activity(fired, count // len(zeros), int(block.zero_count[row]), count)
    return found


def _behaving(run: RunView) -> set[str]:
    """Layers that are never negative, have zeros every time, and are not merely data passed on.

    Frozen ones may have been made zero on purpose, as additions to a model that do not train are.
    """
    frames = run.frames(Kind.ACTIVATION, 3)
    if not frames:
        return set()
    trained = {one.module for one in run.tensors(Kind.WEIGHT)}
    places = [frames[-1].index.get(one.name) for one in run.tensors(Kind.ACTIVATION) if one.module in trained]
    first = min((place for place in places if place is not None), default=None)
    if first is None:
        return set()
    known = {one.name for one in run.tensors(Kind.ACTIVATION)}
    for frame in frames:
        rows = frame.rows(Kind.ACTIVATION)
        like = (frame.block.min[rows] == 0) & (frame.block.zero_count[rows] > 0)
        known -= {frame.keys[row].name for row in rows[~like]}
    still = frozen_modules(run)
    modules = {one.name: one.module for one in run.tensors(Kind.ACTIVATION)}
    return {name for name in known if frames[-1].index.get(name, -1) > first and modules[name] not in still}
