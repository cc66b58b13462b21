"""A hidden layer that has lost what told its samples apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_TOLD_APART
from tdbg_lab.rules.losses.evidence import learnt_labels
from tdbg_lab.rules.losses.state import is_game, learns
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.tensors.spread import spreads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.view import RunView

__all__ = ["LayerCollapse"]

_ROUND = 3.0
"""Spread behind a layer, over its own, from which it comes by another way: what one normalisation or bend
makes of a spread is less."""
_ROUNDING = 1e-3
"""Spread of samples that are all the same: means in float32 leave the root of their rounding of it, 3e-4."""
_GROWN = 1.5
"""Spread of the last few batches, over the least of a few in a row, from which it comes back. Of layers that
stay as they are, with 16 samples or more, the noise is a tenth."""
_KEPT = 32
"""Recorded batches that are looked back on."""


class _Layer(NamedTuple):
    row: int
    """In the newest frame."""
    now: float
    before: float


@rule("layer_collapse", title="Layer collapsed")
@dataclass(frozen=True, kw_only=True)
class LayerCollapse(Rule):
    """A hidden layer that gives nearly the same for all samples, and did not before.

    Judged by its spread over the samples: the standard deviation within its units as a share of the layer's
    root mean square. A penalty on the representation, biases that outgrew everything else, and views that are
    drawn together with nothing to push them apart end like that.

    Where a later layer still tells its samples apart, and an earlier one has the same shape, what was lost
    goes round this one: it is a residual branch, and the finding a notice. So it is once predictions go with
    their targets and while the loss has fallen: then a layer mostly adds a mean, which is learnt first, and
    what differs comes later.

    A last layer is left alone: it may learn the mean of its targets first. So is one whose spread grows again
    after its least, as that of a variational autoencoder's code does once the mean is learnt; and one whose
    spread was small from the beginning, which is how deep networks begin. In games, in which one side may
    have to be undecided, only a layer counts whose samples differ by no more than rounding. Whether few
    dimensions are left, and not none, is for ``lost_dimensions`` and ``representation_collapse`` to say.
    """

    spread: float = 0.1
    """Spread below which a layer has collapsed. In healthy trainings the least that stayed, of the logarithm
    of variances of a variational autoencoder, was 0.14."""
    lost: float = 0.3
    """The same as a share of the largest spread that the layer had in the last 32 recorded batches."""
    patience: int = 16
    """Recorded batches whose median spread is judged."""
    confirmations: int = 4
    """Recorded batches in a row that must show it: what comes back is seen to do so by then."""

    explains: ClassVar[tuple[str, ...]] = (*NOT_TOLD_APART, "tensor_variance")
    _ADVICE: ClassVar = (
        "Lower the weight of penalties on the representation (KL term, sparsity), and weight decay.",
        "Contrastive and self-distilling training: check the negatives, the stop-gradient and the predictor.",
        "Look at the biases before this layer: one large step can make them outgrow all that varies.",
        "Normalise the representation (BatchNorm, LayerNorm), or add a term for its variance.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("spread", "lost", at_least=0, at_most=1)
        self.require("patience", at_least=2, at_most=_KEPT)

    def needs(self) -> Needs:
        """Activations with means per unit."""
        return Needs(kinds=(Kind.ACTIVATION,), steps=_KEPT)

    def not_applicable(self, run: RunView) -> str:
        """Without hidden layers."""
        if why := super().not_applicable(run):
            return why
        return "" if _hidden(run) else "No hidden layer with units was recorded so far."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare the spreads of the last batches with those before, layer by layer."""
        frames = run.frames(Kind.ACTIVATION, _KEPT)
        if len(frames) < self.patience or frames[-1].step != step:
            return None
        limit = _ROUNDING if is_game(run) else self.spread
        low = np.flatnonzero(spreads(frames[-1]) < limit)
        if not len(low):  # as in healthy runs
            return None
        hidden = _hidden(run)
        names = frames[-1].keys
        old = run.active.tensor if run.active else ""
        bad = [
            one
            for row in low
            if names[row].name in hidden and (one := self._judge(int(row), frames, old, limit))
        ]
        if not bad:
            return None
        return self._found(
            step, next((one for one in bad if names[one.row].name == old), bad[0]), bad, frames, run
        )

    def _judge(self, row: int, frames: list[Frame], old: str, limit: float) -> _Layer | None:
        """A layer that has lost its spread; what the one named already had before is forgotten with time."""
        name = frames[-1].keys[row].name
        found = [spreads(frame)[frame.index[name]] for frame in frames if name in frame.index]
        series = np.array([one for one in found if np.isfinite(one)])
        if len(series) < self.patience:
            return None
        now, before = float(np.median(series[-self.patience :])), float(series.max())
        had = before >= self.spread and now < self.lost * before and not _comes_back(series[-self.patience :])
        return _Layer(row, now, before) if now < limit and (had or name == old) else None

    def _is_passed_by(self, layer: _Layer, frame: Frame) -> bool:
        """Whether what comes after still differs between samples, several times as much as here.

        And whether something of the same shape came before, to which this is added: the noise on a code makes
        what comes after differ, too.
        """
        shape = frame.keys[layer.row].shape
        if all(key.shape != shape or key.kind is not Kind.ACTIVATION for key in frame.keys[: layer.row]):
            return False
        after = spreads(frame)[layer.row + 1 :]
        return bool((after > max(self.spread, _ROUND * layer.now)).any())

    def _found(
        self, step: int, layer: _Layer, bad: list[_Layer], frames: list[Frame], run: RunView
    ) -> Finding:
        key = frames[-1].keys[layer.row]
        harmless = not is_game(run) and (self._is_passed_by(layer, frames[-1]) or _goes_on(run))
        others = f" So do {len(bad) - 1} more layers." if len(bad) > 1 else ""
        return self.finding(
            step,
            f"{key.name} gives nearly the same for all samples: {100 * layer.now:.2g} % of its size differs "
            f"between them (median of {self.patience} recorded batches), and {100 * layer.before:.2g} % did "
            f"before.{others}",
            severity=Severity.NOTICE if harmless else Severity.WARNING,
            key=key,
            evidence={
                "spread_percent": round(100 * layer.now, 3),
                "spread_before_percent": round(100 * layer.before, 3),
                "layers_count": len(bad),
                "layers": ", ".join(frames[-1].keys[one.row].name for one in bad[:20]),
            },
            advice=self._ADVICE,
            view=ViewRef("histogram", {"tensor": key.name}),
            step_first=frames[-self.patience].step,
        )


def _comes_back(spread: NDArray[np.float64]) -> bool:
    """Whether a spread grows again after its least: the mean is learnt first. Rounding is no spread."""
    part = max(1, len(spread) // 4)
    middles = np.median(sliding_window_view(spread, part), axis=1)
    return bool(middles[-1] > _GROWN * max(middles.min(), _ROUNDING))


def _goes_on(run: RunView) -> bool:
    """Whether the only loss has fallen, and predictions have come to go with their targets."""
    losses = run.losses()
    return len(losses) == 1 and learns(run) and learnt_labels(run, losses[0])


def _hidden(run: RunView) -> frozenset[str]:
    """Outputs before that of the last layer with weights, in the order of the forward pass."""
    trained = {key.module for key in run.tensors(Kind.WEIGHT)}
    activations = run.tensors(Kind.ACTIVATION)
    last = max((at for at, key in enumerate(activations) if key.module in trained), default=0)
    return frozenset(key.name for key in activations[:last])
