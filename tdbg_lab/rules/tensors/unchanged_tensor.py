"""Tensors that stay the same."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Mode, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.losses.state import LossState, loss_state
from tdbg_lab.rules.memo import remembered
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.schedule import warming_up
from tdbg_lab.rules.tensors.selection import chosen, why_nothing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.layout import Layout
    from tdbg_lab.rules.view import RunView

__all__ = ["UnchangedTensor"]

_REST = 1e-4
"""Gradient, as a share of the largest so far, below which a training is at rest: the square root of what
float32 can tell of a loss at its least."""
_COLUMNS = ("mean", "std", "l1", "l2", "min", "max")


@rule("unchanged_tensor", title="Unchanged tensor")
@dataclass(frozen=True, kw_only=True)
class UnchangedTensor(Rule):
    """Weights that get gradients but never move, or a loss that is the same number again and again.

    Frozen parts stay the same on purpose: only weights with a gradient that is not zero count, and only
    while the learning rate is not zero and not warming up. Nor do those that steps move and something else
    puts back, as weights are that are cut off at a limit; or gradients that have come to next to nothing, at
    the end of a training. Typical causes are an optimizer that holds other parameters, steps that are left
    out, and updates lost to rounding in bfloat16.

    With `classic`, the condition of SageMaker Debugger to the letter: the last `num_steps` saved values
    of any chosen tensor are pairwise close, ``numpy.allclose`` with `rtol`, `atol` and `equal_nan` (AWS
    developer guide, UnchangedTensor). Where only statistics were kept, these are compared.
    """

    explains: ClassVar = ("weight_update_ratio", *NOT_LEARNING)

    patience: int = 8
    """Recorded steps in a row at which a weight is exactly the same."""
    patience_loss: int = 20
    """Recorded steps in a row with exactly the same loss."""
    classic: bool = False
    num_steps: int = 3
    """Classic: saved steps that are compared; they need not be consecutive."""
    rtol: float = 1e-5
    """Classic: relative tolerance."""
    atol: float = 1e-8
    """Classic: absolute tolerance."""
    equal_nan: bool = False
    """Classic: whether NaN equals NaN."""
    collection_names: str | None = None
    """Classic: collections to look at, joined by commas."""
    regex: str | None = None
    """Classic: names of tensors to look at, besides; without both, all but facts of the optimizer."""

    _ADVICE: ClassVar = (
        "Give the optimizer the parameters of this model (after moving, wrapping or replacing layers).",
        "Check that optimizer.step() runs after backward() and that the learning rate is not zero.",
        "In bfloat16 or float16, keep the weights in float32: small updates are rounded away.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("patience", "patience_loss", "num_steps", at_least=2)
        self.require("rtol", "atol", at_least=0)

    def needs(self) -> Needs:
        """Weights and gradients, or a loss; classic: whatever is chosen, with raw values where there are."""
        kinds = () if self.classic else (Kind.WEIGHT, Kind.LOSS)
        steps = self.num_steps if self.classic else self.patience
        return Needs(kinds=kinds, steps=steps, raw=self.classic)

    def not_applicable(self, run: RunView) -> str:
        """Nothing that can be looked at."""
        if self.classic:
            return why_nothing(run, self.collection_names, self.regex)
        return super().not_applicable(run)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare the last recorded steps."""
        if self.classic:
            return self._check_classic(step, run)
        if any(one.rule == "exploding_tensor" for one in run.open):  # nothing moves after NaN
            return None
        return self._check_weights(step, run) or self._check_loss(step, run)

    def _check_weights(self, step: int, run: RunView) -> Finding | None:
        frames = run.frames(Kind.WEIGHT, self.patience)
        if len(frames) < self.patience or frames[-1].step != step:
            return None
        same = [
            key
            for key in _same_weights(frames)
            if _has_gradient(run, key.name, self.patience) and not _is_put_back(run, key.name, self.patience)
        ]
        if not same or not _rate_is_on(run) or self._has_converged(run, len(same)) or _is_at_rest(run):
            return None
        key = same[0]
        others = f" So are {len(same) - 1} more weights." if len(same) > 1 else ""
        return self.finding(
            step,
            f"{key.name} gets gradients but is exactly the same at each of the last {len(frames)} recorded "
            f"steps, {frames[0].step} to {step}.{others}",
            key=key,
            evidence={
                "recorded_steps_count": len(frames),
                "weights_count": len(same),
                "weights": ", ".join(one.name for one in same[:20]),
            },
            advice=self._ADVICE,
            view=ViewRef("statistics", {"tensors": [one.name for one in same[:8]]}),
        )

    def _has_converged(self, run: RunView, same: int) -> bool:
        """Whether nothing at all moves any more and the loss is low: the optimizer has come to its end."""
        if loss_state(run) is not LossState.LOW:
            return False
        trained = [key for key in run.tensors(Kind.WEIGHT) if len(key.shape) > 1]
        return same == sum(_has_gradient(run, key.name, self.patience) for key in trained)

    def _check_loss(self, step: int, run: RunView) -> Finding | None:
        losses = run.losses()
        if len(losses) != 1:
            return None
        steps, values = run.scalars(losses[0])
        last = values[-self.patience_loss :]
        if len(last) < self.patience_loss or last[-1] != last[-2]:  # as nearly always
            return None
        constant = np.isfinite(last).all() and np.ptp(last) == 0 and loss_state(run) is not LossState.LOW
        if not constant or steps[-1] != step or last[0] == 0 or not _rate_is_on(run):
            return None
        return self.finding(
            step,
            f"{losses[0]} is exactly {last[0]:.6g} at each of the last {len(last)} recorded steps.",
            tensor=losses[0],
            evidence={"loss": float(last[0]), "recorded_steps_count": len(last)},
            advice=("Check that the loss depends on the output, and each batch on the data.", *self._ADVICE),
            view=ViewRef("scalars", {"tensors": [losses[0]]}),
        )

    def _check_classic(self, step: int, run: RunView) -> Finding | None:
        for mode in Mode:
            for key in run.frame(mode).keys:
                if not chosen(key, self.collection_names, self.regex):
                    continue
                frames = [one for one in run.frames(key.kind, self.num_steps, mode) if key.name in one.index]
                if len(frames) == self.num_steps and self._all_close(run, key, frames, mode):
                    return self.finding(
                        step,
                        f"{key.name} has not changed at the last {self.num_steps} saved steps.",
                        key=key,
                        evidence={"recorded_steps_count": self.num_steps, "step_of_first": frames[0].step},
                        advice=self._ADVICE,
                        view=ViewRef("statistics", {"tensors": [key.name]}),
                    )
        return None

    def _all_close(self, run: RunView, key: TensorKey, frames: list[Frame], mode: Mode) -> bool:
        values = [run.raw(key.name, one.step, mode) for one in frames]
        told = [value for value in values if value is not None]
        if len(told) < len(values):
            told = [_statistics(one, key.name) for one in frames]
        return all(
            one.shape == other.shape
            and np.allclose(one, other, rtol=self.rtol, atol=self.atol, equal_nan=self.equal_nan)
            for one, other in combinations(told, 2)
        )


def _statistics(frame: Frame, name: str) -> np.ndarray:
    row = frame.index[name]
    block = frame.block
    missing = [block.nan_count[row], block.pos_inf_count[row], block.neg_inf_count[row]]
    if any(missing):
        return np.array([np.nan])
    return np.array([getattr(block, column)[row] for column in _COLUMNS])


def _same_weights(frames: list[Frame]) -> list[TensorKey]:
    """Weights with two and more dimensions whose statistics are bitwise the same in all frames."""
    now = frames[-1]
    told = _weights_told(now)
    same = np.isfinite(told).all(axis=0)
    for frame in reversed(frames[:-1]):
        if not same.any():
            return []
        then = _weights_told(frame)
        if frame.layout is now.layout:
            same &= (then == told).all(axis=0)
        else:
            places = _places_then(now.layout, frame.layout)
            same &= (places >= 0) & (np.c_[then, np.full(len(_COLUMNS), np.nan)][:, places] == told).all(
                axis=0
            )
    return [now.keys[row] for row in now.layout.matrices(Kind.WEIGHT)[same]]


@remembered
def _weights_told(frame: Frame) -> NDArray[np.float64]:
    """Statistics of the W weights with two and more dimensions, shape ``(6, W)``."""
    rows = frame.layout.matrices(Kind.WEIGHT)
    return np.stack([getattr(frame.block, column)[rows] for column in _COLUMNS])


@remembered
def _places_then(now: Layout, then: Layout) -> NDArray[np.int64]:
    """Where the weights of one layout stand among those of another one; -1 where they do not."""
    places = {then.keys[row].name: place for place, row in enumerate(then.matrices(Kind.WEIGHT))}
    return np.array([places.get(now.keys[row].name, -1) for row in now.matrices(Kind.WEIGHT)], np.int64)


def _has_gradient(run: RunView, name: str, n: int) -> bool:
    frames = run.frames(Kind.GRADIENT, n)
    rows = [frame.get(f"gradient/{name}") for frame in frames]
    return len(rows) > 0 and all(row is not None and row.l2 > 0 for row in rows)


def _is_put_back(run: RunView, name: str, n: int) -> bool:
    """Whether the optimizer moved a weight at each of the last steps, so that somebody else must undo it."""
    ratios = run.scalars(f"optimizer/update_ratio/{name}").values[-n:]
    return len(ratios) == n and bool((ratios > 0).all())


def _is_at_rest(run: RunView) -> bool:
    """Whether the gradient is next to nothing of what it was: there is nowhere left to go."""
    sizes = run.scalars("optimizer/grad_norm").values
    sizes = sizes[np.isfinite(sizes)]
    return len(sizes) > 0 and bool(sizes[-1] < _REST * sizes.max())


def _rate_is_on(run: RunView) -> bool:
    """Whether the learning rate, where it is known, lets anything move."""
    if warming_up(run).now:
        return False
    names = [key.name for key in run.tensors(Kind.OPTIMIZER, regex=r"^optimizer/lr/")]
    rates = [series.values[-1] for name in names if len((series := run.scalars(name)).values)]
    return not rates or max(rates) > 0
