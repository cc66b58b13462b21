"""Representations that have lost their dimensions: all samples at one point, or along one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.losses.state import LossState, loss_state
from tdbg_lab.rules.registry import rule
from tdbg_lab.stats.participation import participation_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.view import RunView

__all__ = ["RepresentationCollapse"]

_KINDS = (Kind.ACTIVATION, Kind.CUSTOM)
_LEAST_WIDTH = 4
"""Fewer dimensions, or samples, say nothing."""
_MAX_ROWS, _MAX_WIDTH = 256, 1024
"""Of the samples and dimensions that are looked at: 20 ms."""


class _Spread(NamedTuple):
    rank: float
    """Effective number of dimensions: participation ratio of the principal axes."""
    share: float
    """Standard deviation as a share of the root mean square."""


@rule("representation_collapse", title="Representation collapsed")
@dataclass(frozen=True, kw_only=True)
class RepresentationCollapse(Rule):
    """All samples of a batch have nearly the same representation, or differ along one direction only.

    Judged by the effective rank of the values, that is by how many principal axes share the variance. It
    needs raw values of the layer: ``handle.record("embedding", code)``, or a collection of activations with
    ``"values": "both"``. So it runs on request: ``rules=["default", "representation_collapse"]``.

    A classifier of two classes that has learnt its task needs one direction only: nothing is said once the
    loss is low.
    """

    regex: str = r"."
    """Names of the representations among the recorded raw values."""
    min_rank: float = 1.2
    """Effective rank below which one direction holds nearly all variance."""
    min_spread: float = 1e-3
    """Standard deviation over the samples, share of the root mean square, below which all are one point."""
    loss_low: float = 50.0
    """Loss, percent of its start, below which few dimensions are what the task needs."""
    patience: int = 5
    """Recorded steps in a row."""
    warm_up: int = 3
    """Recorded steps before it is judged."""

    explains: ClassVar[tuple[str, ...]] = (*NOT_LEARNING, "constant_output", "tensor_variance")
    _ADVICE: ClassVar = (
        "Contrastive and self-distilling training: check the negatives, the stop-gradient and the predictor.",
        "Normalise the representation (BatchNorm before the loss), or add a term for its variance.",
        "Lower weight decay, and the weight of penalties on the representation (KL term, sparsity).",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("min_rank", at_least=1)
        self.require("min_spread", "loss_low", at_least=0)
        self.require("patience", at_least=1)

    def needs(self) -> Needs:
        """Raw values of layers or of what was recorded by hand."""
        return Needs(kinds=_KINDS, regex=self.regex, steps=self.patience, raw=True)

    def not_applicable(self, run: RunView) -> str:
        """Nothing that could be a representation."""
        if run.tensors(*_KINDS, regex=self.regex):
            return ""
        return "No representations were recorded so far: handle.record('embedding', code) does."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Judge each representation at the last recorded steps."""
        for key in run.tensors(*_KINDS, regex=self.regex):
            steps = _steps(run, key, self.patience)
            if len(steps) < self.patience or steps[-1] != step:
                continue
            last = self._collapsed(run, key, steps)
            if last is None:
                continue
            if loss_state(run, high_percent=self.loss_low) in {LossState.LOW, LossState.EARLY}:
                return None
            return self._found(step, key, last, steps)
        return None

    def _collapsed(self, run: RunView, key: TensorKey, steps: list[int]) -> _Spread | None:
        """The last spread when it is collapsed at all of the steps, else None."""
        found = None
        for step in steps:
            values = run.raw(key.name, step)
            found = None if values is None else _spread(values)
            if found is None or not (found.share < self.min_spread or found.rank < self.min_rank):
                return None
        return found

    def _found(self, step: int, key: TensorKey, one: _Spread, steps: list[int]) -> Finding:
        what = (
            f"is the same for all samples (spread {one.share:.1e} of its size)"
            if one.share < self.min_spread
            else f"differs along one direction only (effective rank {one.rank:.2f} of {key.shape[-1]})"
        )
        return self.finding(
            step,
            f"The representation {key.name} {what} at {len(steps)} recorded steps.",
            severity=Severity.WARNING,
            key=key,
            evidence={
                "effective_rank": one.rank,
                "spread_share": one.share,
                "width": key.shape[-1],
                "recorded_steps_count": len(steps),
            },
            advice=self._ADVICE,
            view=ViewRef("histogram", {"tensor": key.name}),
            step_first=steps[0],
        )


def _steps(run: RunView, key: TensorKey, last: int) -> list[int]:
    """The last recorded steps of a tensor."""
    return [frame.step for frame in run.frames(key.kind, last) if key.name in frame.index]


def _spread(values: NDArray[Any]) -> _Spread | None:
    """Of samples (rows) with all other axes side by side; None when they say nothing."""
    if not values.size:
        return None
    rows = np.asarray(values, np.float64).reshape(len(values), -1)[:_MAX_ROWS, :_MAX_WIDTH]
    if min(rows.shape) < _LEAST_WIDTH or not np.isfinite(rows).all():
        return None
    size = float(np.sqrt(np.mean(rows**2)))
    centred = rows - rows.mean(0)
    rank = participation_ratio(centred)
    if size <= 0 or np.isnan(rank):
        return _Spread(1.0, 0.0)
    return _Spread(rank, float(np.sqrt(np.mean(centred**2))) / size)
