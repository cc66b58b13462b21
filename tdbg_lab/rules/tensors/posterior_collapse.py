"""The code of a variational autoencoder that is its prior, and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_TOLD_APART
from tdbg_lab.rules.memo import remembered
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.schedule import warming_up

if TYPE_CHECKING:
    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.layout import Layout
    from tdbg_lab.rules.view import RunView

__all__ = ["PosteriorCollapse"]

_WEIGHT = re.compile(r"(^|[.])weight\w*$")
"""Weights of PyTorch, of shape (outputs, inputs); those of Keras lie the other way."""
_GROWS = 1.5
"""Size now over that in the beginning of the window from which the code is on its way."""


class _Code(NamedTuple):
    """Outputs that hold means and logarithms of variances: of two layers, or of one."""

    mean: str
    deviation: str
    width: int


@rule("posterior_collapse", title="Posterior collapsed")
@dataclass(frozen=True, kw_only=True)
class PosteriorCollapse(Rule):
    """Means and logarithms of variances of a variational autoencoder's code are zero for all samples.

    That is the prior: the code is noise and tells nothing of its input. A unit counts as active when its mean
    varies by more than 0.1 between samples (Burda et al., Importance weighted autoencoders, 2016); here all
    of them are smaller than that, for all samples, and the variances are about one. Some inactive units are
    healthy.

    Such layers are known by their shapes: two layers of one shape, narrower than what they are given, one
    behind the other though neither fits onto the other, or a single one of twice the width; and a layer
    behind them that takes what one of them gives.
    """

    size: float = 0.1
    """Root mean square of means below which they are those of the prior. In healthy trainings it was 0.9 and
    more."""
    log_variance: float = 0.3
    """The same of logarithms of variances: a standard deviation within a sixth of one."""
    patience: int = 32
    """Recorded batches in a row."""

    explains: ClassVar[tuple[str, ...]] = (
        *NOT_TOLD_APART,
        *("constant_output", "layer_collapse", "vanishing_gradient", "tensor_variance", "dead_relu"),
    )
    _ADVICE: ClassVar = (
        "Lower the weight of the KL term, or let it rise from zero over the first epochs.",
        "Check that both terms of the loss are summed, or both averaged, over the same samples.",
        "Leave each unit some KL for nothing (free bits), or make the decoder weaker.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("size", "log_variance", above=0)
        self.require("patience", at_least=4)

    def needs(self) -> Needs:
        """Layer outputs, and the shapes of weights."""
        return Needs(kinds=(Kind.ACTIVATION,), steps=self.patience)

    def not_applicable(self, run: RunView) -> str:
        """Without layers that could hold a code."""
        if why := super().not_applicable(run):
            return why
        return "" if _codes(run.seen) else "No two layers that could hold means and variances were recorded."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Judge the sizes of the last batches."""
        frames = run.frames(Kind.ACTIVATION, self.patience)
        if len(frames) < self.patience or frames[-1].step != step or warming_up(run).now:
            return None
        for code in _codes(run.seen):
            sizes = np.array(
                [[_size(frame, name) for name in (code.mean, code.deviation)] for frame in frames]
            )
            if not (sizes < (self.size, self.log_variance)).all() or self._grows(sizes.max(1)):
                continue
            return self._found(step, code, sizes, frames)
        return None

    def _grows(self, sizes: np.ndarray) -> bool:
        part = len(sizes) // 4
        return bool(np.median(sizes[-part:]) > _GROWS * np.median(sizes[:part]))

    def _found(self, step: int, code: _Code, sizes: np.ndarray, frames: list[Frame]) -> Finding:
        mean, deviation = np.median(sizes, axis=0)
        return self.finding(
            step,
            f"The code of {code.width} numbers is its prior: means ({code.mean}) have a size of {mean:.2g}, "
            f"logarithms of variances ({code.deviation}) one of {deviation:.2g}, for all samples of "
            f"{len(frames)} recorded batches. It tells nothing of its input.",
            severity=Severity.WARNING,
            tensor=code.mean,
            evidence={
                "mean_size": float(mean),
                "log_variance_size": float(deviation),
                "width": code.width,
                "batches_count": len(frames),
            },
            advice=self._ADVICE,
            view=ViewRef("histogram", {"tensor": code.mean}),
            step_first=frames[0].step,
        )


@remembered
def _codes(seen: Layout) -> list[_Code]:
    """Layers that may hold a code, in the order of the forward pass."""
    weights = {  # of several, as those of a recurrent layer, the first: it takes the input
        key.module: key
        for key in reversed(seen.keys)
        if key.kind is Kind.WEIGHT and len(key.shape) == 2 and _WEIGHT.search(key.name)
    }
    layers = [
        (key, weights[key.module])
        for key in seen.keys
        if key.kind is Kind.ACTIVATION and key.module in weights and len(key.shape) > 1
    ]
    found = []
    for at, (key, weight) in enumerate(layers[:-1]):
        width, given = weight.shape
        after, takes = layers[at + 1], [one.shape[1] for _, one in layers[at + 1 : at + 3]]
        if _is_pair(weight, after[1]) and width in takes[1:]:
            found.append(_Code(key.name, after[0].name, width))
        elif width <= given and width % 2 == 0 and width // 2 == takes[0] > 1:
            found.append(_Code(key.name, key.name, width // 2))
    return found


def _is_pair(one: TensorKey, other: TensorKey) -> bool:
    """Whether two layers are of one shape, and make less of what both are given."""
    return one.shape == other.shape and 1 < one.shape[0] < one.shape[1]


def _size(frame: Frame, name: str) -> float:
    """Root mean square of an output; NaN where it was not recorded."""
    row = frame.index.get(name)
    if row is None or not frame.block.count[row]:
        return float("nan")
    return float(frame.block.l2[row] / np.sqrt(frame.block.count[row]))
