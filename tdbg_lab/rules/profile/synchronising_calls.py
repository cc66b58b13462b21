"""Calls that make the training loop wait for its GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.profile.activity_rule import WindowRule
from tdbg_lab.rules.profile.usual_step import usual_step
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView
    from tdbg_lab.store.profile_use import ProfileUse, Wait

__all__ = ["SynchronisingCalls"]

_WORDS = {
    "item": ".item() or float()",
    "cpu": ".cpu(), .tolist() or .numpy()",
    "to_device": ".to(device) of memory that is not pinned",
    "condition": "a tensor as a condition",
    "mask": "a mask or nonzero()",
    "print": "print of a tensor",
    "synchronize": "synchronize()",
}
_ADVICE = {
    "item": "Sum up on the GPU, total += loss.detach(), and call .item() every 50 steps or once an epoch.",
    "cpu": "Collect results on the GPU and copy them once, or with non_blocking=True into pinned memory.",
    "to_device": "Let the loader pin memory (pin_memory=True) and copy with .to(device, non_blocking=True).",
    "condition": "Choose on the GPU, with torch.where instead of if; keep flags as Python numbers.",
    "mask": "Multiply by the mask, or torch.where: the size of x[mask] is known only when the GPU is done.",
    "print": "Print every 100 steps: each number of a printed tensor is waited for.",
    "synchronize": "Take torch.cuda.synchronize() out of the loop, or time with torch.cuda.Event.",
}


@rule("synchronising_calls", title="Synchronising calls")
@dataclass(frozen=True, kw_only=True)
class SynchronisingCalls(WindowRule):
    """Calls such as ``.item()`` wait until the GPU is done; then it has nothing to do until new work comes.

    Judged from a profile of some steps. A wait costs as much as the GPU is idle after it, for so long at
    most as was waited: by that much the loop would have been ahead. On the CPU nothing is waited for, and
    the same calls are free.
    """

    min_gain: float = 0.03
    """Share of the step's time that is lost by it."""
    warn_gain: float = 0.1
    """Share from which on it is more than a notice."""

    explains: ClassVar[tuple[str, ...]] = ("low_gpu_utilization", "gpu_idle_gaps")

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("min_gain", "warn_gain", above=0, below=1)

    def not_applicable(self, run: RunView) -> str:
        """Before a profile, and where no GPU is used."""
        if why := super().not_applicable(run):
            return why
        used = run.activity is not None and any(one.kernels for one in run.activity.profiles)
        return "" if used else "In the profiled steps nothing ran on a GPU: there was nothing to wait for."

    def look(self, run: RunView, profile: ProfileUse) -> Finding | None:
        """Add up what the waits of a profile cost."""
        if not profile.kernels or not profile.waits:
            return None
        gain = min(1.0, sum(one.lost_s for one in profile.waits) / profile.steps_s)
        usual = usual_step(run, profile)
        if usual is not None and usual.length_s > 0:  # more than the GPU is idle cannot be gained
            gain = min(gain, max(0.0, 1.0 - profile.busy_s / profile.steps / usual.length_s))
        return self._found(run, profile, gain) if gain >= self.min_gain else None

    def _found(self, run: RunView, profile: ProfileUse, gain: float) -> Finding:
        worst = profile.waits[0]
        calls = sum(one.calls for one in profile.waits) / profile.steps
        waited = min(1.0, sum(one.waited_s for one in profile.waits) / profile.steps_s)
        causes = dict.fromkeys(one.cause for one in profile.waits)
        return self.finding(
            run.step,
            f"The loop waits for the GPU {calls:.3g} times a step, mostly in {_where(worst)}: it then has "
            f"nothing to do until new work comes. Without these calls steps would be about {gain:.0%} "
            "shorter.",
            severity=Severity.WARNING if gain >= self.warn_gain else Severity.NOTICE,
            evidence={
                "calls_a_step": calls,
                "waited_percent": 100 * waited,
                "gain_percent": 100 * gain,
                "worst": worst.cause,
                "place": worst.place,
                "profile": profile.name,
            },
            advice=tuple(_ADVICE[one] for one in causes if one in _ADVICE)[:3],
            view=ViewRef("flame", {}),
            rank=profile.rank if len(run.ranks) > 1 else None,
        )


def _where(wait: Wait) -> str:
    what = _WORDS.get(wait.cause, wait.cause)
    return f"{what} in {wait.place}" if wait.place else what
