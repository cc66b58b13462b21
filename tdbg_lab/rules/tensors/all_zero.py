"""Tensors of nothing but zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Mode, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.tensors.frozen import frozen_modules
from tdbg_lab.rules.tensors.selection import selected, why_nothing

if TYPE_CHECKING:
    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame, Row
    from tdbg_lab.rules.view import RunView

__all__ = ["AllZero"]


@rule("all_zero", title="All zero")
@dataclass(frozen=True, kw_only=True)
class AllZero(Rule):
    """A weight, or what a layer gives, that is nothing but zeros and stays so.

    Zeros are common: biases begin with them, so do the second factor of LoRA and the last layer of a
    residual block, and ReLU gives many. Judged are whole tensors: weights with two and more dimensions,
    layer outputs and model inputs, once they were zero at each of the last `patience` recorded steps. A
    weight that no gradient reaches on purpose (frozen) is left alone; so are outputs of ReLUs, about
    which the rule on dead ReLUs speaks.

    With `classic`, the condition of SageMaker Debugger to the letter: at least `threshold` percent of the
    elements of any chosen tensor are zero (AWS developer guide, AllZero).
    """

    patience: int = 10
    """Recorded steps in a row. A zero initialisation leaves zero with the first updates."""
    threshold: float = 100.0
    """Zeros, percent of the elements (AWS developer guide)."""
    classic: bool = False
    collection_names: str | None = None
    """Classic: collections to look at, joined by commas."""
    regex: str | None = None
    """Classic: names of tensors to look at, besides; without both, all but facts of the optimizer."""

    _ADVICE: ClassVar = (
        "Check the initialisation of that layer, and that nothing multiplies it by zero (a mask, a gate).",
        "Check that its parameters are in the optimizer and get a gradient.",
        "Check that the data that reach it are not empty: padding, a wrong slice, a missing channel.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("patience", at_least=1)
        self.require("threshold", above=0, at_most=100)

    def needs(self) -> Needs:
        """Weights, layer outputs or inputs; classic: whatever is chosen."""
        kinds = () if self.classic else (Kind.WEIGHT, Kind.ACTIVATION, Kind.INPUT)
        return Needs(kinds=kinds, steps=self.patience)

    def not_applicable(self, run: RunView) -> str:
        """Nothing that can be looked at."""
        if self.classic:
            return why_nothing(run, self.collection_names, self.regex)
        return super().not_applicable(run)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Look for tensors that are zero now and were before."""
        if self.classic:
            return self._check_classic(step, run)
        for kind in (Kind.INPUT, Kind.ACTIVATION, Kind.WEIGHT):
            frames = run.frames(kind, self.patience)
            if len(frames) < self.patience or frames[-1].step != step:
                continue
            for row in self._zero_rows(frames[-1], kind):
                key = frames[-1].keys[row]
                if self._counts(key, run) and all(_is_zero(one, key.name, self.threshold) for one in frames):
                    return self._found(step, key, frames[-1].get(key.name), len(frames))
        return None

    def _zero_rows(self, frame: Frame, kind: Kind) -> list[int]:
        rows = frame.rows(kind)
        count = frame.block.count[rows]
        zero = (count > 1) & (frame.block.zero_count[rows] >= self.threshold / 100.0 * count)
        return [int(row) for row in rows[zero]]

    @staticmethod
    def _counts(key: TensorKey, run: RunView) -> bool:
        """Whether zeros in it are a trouble of this rule."""
        if key.kind is Kind.ACTIVATION:
            dead = any(one.rule == "dead_relu" for one in run.open)
            relu = "relu" in key.collections or "relu" in key.name.lower()
            return not dead and not relu and key.module not in frozen_modules(run)
        if key.kind is Kind.WEIGHT:
            gradients = next(iter(run.frames(Kind.GRADIENT, 1)), None)
            trains = gradients is not None and gradients.get(f"gradient/{key.name}") is not None
            return trains and len(key.shape) > 1
        return True

    def _found(self, step: int, key: TensorKey, row: Row | None, n: int) -> Finding:
        zeros = int(row.zero_count) if row else 0
        return self.finding(
            step,
            f"{zeros} of {int(row.count) if row else 0} values of {key.name} are zero"
            + (f", at each of the last {n} recorded steps." if n > 1 else "."),
            key=key,
            evidence={
                "zeros_count": zeros,
                "elements_count": int(row.count) if row else 0,
                "recorded_steps_count": n,
            },
            advice=self._ADVICE,
            view=ViewRef("histogram", {"tensor": key.name}),
        )

    def _check_classic(self, step: int, run: RunView) -> Finding | None:
        for mode in Mode:
            for key, row in selected(run.frame(mode), self.collection_names, self.regex):
                if 100.0 * row.zero_count >= self.threshold * row.count:
                    return self._found(step, key, row, 1)
        return None


def _is_zero(frame: Frame, name: str, percent: float) -> bool:
    row = frame.get(name)
    return row is not None and bool(np.greater_equal(row.zero_count, percent / 100.0 * row.count))
