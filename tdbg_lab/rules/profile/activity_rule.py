"""What the rules of the profiler have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tdbg_lab.rules.base import Needs, Rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView
    from tdbg_lab.store.profile_use import ProfileUse

__all__ = ["ActivityRule", "GpuRule", "PhaseRule", "SampledRule", "WindowRule"]

_NOT_SAMPLED = (
    "The load of the machine was not sampled so far; attach(..., profiler=True), the default, does."
)

_NOT_PROFILED = (
    "No steps were profiled so far: profile a few to judge this, with handle.profile(steps=5) or the button "
    "in the Lab."
)


@dataclass(frozen=True, kw_only=True)
class ActivityRule(Rule):
    """A rule on phases and load: judges when they move on, about once a second, and is cheap between."""

    def needs(self) -> Needs:
        """What training and its machines did."""
        return Needs(activity=True)

    def check(self, step: int, run: RunView) -> Finding | None:
        """The verdict of this second, at this step."""
        if run.activity is None:
            return None
        memo, key = run.activity.memo, (self.name, run.active is not None)
        if key not in memo:
            memo[key] = self.judge(run)
        found: Finding | None = memo[key]
        return None if found is None else replace(found, step_first=step, step_last=step)

    def judge(self, run: RunView) -> Finding | None:
        """Look at phases and load as far as they are known."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class PhaseRule(ActivityRule):
    """A rule on the phases of steps."""

    def not_applicable(self, run: RunView) -> str:
        """Without a timed step."""
        if run.activity is not None and run.activity.spans.ranks:
            return ""
        return "No step was timed so far; attach(..., profiler=True), the default, times them."


@dataclass(frozen=True, kw_only=True)
class GpuRule(ActivityRule):
    """A rule on the load of GPUs."""

    def not_applicable(self, run: RunView) -> str:
        """Without a GPU."""
        if run.activity is None or not run.activity.samples.devices("cpu"):
            return _NOT_SAMPLED
        if run.activity.samples.devices("gpu"):
            return ""
        return "No GPU was found on the machines of this run: NVML sees none."


@dataclass(frozen=True, kw_only=True)
class SampledRule(ActivityRule):
    """A rule on the last samples of some load, with a second condition: that of SageMaker Debugger."""

    window: int = 500
    """Last samples that are looked at."""
    least: int = 120
    """Least number of samples."""
    classic: bool = False
    patience: int = 1000
    """Classic: samples before the rule speaks."""

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("window", "least", "patience", at_least=1)

    def last(self, run: RunView, metric: str, device: str, rank: int) -> NDArray[np.float64] | None:
        """The last `window` samples, since training has begun or (classic) of all; None when too few."""
        samples = run.samples(metric, device, rank)
        if self.classic:
            return samples.values[-self.window :] if len(samples.values) > self.patience else None
        begun = run.activity.spans.first_ns if run.activity else None
        values = samples.values[samples.time_ns >= (begun or 0)]
        return values[-self.window :] if len(values) >= self.least else None


@dataclass(frozen=True, kw_only=True)
class WindowRule(ActivityRule):
    """A rule on steps that were profiled on demand: nothing cheaper tells what it looks at."""

    def not_applicable(self, run: RunView) -> str:
        """Before a profile."""
        if run.activity is not None and any(one.steps for one in run.activity.profiles):
            return ""
        return _NOT_PROFILED

    def judge(self, run: RunView) -> Finding | None:
        """Look at the last profile of each rank; the rank with most to gain."""
        profiles = run.activity.profiles if run.activity else ()
        found = [self.look(run, one) for one in profiles if one.steps and one.steps_s > 0]
        told = [one for one in found if one is not None]
        return max(told, key=lambda one: float(one.evidence["gain_percent"]), default=None)

    def look(self, run: RunView, profile: ProfileUse) -> Finding | None:
        """Look at one profile; the evidence of a finding has its ``gain_percent``."""
        raise NotImplementedError
