"""Steps made of so many small operations that asking for them takes longer than doing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.profile.activity_rule import WindowRule
from tdbg_lab.rules.profile.usual_step import usual_step
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.profile.usual_step import UsualStep
    from tdbg_lab.rules.view import RunView
    from tdbg_lab.store.profile_use import ProfileUse

__all__ = ["TinyKernels"]

_MOST_SAVED = 0.9
_GPU_ADVICE = (
    "torch.compile(model) makes fewer, larger kernels; mode='reduce-overhead' adds CUDA graphs.",
    "Use a fused optimizer, such as torch.optim.AdamW(..., fused=True): one kernel instead of many.",
    "A larger batch gives each kernel more to do in the same time.",
)
_CPU_ADVICE = (
    "Replace loops over rows or time steps by operators on whole tensors.",
    "A larger batch gives each operator more to do; the step takes hardly longer.",
    "Try torch.compile(model), and an optimizer with foreach=True or fused=True.",
)


@rule("tiny_kernels", title="Tiny kernels")
@dataclass(frozen=True, kw_only=True)
class TinyKernels(WindowRule):
    """Operations so small and so many that the device waits for the next one most of the time.

    Judged from a profile of some steps: how much work there is in them. How long steps take is seen from
    other ones, for profiling itself makes every call longer. On a GPU the finding wants typical kernels of
    `max_kernel_us` and a GPU that is idle for `min_idle` of the computing phases; what synchronising calls
    lose is not counted again. On the CPU it wants operators that together cost more, by `operator_us` each
    before any of them computes anything, than half of the computing phases; that is a notice.
    """

    max_kernel_us: float = 20.0
    """Median time of a kernel, microseconds; launching one takes about half of it."""
    min_kernels: int = 100
    """Kernels a step."""
    min_idle: float = 0.3
    """Share of the computing phases in which the GPU is idle."""
    operator_us: float = 3.0
    """On the CPU: what an operator costs before it computes anything, microseconds."""
    min_operators: int = 500
    """On the CPU: operators a step."""

    explains: ClassVar[tuple[str, ...]] = ("low_gpu_utilization", "gpu_idle_gaps", "cpu_bottleneck")

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("max_kernel_us", "operator_us", above=0)
        self.require("min_kernels", "min_operators", at_least=1)
        self.require("min_idle", above=0, below=1)

    def look(self, run: RunView, profile: ProfileUse) -> Finding | None:
        """Compare the work of a profile with the length of other steps."""
        usual = usual_step(run, profile)
        if usual is None or usual.computing_s <= 0:
            return None
        return self._gpu(run, profile, usual) if profile.kernels else self._cpu(run, profile, usual)

    def _gpu(self, run: RunView, profile: ProfileUse, usual: UsualStep) -> Finding | None:
        kernels, busy_s = profile.kernels / profile.steps, profile.busy_s / profile.steps
        lost = sum(one.lost_s for one in profile.waits) / profile.steps_s
        idle = 1.0 - busy_s / usual.computing_s - lost
        median_us = 1e6 * profile.kernel_median_s
        if median_us > self.max_kernel_us or kernels < self.min_kernels or idle < self.min_idle:
            return None
        gain = idle * usual.computing_s / usual.length_s
        return self.finding(
            run.step,
            f"A step is {kernels:,.0f} kernels of typically {median_us:.2g} us, and the GPU is idle for "
            f"{idle:.0%} of the time between them: launching takes longer than computing. Steps could be up "
            f"to {gain:.0%} shorter.",
            severity=Severity.WARNING if gain >= self.min_idle else Severity.NOTICE,
            evidence={
                "kernels_a_step": kernels,
                "kernel_median_us": median_us,
                "idle_percent": 100 * idle,
                "gain_percent": 100 * gain,
                "profile": profile.name,
            },
            advice=_GPU_ADVICE,
            view=ViewRef("operators", {"show": "kernels"}),
            rank=profile.rank if len(run.ranks) > 1 else None,
        )

    def _cpu(self, run: RunView, profile: ProfileUse, usual: UsualStep) -> Finding | None:
        operators = profile.operators / profile.steps
        share = min(_MOST_SAVED, operators * self.operator_us / 1e6 / usual.computing_s)
        if operators < self.min_operators or share < 0.5:
            return None
        gain = share * usual.computing_s / usual.length_s
        return self.finding(
            run.step,
            f"A step is {operators:,.0f} operators, one each {1e6 * usual.computing_s / operators:.2g} us: "
            f"about {share:.0%} of that goes into calling them. Fewer, larger operators would save up to "
            f"{gain:.0%} of the step.",
            severity=Severity.NOTICE,
            evidence={
                "operators_a_step": operators,
                "operator_us": 1e6 * usual.computing_s / operators,
                "gain_percent": 100 * gain,
                "profile": profile.name,
            },
            advice=_CPU_ADVICE,
            view=ViewRef("operators", {}),
            rank=profile.rank if len(run.ranks) > 1 else None,
        )
