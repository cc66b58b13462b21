"""How many workers the data loaders have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.profile.activity_rule import PhaseRule
from tdbg_lab.rules.profile.machine import devices, ranks_of_a_machine
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["Dataloader"]

_NS = 1e9


@rule("dataloader", title="Data loader workers")
@dataclass(frozen=True, kw_only=True)
class Dataloader(PhaseRule):
    """Data loaders have far more workers than there are cores, or make a GPU wait for copies.

    Too few workers are found by the rule on waiting for data, which sees whether it matters.

    With `classic`, the condition of SageMaker Debugger, with the workers that the loaders have in place of
    those seen at work in each second: after `patience` seconds of training, fewer than `min_threshold`
    percent of the cores, or more than `max_threshold`.
    """

    max_threshold: float = 200.0
    """Workers, percent of the cores."""
    min_wait_ms: float = 2.0
    """Waiting of a step from which unpinned memory is told, ms."""
    classic: bool = False
    min_threshold: float = 70.0
    """Classic: workers, percent of the cores."""
    patience: float = 10.0
    """Classic: time of training before the rule speaks, s."""

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("max_threshold", "min_threshold", "min_wait_ms", "patience", at_least=0)

    def not_applicable(self, run: RunView) -> str:
        """Without a known loader, or a known number of cores."""
        if why := super().not_applicable(run):
            return why
        if not run.loaders:
            return "No data loader of PyTorch was seen so far."
        known = run.activity is not None and run.activity.samples.cores() is not None
        return "" if known else "The cores of the machine are not known: its load was not sampled."

    def judge(self, run: RunView) -> Finding | None:
        """Compare workers with cores."""
        activity = run.activity
        cores = activity.samples.cores() if activity else None
        if activity is None or cores is None or not run.loaders:
            return None
        trained_s = (activity.now_ns - (activity.spans.first_ns or activity.now_ns)) / _NS
        ranks = len({one.rank for one in run.loaders})
        workers = sum(one.num_workers for one in run.loaders) * ranks_of_a_machine(run) // ranks
        share = 100.0 * workers / cores
        if self.classic and trained_s <= self.patience:
            return None
        if share > self.max_threshold:
            return self._many(run, workers, cores)
        if self.classic:
            return self._few(run, workers, cores) if share < self.min_threshold else None
        return self._unpinned(run)

    def _many(self, run: RunView, workers: int, cores: int) -> Finding:
        best = max(1, cores // ranks_of_a_machine(run))
        return self.finding(
            run.step,
            f"Data loaders have {workers} workers on {cores} cores, which take the processor from each "
            f"other and from "
            f"training; num_workers={best} would load as much.",
            evidence={"workers_count": workers, "cores_count": cores, "advised_workers_count": best},
            advice=(f"Lower num_workers to {best}: memory and start-up time go down with it.",),
            view=ViewRef("data_loading", {}),
        )

    def _few(self, run: RunView, workers: int, cores: int) -> Finding:
        return self.finding(
            run.step,
            f"Data loaders have {workers} workers on {cores} cores: more would load more at the same time.",
            evidence={"workers_count": workers, "cores_count": cores},
            advice=(f"Raise num_workers, up to {cores}, if steps wait for data.",),
            view=ViewRef("data_loading", {}),
        )

    def _unpinned(self, run: RunView) -> Finding | None:
        times = run.phase_times().training()
        unpinned = [one for one in run.loaders if not one.pin_memory and one.num_workers]
        used = any(
            float(run.samples("gpu", device, rank).values.max(initial=0.0)) > 0
            for rank, device in devices(run, "gpu")
        )
        if not unpinned or not used or len(times) < 20:
            return None
        wait_ms = float(np.median(times.of("data"))) * 1e3
        if wait_ms < self.min_wait_ms:
            return None
        return self.finding(
            run.step,
            f"The data loader does not pin its memory, and steps wait {wait_ms:.3g} ms before their forward "
            f"pass: batches "
            "are copied to the GPU while it waits.",
            severity=Severity.NOTICE,
            evidence={"wait_ms": wait_ms},
            advice=("Copy while the GPU computes: pin_memory=True and x.to(device, non_blocking=True).",),
            view=ViewRef("data_loading", {}),
        )
