"""Memory that nobody filled: values before the first step that no initialisation makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule
from tdbg_lab.stats.bins import CENTER

if TYPE_CHECKING:
    from tdbg_lab.records import Finding, StatsBlock
    from tdbg_lab.rules.view import RunView

__all__ = ["UninitialisedValues"]

_PREFIX = "check/initial/"


@rule("uninitialised_values", title="Uninitialised values")
@dataclass(frozen=True, kw_only=True)
class UninitialisedValues(LoopRule):
    """Parameters or buffers held arbitrary memory before the first step: ``torch.empty`` was never filled.

    Known by NaN, or by sizes that no initialisation and no training makes. Infinities alone are meant, and
    so is one large negative number: attention is masked with both, and a smallest value so far begins so.
    """

    largest: float = 1e8
    """Absolute value above which a number cannot be meant, but for a mask's."""
    smallest: float = 1e-25
    """Absolute value (not 0) below which a number cannot be meant."""
    small_share: float = 0.01
    """Share of such small numbers among those that are not 0."""

    explains: ClassVar[tuple[str, ...]] = ("exploding_tensor", "losses")
    _ADVICE: ClassVar = (
        "Fill what torch.empty made: nn.init for parameters, zeros or ones for buffers.",
        "Call reset_parameters() in the constructor of the layer, and after to_empty().",
        "If it was loaded, check the file: it may be damaged, or of another layout.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("largest", "smallest", above=0)
        self.require("small_share", at_least=0, at_most=1)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Judge the values before the first step, once."""
        frame = run.frame()
        bad = []
        for row in frame.rows(Kind.CHECK):
            name = frame.keys[row].name
            if name.startswith(_PREFIX) and (why := self._strange(frame.block, int(row))):
                bad.append((name.removeprefix(_PREFIX), why))
        if not bad:
            return None
        name, why = bad[0]
        more = f" ({len(bad) - 1} more tensors likewise)" if len(bad) > 1 else ""
        return self.finding(
            step,
            f"{name} held {why} before the first step: it was not initialised{more}.",
            severity=Severity.CRITICAL,
            tensor=name,
            evidence={"tensors_count": len(bad), "tensors": ", ".join(one for one, _ in bad[:20])},
            advice=self._ADVICE,
            view=ViewRef("histogram", {"tensor": name}),
        )

    def _strange(self, block: StatsBlock, row: int) -> str:
        """What is strange about a tensor, or ``""``."""
        if broken := int(block.nan_count[row]):
            return f"{broken} values that are NaN"
        span = slice(int(block.hist_offsets[row]), int(block.hist_offsets[row + 1]))
        counts, centers = block.hist_counts[span], CENTER[block.hist_bins[span]]
        low, high = float(block.min[row]), float(block.max[row])
        if high > self.largest or (centers < -self.largest).sum() > 1:
            return f"values up to {max(high, -low):.2g}"
        small = int(counts[np.abs(centers) < self.smallest].sum())
        total = int(counts.sum())
        if total and small / total > self.small_share and small > 1:
            return f"{small} of {total} values below {self.smallest:.0e}"
        return ""
