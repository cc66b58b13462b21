"""Replicas of one model that are not equal any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule, noted

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.view import RunView

__all__ = ["DivergingReplicas"]

_DIGEST = "check/weights"
_SHARD = "shard"


@rule("diverging_replicas", title="Replicas diverge")
@dataclass(frozen=True, kw_only=True)
class DivergingReplicas(LoopRule):
    """Ranks that should hold the same weights do not: their gradients are not averaged.

    Compared are a digest of some weights at each step, and the statistics of all weights at saved steps.
    Weights that are spread over ranks by design (FSDP, tensor parallelism by DTensor) are left out, and so
    are the stages of a pipeline.
    """

    tolerance: float = 1e-5
    """Relative difference from which weights are not equal."""
    confirmations: int = 2
    """Checked steps in a row."""

    explains: ClassVar[tuple[str, ...]] = NOT_LEARNING
    _ADVICE: ClassVar = (
        "Wrap the model in DistributedDataParallel and call the wrapper, not model.module, in training.",
        "Start all ranks from the same weights: same seed, or broadcast them from rank 0.",
        "Do not change weights on one rank only (rank-dependent branches, loading on rank 0 only).",
        "Look for no_sync() around backward passes that are followed by a step.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("tolerance", at_least=0)

    def needs(self) -> Needs:
        """Facts and weights of each rank by itself."""
        return Needs(kinds=(Kind.CHECK, Kind.WEIGHT, Kind.LOSS), steps=4, per_rank=True)

    def not_applicable(self, run: RunView) -> str:
        """With one rank, or where each rank has other layers."""
        if run.info.world_size < 2 and len(run.ranks) < 2:
            return "There is only one rank."
        return "Each rank has a stage of a pipeline: there are no replicas." if noted(run, "stage") else ""

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare what all ranks have of the last step that several of them wrote."""
        by_step = _at_one_step(run.rank_frames(Kind.CHECK, 4), _DIGEST)
        name, difference = "", 0.0
        if by_step:
            difference = _difference(list(by_step.values()))
        found = self._weights(run)
        if found is not None and found[1] > self.tolerance:
            name, difference = found
        if difference <= self.tolerance:
            return None
        active = run.active is not None
        first = not active and not _were_equal(run, self.tolerance)
        ranks = len(by_step) or len(run.ranks)
        return self.finding(
            step,
            f"The weights of {ranks} ranks differ by {100 * difference:.2g} %"
            f"{' in ' + name if name else ''}: the replicas are not kept equal"
            f"{' from the first step on' if first else ''}.",
            severity=Severity.CRITICAL,
            tensor=name,
            evidence={"relative_difference": difference, "ranks_count": ranks},
            advice=self._ADVICE,
            view=ViewRef("overview", {"kind": "weight", "statistic": "l2"}),
        )

    def _weights(self, run: RunView) -> tuple[str, float] | None:
        """The first weight that differs between ranks at the last step that all of them saved."""
        frames = {rank: found[-1] for rank, found in run.rank_frames(Kind.WEIGHT, 1).items()}
        if len(frames) < 2 or len({frame.step for frame in frames.values()}) > 1:
            return None
        one, *others = frames.values()
        worst: tuple[str, float] | None = None
        for key, row in one.items(Kind.WEIGHT):
            if _SHARD in key.collections:
                continue
            sizes = [row.l2]
            for other in others:
                twin = other.get(key.name)
                if twin is None or twin.count != row.count:
                    return None
                sizes.append(twin.l2)
            difference = _difference(sizes)
            if difference > self.tolerance and worst is None:
                worst = key.name, difference
        return worst


def _at_one_step(frames: dict[int, list[Frame]], name: str) -> dict[int, float]:
    """Value of a number on each rank, at the last step for which all of them have it; empty else."""
    found: dict[int, dict[int, float]] = {}
    for rank, own in frames.items():
        for frame in own:
            row = frame.get(name)
            if row is not None:
                found.setdefault(frame.step, {})[rank] = row.value
    complete = [values for _, values in sorted(found.items()) if len(values) == len(frames) > 1]
    return complete[-1] if complete else {}


def _were_equal(run: RunView, tolerance: float) -> bool:
    """Whether the ranks had the same weights at any of the last steps."""
    frames = run.rank_frames(Kind.CHECK, 4)
    found: dict[int, list[float]] = {}
    for own in frames.values():
        for frame in own:
            row = frame.get(_DIGEST)
            if row is not None:
                found.setdefault(frame.step, []).append(row.value)
    return any(len(one) == len(frames) and _difference(one) <= tolerance for one in found.values())


def _difference(values: list[float]) -> float:
    """Relative difference of the largest and the smallest."""
    low, high = min(values), max(values)
    size = max(abs(low), abs(high))
    return (high - low) / size if size > 0 else 0.0
