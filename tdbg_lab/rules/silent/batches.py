"""What rules on batches share: digests of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.rules.silent.loop import LoopRule, noted

if TYPE_CHECKING:
    from tdbg_lab.rules.view import RunView

__all__ = ["BATCH", "BatchRule"]

BATCH = "check/batch"
"""The digest of a batch."""


@dataclass(frozen=True, kw_only=True)
class BatchRule(LoopRule):
    """A rule on the batches of training."""

    def not_applicable(self, run: RunView) -> str:
        """Without a digest of the batches."""
        if why := super().not_applicable(run):
            return why
        why = "No digests of batches were recorded so far: they are made of inputs in CPU memory."
        return "" if noted(run, "batch") else why
