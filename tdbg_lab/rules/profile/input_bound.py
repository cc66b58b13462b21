"""Training that waits for its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.analysis.loading import advise
from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.losses.state import gathers
from tdbg_lab.rules.profile.activity_rule import PhaseRule
from tdbg_lab.rules.profile.machine import cores_of_a_rank, machines
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.analysis.loading import LoadingAdvice
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["InputBound"]

_HELD = 0.75
_AHEAD = "Load ahead: dataset.prefetch(tf.data.AUTOTUNE), or a keras.utils.PyDataset with workers={n}."
_ENVIRONMENTS = "A program that acts to gather its data: act in several environments at once."


@rule("input_bound", title="Waiting for data")
@dataclass(frozen=True, kw_only=True)
class InputBound(PhaseRule):
    """A large share of each step goes by before its forward pass: training waits for its data.

    What is measured is the time from the end of a step to the next forward pass, in the typical (median)
    step: loading, copying to the device, and whatever else the loop does there. A checkpoint now and then
    does not count. Of a program that gathers its data by acting, it is a notice. The gain that is told
    follows from how the data loader is set: without workers, loading and computing take turns; with workers
    they go on at the same time.
    """

    max_share: float = 0.2
    """Share of the step's time that is waited for data."""
    min_wait_ms: float = 5.0
    """Waiting below it is no matter: handing a batch over from another process takes about as long, ms."""
    window: int = 200
    """Last steps that are looked at."""
    min_steps: int = 20
    """Least number of steps."""
    min_seconds: float = 2.0
    """Least time from the first of them to the last: while a training starts, so do its rules and samples."""

    explains: ClassVar[tuple[str, ...]] = (
        "cpu_bottleneck",
        "low_gpu_utilization",
        "gpu_idle_gaps",
        "batch_size",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("max_share", above=0, below=1)
        self.require("min_wait_ms", "min_seconds", at_least=0)
        self.require("window", "min_steps", at_least=2)

    def judge(self, run: RunView) -> Finding | None:
        """Compare waiting with the rest of the step."""
        times = run.phase_times().training().last(self.window)
        if len(times) < self.min_steps or np.ptp(times.start_ns) < self.min_seconds * 1e9:
            return None
        wait_s = float(np.median(times.of("data")))
        busy_s = float(np.median(times.besides("data", "capture")))
        share = wait_s / (wait_s + busy_s) if wait_s + busy_s > 0 else 0.0
        limit = self.max_share * (_HELD if run.active else 1.0)
        if share < limit or wait_s * 1e3 < self.min_wait_ms:
            return None
        loaders = run.loaders
        took = f"{share:.0%} of step time ({wait_s * 1e3:.3g} of {(wait_s + busy_s) * 1e3:.3g} ms)"
        evidence: dict[str, float | int | str] = {
            "wait_ms": wait_s * 1e3,
            "rest_of_step_ms": busy_s * 1e3,
            "wait_share_percent": 100 * share,
        }
        view = ViewRef("data_loading", {})
        if gathers(run) and not loaders:
            return self.finding(
                run.step,
                f"Acting between two steps is {took}.",
                severity=Severity.NOTICE,
                evidence=evidence,
                advice=(_ENVIRONMENTS,),
                view=view,
            )
        advice = advise(
            wait_s, busy_s, workers=loaders[0].num_workers if loaders else 0, cores=cores_of_a_rank(run)
        )
        if loaders:
            evidence["num_workers_count"] = loaders[0].num_workers
        if advice is not None:
            evidence |= {"advised_workers_count": advice.workers, "gain_percent": 100 * advice.gain}
        return self.finding(
            run.step,
            f"{_subject(run)} {took}{self._promise(run, advice)}.",
            evidence=evidence,
            advice=self._advice(run, advice),
            view=view,
        )

    @staticmethod
    def _promise(run: RunView, advice: LoadingAdvice | None) -> str:
        if advice is None:
            return "" if not run.loaders else "; more workers would not help"
        if _is_keras(run):
            return f": if it loads data, loading ahead would save up to {advice.gain:.0%}"
        loader = "" if run.loaders else " if it loads data, a DataLoader with"
        return f":{loader} num_workers={advice.workers} would save up to {advice.gain:.0%}"

    @staticmethod
    def _advice(run: RunView, advice: LoadingAdvice | None) -> tuple[str, ...]:
        first = run.loaders[0] if run.loaders else None
        told = []
        if advice is not None and _is_keras(run):
            told.append(_AHEAD.format(n=advice.workers))
        elif advice is not None:
            more = ", persistent_workers=True" if first is None or not first.persistent_workers else ""
            told.append(f"Load in other processes: DataLoader(..., num_workers={advice.workers}{more}).")
        if first is None:
            told.append(_ENVIRONMENTS)
        told.append("Make loading itself cheaper: decode and resize once, cache what fits in memory.")
        if first is not None and first.num_workers and (first.prefetch_factor or 2) <= 2:
            told.append("When loading times vary, let workers get further ahead: prefetch_factor=4.")
        if machines(run) and not (first and first.pin_memory):
            told.append("Copy in the background: pin_memory=True and .to(device, non_blocking=True).")
        if first is None:
            told.append("If the loop does something else there, name it: with handle.phase('checkpoint').")
        return tuple(told)


def _is_keras(run: RunView) -> bool:
    """Whether Keras trains, without a loader of PyTorch."""
    return run.info.framework == "keras" and not run.loaders


def _subject(run: RunView) -> str:
    """What takes the time; without a loader it is not known to be loading."""
    return "Data loading is" if run.loaders else "What the loop does between two steps is"
