"""Gradients that do not reach the early layers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.frame import Row
from tdbg_lab.rules.losses.state import LossState, is_game, loss_state
from tdbg_lab.rules.memo import remembered
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.schedule import warming_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.layout import Layout
    from tdbg_lab.rules.view import RunView

__all__ = ["VanishingGradient"]


_LEAST_SCALE = 0.01
"""Size of weights over the median of all, below which their strength is no measure for others: that of a part
which begins at zero on purpose is boundless."""
_ASKING = re.compile(
    r"(?:^|[._/])(?:(?:q|k|query|key)(?:_?(?:proj|lin|linear|layer|dense))?|wq|wk|to_q|to_k)[./](?:weight|kernel)$"
)
"""Projections of queries and keys, by the names that libraries of transformers give them."""


class _Layer(NamedTuple):
    key: TensorKey
    strength: float
    """Size of the gradient for the size of the weight: |g| / |w| over the elements that were touched."""
    mean_abs: float


@rule("vanishing_gradient", title="Vanishing gradient")
@dataclass(frozen=True, kw_only=True)
class VanishingGradient(Rule):
    """Weights whose gradient is a tiny fraction of what other layers get, while the loss stays high.

    Small gradients alone are no trouble: a converged network has them everywhere. What is judged is the
    strength |g| / |w| (L2 norms; weights of two and more dimensions; rows of an embedding that were not
    used do not count) *relative* to the strongest layer, which knows no scale, over `patience`
    recorded steps, and only while the loss is stuck high. When no layer at all has a gradient worth the
    name, that is found, too. Queries and keys of attention get next to none while each sample still attends
    to everything alike: they are left alone where a layer before them gets its share. Each of several models
    with losses of their own (a policy and its critic) is compared with itself.

    With `classic`, the condition of SageMaker Debugger to the letter: mean(abs(gradient)) of any gradient
    below `threshold` (AWS developer guide, VanishingGradient).
    """

    explains: ClassVar = (
        *("weight_update_ratio", "constant_output", "learning_rate", "unchanged_tensor"),
        *NOT_LEARNING,
    )

    ratio: float = 1e-4
    """Strength relative to the strongest layer below which a gradient has vanished. Healthy layers of one
    network differ by about 100; a sigmoid layer costs a factor of 4 to 10."""
    floor: float = 1e-7
    """Strength of the strongest layer below which all gradients have vanished: at a learning rate of 1, more
    than 10 million steps for a change of the size of the weights."""
    loss_high: float = 50.0
    """Loss, percent of its start, above which it is still high."""
    min_z: float = 2.0
    """A loss that falls by this many standard errors is not stuck."""
    patience: int = 5
    """Recorded steps in a row."""
    start_step: int = 20
    """First step that is judged."""
    patience_zero: int = 15
    """Recorded steps in a row with gradients that are exactly zero."""
    patience_critical: int = 50
    """Recorded steps in a row from which it is critical."""
    classic: bool = False
    threshold: float = 1e-7
    """Classic: least mean absolute gradient."""

    _ADVICE: ClassVar = (
        "Use ReLU, GELU or SiLU instead of sigmoid or tanh in the hidden layers.",
        "Add residual connections or a normalisation (BatchNorm, LayerNorm) between the layers.",
        "Initialise for the activation in use: Xavier for tanh, He for ReLU (torch.nn.init).",
        "Use fewer layers, or with mixed precision check the loss scale.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("patience", "patience_zero", "patience_critical", at_least=1)
        self.require("ratio", at_least=0, at_most=1)
        self.require("floor", "loss_high", "min_z", "threshold", "start_step", at_least=0)

    def needs(self) -> Needs:
        """Gradients; weights and a loss make it sharper."""
        return Needs(
            kinds=(Kind.GRADIENT,), steps=max(self.patience, self.patience_zero, self.patience_critical)
        )

    def check(self, step: int, run: RunView) -> Finding | None:
        """Judge the gradients of the last recorded steps."""
        frames = run.frames(Kind.GRADIENT, 1 if self.classic else self.patience)
        if not frames or frames[-1].step != step:
            return None
        if self.classic:
            return self._check_classic(step, frames[-1])
        if len(frames) < self.patience or step < self.start_step or warming_up(run).now:
            return None
        gone = self._vanished(frames, run)
        if not gone or (all(layer.strength == 0 for layer, _ in gone) and not self._is_own_trouble(run)):
            return None
        loss = loss_state(run, high_percent=self.loss_high, min_z=self.min_z)
        if loss not in {LossState.STUCK, LossState.UNKNOWN}:
            return None
        return self._found(step, run, gone, loss, self._lasts(run))

    def _vanished(self, frames: list[Frame], run: RunView) -> list[tuple[_Layer, float]]:
        """Layers that have vanished at every one of the steps, with their ratio at the last one."""
        now = self._vanished_at(frames[-1], run)
        for frame in frames[:-1]:
            if not now:
                return []
            then = self._vanished_at(frame, run)
            now = {name: pair for name, pair in now.items() if name in then}
        return list(now.values())

    def _vanished_at(self, frame: Frame, run: RunView) -> dict[str, tuple[_Layer, float]]:
        """The same at one step, worked out once."""
        memo = (self.name, self.ratio, self.floor)
        if memo not in frame.memo:
            rows, strength, scale = _strengths(frame, run)
            players = _players(frame, rows) if is_game(run) else np.zeros(len(rows))
            found: dict[str, tuple[_Layer, float]] = {}
            for player in np.unique(players):
                own = players == player
                found |= self._weak(frame, rows[own], strength[own], scale[own])
            frame.memo[memo] = found
        vanished: dict[str, tuple[_Layer, float]] = frame.memo[memo]
        return vanished

    def _weak(
        self, frame: Frame, rows: NDArray[np.int64], strength: NDArray[np.float64], scale: NDArray[np.float64]
    ) -> dict[str, tuple[_Layer, float]]:
        """Layers of one model that get next to nothing of what the strongest of them gets."""
        ordinary = scale >= _LEAST_SCALE * (np.median(scale) if len(scale) else 0.0)
        top = float(strength[ordinary].max(initial=0.0))
        weak = strength < (np.inf if top < self.floor else self.ratio * top)
        first = int(weak.argmin()) if len(weak) else 0  # the first that gets its share, if any does
        found: dict[str, tuple[_Layer, float]] = {}
        for place in np.flatnonzero(weak):
            key, size = frame.keys[rows[place]], float(strength[place])
            if place > first and not weak[first] and _ASKING.search(key.name):
                continue
            layer = _Layer(key, size, Row(frame.block, int(rows[place])).mean_abs)
            found[key.name] = (layer, size / top if top else 0.0)
        return found

    def _is_own_trouble(self, run: RunView) -> bool:
        """Gradients that are exactly zero come from dead units: first see whether that is found."""
        frames = run.frames(Kind.GRADIENT, self.patience_zero)
        dead = any(finding.rule == "dead_relu" for finding in run.open)
        return not dead and len(frames) >= self.patience_zero and bool(self._vanished(frames, run))

    def _lasts(self, run: RunView) -> bool:
        frames = run.frames(Kind.GRADIENT, self.patience_critical)
        return len(frames) >= self.patience_critical and len(self._vanished(frames, run)) > 0

    def _found(
        self,
        step: int,
        run: RunView,
        gone: list[tuple[_Layer, float]],
        loss: LossState,
        lasts: bool,  # noqa: FBT001
    ) -> Finding:
        old = run.active.tensor if run.active else ""
        layer, ratio = next((pair for pair in gone if pair[0].key.name == old), gone[0])
        severity = (
            Severity.NOTICE if loss is LossState.UNKNOWN else Severity.CRITICAL if lasts else Severity.WARNING
        )
        others = f" and of {len(gone) - 1} more" if len(gone) > 1 else ""
        size = "is exactly zero" if layer.strength == 0 else f"is {ratio:.1e} of that of the strongest layer"
        if layer.strength > 0 and ratio == 1.0:
            size = f"is {layer.strength:.1e} of its weights, and no layer has more"
        tail = (
            "while the loss stays high"
            if loss is LossState.STUCK
            else "and there is no single loss to compare with"
        )
        return self.finding(
            step,
            f"The gradient of {layer.key.name.removeprefix('gradient/')}{others} {size} at each of the last "
            f"{self.patience} recorded steps, {tail}.",
            severity=severity,
            key=layer.key,
            evidence={
                "gradient_to_weight": layer.strength,
                "relative_to_strongest": ratio,
                "mean_abs_gradient": layer.mean_abs,
                "layers_count": len(gone),
                "layers": ", ".join(one.key.name for one, _ in gone[:20]),
            },
            advice=self._ADVICE,
            view=ViewRef("overview", {"kind": "gradient", "statistic": "l2"}),
        )

    def _check_classic(self, step: int, frame: Frame) -> Finding | None:
        for key, row in frame.items(Kind.GRADIENT):
            if row.mean_abs < self.threshold:
                return self.finding(
                    step,
                    f"{key.name} has a mean absolute value of {row.mean_abs:.2e}, below {self.threshold:g}.",
                    key=key,
                    evidence={"mean_abs_gradient": row.mean_abs},
                    advice=self._ADVICE,
                    view=ViewRef("overview", {"kind": "gradient", "statistic": "l2"}),
                )
        return None


def _strengths(
    frame: Frame, run: RunView
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Rows of the gradients of weights with two or more dimensions, in order, their strength, and |w|.

    Gradients that are not finite do not count; |w| is 1 where it is not known.
    """
    block = frame.block
    rows = _of_weights(frame.layout)
    count = block.count[rows]
    sound = (block.finite_count[rows] == count) & (count > 0)
    if not sound.all():
        rows, count = rows[sound], count[sound]
    size = block.l2[rows] / np.sqrt(np.maximum(1, count - block.zero_count[rows]))
    weights = frame if len(frame.rows(Kind.WEIGHT)) else next(iter(run.frames(Kind.WEIGHT, 1)), None)
    if weights is None:
        return rows, size, np.ones(len(rows))
    places = _weights_of(frame.layout, weights.layout)
    places = places if sound.all() else places[sound]
    scale = weights.block.l2[places] / np.sqrt(np.maximum(1, weights.block.count[places]))
    scale = np.where((places >= 0) & (scale > 0), scale, 1.0)
    return rows, size / scale, scale


def _players(frame: Frame, rows: NDArray[np.int64]) -> NDArray[Any]:
    """The name of the model that each gradient belongs to."""
    return np.array([frame.keys[row].name.removeprefix("gradient/").partition(".")[0] for row in rows])


@remembered
def _of_weights(layout: Layout) -> NDArray[np.int64]:
    """Rows of the gradients of weights with two or more dimensions, in order.

    Biases of attention in Keras have an axis for heads: they begin at zero, and those of keys get nothing.
    """
    rows = layout.matrices(Kind.GRADIENT)
    return rows[[not layout.keys[row].name.endswith("/bias") for row in rows.tolist()]]


@remembered
def _weights_of(layout: Layout, weights: Layout) -> NDArray[np.int64]:
    """Row of the weight that each gradient with two or more dimensions belongs to; -1 where there is none."""
    names = [layout.keys[row].name.removeprefix("gradient/") for row in _of_weights(layout)]
    return np.array([weights.index.get(name, -1) for name in names], np.int64)
