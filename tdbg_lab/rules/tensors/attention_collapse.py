"""Attention that looks everywhere alike, or at one place only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from tdbg_lab.records import Kind, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.losses.state import LossState, knows, loss_state
from tdbg_lab.rules.memo import remembered
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame, Row
    from tdbg_lab.rules.layout import Layout
    from tdbg_lab.rules.view import RunView

__all__ = ["AttentionCollapse"]

_LEAST_PLACES = 4
"""Attention over fewer places says nothing."""
_SAME = 1e-6
"""Share by which sums of squares may differ that are of the same weights: those of float32."""
_ROW_SUM = 0.01
"""How far sums of probabilities may be from 1, bfloat16 being coarse."""


class _Attention(NamedTuple):
    """What one attention layer did at one step."""

    key: TensorKey
    concentration: float
    """Mean over all queries of the sum of squared weights: 1 for one place, 1 / n for n places alike."""
    unevenness: float
    """By how much that is more than for equal weights, as a share of it; NaN when places are masked in an
    unknown way."""


@rule("attention_collapse", title="Attention collapsed")
@dataclass(frozen=True, kw_only=True)
class AttentionCollapse(Rule):
    """An attention layer gives every place the same weight, or all weight to one place.

    Attention weights are known by what they are: outputs with at least three axes whose rows sum to 1; those
    of fused attention are computed again for some samples. The sum of their squares follows from recorded
    statistics: it is 1 when each query looks at one place only, and 1 / n when it looks at n places alike (a
    causal mask is seen by its zeros). Fresh layers are not uniform to a hundredth, and some heads of a
    trained model look at one place: so a layer is reported when it stays exactly uniform, or the same for all
    inputs (as a bias of distances alone makes it), or when all of it stays at one place while the loss is
    still high. Or when all of it was at one place from the first step on, before anything was learnt: no
    gradient passes it.
    """

    uniform: float = 1e-4
    """Unevenness up to which attention is uniform: scores that differ by less than a hundredth. Fresh layers
    have 0.01 to 0.3."""
    one_hot: float = 0.9
    """Mean sum of squared weights from which attention is at one place."""
    loss_low: float = 50.0
    """Loss, percent of its start, below which attention at one place is what the model has learnt."""
    patience: int = 10
    """Recorded steps in a row."""

    explains: ClassVar[tuple[str, ...]] = (
        *("vanishing_gradient", "weight_update_ratio", "unchanged_tensor", "all_zero"),
        *NOT_LEARNING,
        "parameters_without_gradient",
    )
    _UNIFORM: ClassVar = (
        "Check that the query and key projections are trained and are not zero: their product is constant.",
        "Check the scores before the softmax: a scale too small, or a mask that is added to everything.",
        "Raise the learning rate of these layers, or initialise them larger.",
    )
    _ONE_HOT: ClassVar = (
        "Divide the scores by the square root of the head's width, and initialise queries and keys smaller.",
        "Normalise queries and keys (QK-norm), or lower the learning rate and warm it up.",
        "No gradient passes a softmax that is certain: such a layer does not recover by itself.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("uniform", "loss_low", at_least=0)
        self.require("one_hot", above=0, at_most=1)
        self.require("patience", at_least=1)

    def needs(self) -> Needs:
        """Outputs of softmax."""
        return Needs(kinds=(Kind.ACTIVATION,), steps=self.patience + 1)

    def not_applicable(self, run: RunView) -> str:
        """Without attention weights."""
        if why := super().not_applicable(run):
            return why
        frames = run.frames(Kind.ACTIVATION, 1)
        if frames and _attention(frames[-1]):
            return ""
        return (
            "No attention weights were recorded so far: they are seen where the model calls a softmax, "
            "scaled_dot_product_attention or nn.MultiheadAttention."
        )

    def check(self, step: int, run: RunView) -> Finding | None:
        """Judge every attention layer over the last recorded steps."""
        frames = run.frames(Kind.ACTIVATION, self.patience + 1)
        first, frames = len(frames) == self.patience, frames[-self.patience :]
        if len(frames) < self.patience or frames[-1].step != step:
            return None
        now = _attention(frames[-1])
        uniform = [name for name in now if self._all(frames, name, uniform=True)]
        fixed = _fixed(frames, [name for name in now if name not in uniform])
        alike = [*uniform, *fixed]
        sharp = [name for name in now if name not in alike and self._all(frames, name, uniform=False)]
        if sharp and self._is_meant(run, first=first):
            sharp = []
        bad = alike or sharp
        if not bad:
            return None
        old = run.active.tensor if run.active else ""
        told = old if old in bad else bad[0]
        if told in fixed:
            what = "gives every input the same weights"
        else:
            what = "gives all places the same weight" if alike else "looks at one place only"
        return self._found(step, now[told], bad, frames, what, uniform=bool(alike))

    def _is_meant(self, run: RunView, *, first: bool) -> bool:
        """Whether a look at one place is what was learnt: by now, or before a model came to be tuned."""
        if first:
            return any(knows(run, name) for name in run.losses())
        if run.active:
            return False
        return loss_state(run, high_percent=self.loss_low) in {LossState.LOW, LossState.EARLY}

    def _all(self, frames: list[Frame], name: str, *, uniform: bool) -> bool:
        """Whether a layer is collapsed at all of the frames."""
        for frame in reversed(frames):
            one = _attention(frame).get(name)
            if one is None or not (
                one.unevenness <= self.uniform if uniform else one.concentration >= self.one_hot
            ):
                return False
        return True

    def _found(
        self, step: int, layer: _Attention, bad: list[str], frames: list[Frame], what: str, *, uniform: bool
    ) -> Finding:
        others = f" So do {len(bad) - 1} more layers." if len(bad) > 1 else ""
        return self.finding(
            step,
            f"The attention {layer.key.name} {what} (sum of squared weights {layer.concentration:.3g}, over "
            f"{layer.key.shape[-1]} places) at {len(frames)} recorded steps.{others}",
            key=layer.key,
            evidence={
                "squared_weights_sum": layer.concentration,
                "places_count": layer.key.shape[-1],
                "recorded_steps_count": len(frames),
                "layers_count": len(bad),
                "layers": ", ".join(bad[:20]),
            },
            advice=self._UNIFORM if uniform else self._ONE_HOT,
            view=ViewRef("histogram", {"tensor": layer.key.name}),
            step_first=frames[0].step,
        )


def _fixed(frames: list[Frame], names: list[str]) -> list[str]:
    """Layers with the same weights at all of the frames, whatever the inputs were: those of a bias alone."""
    found = [name for name in names if _is_fixed(frames, name)]
    return [] if found and _are_fed_alike(frames) else found


def _is_fixed(frames: list[Frame], name: str) -> bool:
    found = [one.concentration if (one := _attention(frame).get(name)) else 0.0 for frame in frames]
    return 0 < max(found) < 1 - _SAME and max(found) - min(found) <= _SAME * max(found)


def _are_fed_alike(frames: list[Frame]) -> bool:
    """Whether the first layer gave the same at all of the frames: one batch, and nothing that changes."""
    row = next(iter(frames[-1].rows(Kind.ACTIVATION).tolist()), None)
    name = "" if row is None else frames[-1].keys[row].name
    sizes = [float(one.l2) if (one := frame.get(name)) else 0.0 for frame in frames]
    return max(sizes) - min(sizes) <= _SAME * max(sizes)


@remembered
def _attention(frame: Frame) -> dict[str, _Attention]:
    """Attention layers of a frame by name."""
    found = {}
    for row in _shaped(frame.layout):
        key = frame.keys[row]
        one = _weights(key, frame.get(key.name))
        if one is not None:
            found[key.name] = one
    return found


@remembered
def _shaped(layout: Layout) -> list[int]:
    """Rows shaped like attention weights: (..., heads, queries, places), or (batch, places, places)."""
    return [row for row in layout.rows((Kind.ACTIVATION,)).tolist() if _is_shaped(layout.keys[row].shape)]


def _is_shaped(shape: tuple[int, ...]) -> bool:
    square = len(shape) >= 3 and shape[-1] == shape[-2]
    return (square or len(shape) > 3) and shape[-1] >= _LEAST_PLACES


def _weights(key: TensorKey, row: Row | None) -> _Attention | None:
    """Attention weights are from 0 to 1, and sum to 1 over the last axis."""
    if row is None or row.not_finite or not row.count or row.min < 0 or row.max > 1 + _ROW_SUM:
        return None
    places = key.shape[-1]
    queries = row.count / places
    if abs(row.l1 / queries - 1) > _ROW_SUM:
        return None
    concentration = row.l2**2 / row.l1
    even = _even(key.shape, queries, row.zero_count)
    return _Attention(key, concentration, concentration / even - 1 if even else float("nan"))


def _even(shape: tuple[int, ...], queries: float, zeros: float) -> float:
    """Mean sum of squares of equal weights, over all places or with a causal mask; 0 when unknown.

    Of long sequences the last queries are recorded.
    """
    last, places = shape[-2:]
    if not zeros:
        return 1.0 / places
    if last <= places and zeros == queries * (last - 1) / 2:
        return sum(1.0 / n for n in range(places - last + 1, places + 1)) / last
    return 0.0
