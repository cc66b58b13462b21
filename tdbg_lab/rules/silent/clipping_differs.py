"""Ranks that clip their gradients differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Kind, ViewRef
from tdbg_lab.rules.base import Needs
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
    ranks take different steps.
    """

    tolerance: float = 1e-3
    """Relative difference of the norms after clipping."""
    confirmations: int = 2
    """Saved steps in a row."""

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
        norms: dict[int, float] = {}
        unclipped: list[int] = []
        for rank, frame in frames.items():
            row, plain = frame.get(_CLIPPED), frame.get(_NORM)
            if row is None:
                unclipped.append(rank)
            row = row or plain
            if row is not None:
                norms[rank] = row.value
        low, high = min(norms.values(), default=0.0), max(norms.values(), default=0.0)
        difference = (high - low) / high if high > 0 else 0.0
        some = 0 < len(unclipped) < len(frames)
        if difference <= self.tolerance and not some:
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
