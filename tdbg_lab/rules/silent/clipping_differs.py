"""Ranks that clip their gradients differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Kind, ViewRef
from tdbg_lab.rules.base import Needs
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["ClippingDiffers"]

_CLIPPED = "optimizer/grad_norm_clipped"
_NORM = "optimizer/grad_norm"


@rule("clipping_differs", title="Ranks clip differently")
@dataclass(frozen=True, kw_only=True)
class ClippingDiffers(LoopRule):
    """After clipping, the norm of the gradients is not the same on all ranks, or one of them does not clip.

    Replicas average their gradients before they are clipped, so both norms must be equal; if not, the
    ranks take different steps and drift apart. Gradients that differ before they are clipped were not
    averaged, or each rank has a part of them: that is not for this rule to say.
    """

    tolerance: float = 1e-3
    """Relative difference of the norms after clipping."""
    confirmations: int = 2
    """Saved steps in a row."""

    explains: ClassVar[tuple[str, ...]] = ("diverging_replicas", *NOT_LEARNING)
    _ADVICE: ClassVar = (
        "Clip after the gradients were averaged (after backward), with the same limit on all ranks.",
        "With a gradient scaler call scaler.unscale_(optimizer) before clipping, on all ranks.",
        "With sharded parameters use the clipping of the wrapper, which knows the norm of the whole.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("tolerance", at_least=0)

    def needs(self) -> Needs:
        """Norms of each rank by itself."""
        return Needs(kinds=(Kind.OPTIMIZER,), steps=2, per_rank=True)

    def not_applicable(self, run: RunView) -> str:
        """With one rank, or without clipping."""
        if run.info.world_size < 2 and len(run.ranks) < 2:
            return "There is only one rank."
        clips = bool(run.tensors(Kind.OPTIMIZER, regex=f"^{_CLIPPED}$"))
        return "" if clips else "No clipping of gradients was seen so far."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare the norms of the last step that all ranks saved."""
        frames = {rank: found[-1] for rank, found in run.rank_frames(Kind.OPTIMIZER, 1).items()}
        if len(frames) < 2 or any(frame.step != step for frame in frames.values()):
            return None
        rows = {rank: frame.get(_CLIPPED) for rank, frame in frames.items()}
        plain = [row.value for frame in frames.values() if (row := frame.get(_NORM)) is not None]
        unclipped = [rank for rank, row in rows.items() if row is None]
        norms = [row.value for row in rows.values() if row is not None]
        low, high = min(norms, default=0.0), max(norms, default=0.0)
        if _difference(plain) > self.tolerance:
            return None
        some = 0 < len(unclipped) < len(frames)
        if some:
            low, high = min([low, *plain]), max([high, *plain])
        difference = _difference([low, high])
        if difference <= self.tolerance:
            return None
        what = f"rank {unclipped[0]} did not clip" if some else f"norms from {low:.3g} to {high:.3g}"
        return self.finding(
            step,
            f"Gradients of {len(frames)} ranks differ by {100 * difference:.2g} % after clipping: {what}.",
            tensor=_CLIPPED,
            evidence={
                "norm_least": low,
                "norm_largest": high,
                "ranks_without_clipping_count": len(unclipped),
            },
            advice=self._ADVICE,
            view=ViewRef("scalars", {"tensors": [_CLIPPED]}),
        )


def _difference(norms: list[float]) -> float:
    """Relative difference of the largest and the smallest."""
    high = max(norms, default=0.0)
    return (high - min(norms)) / high if high > 0 else 0.0
