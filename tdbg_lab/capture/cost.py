"""What capture itself costs."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter_ns

from tdbg_lab.records import Kind, TensorKey

__all__ = ["Cost", "CostMeter"]

CAPTURE_KEY = TensorKey("tdbg/capture_ms", Kind.COST)
STEP_KEY = TensorKey("tdbg/step_ms", Kind.COST)
EVERY_KEY = TensorKey("tdbg/save_every", Kind.COST)
BYTES_KEY = TensorKey("tdbg/bytes_written", Kind.COST)


@dataclass(frozen=True, slots=True)
class Cost:
    """Our own cost, averaged over the steps since the last saved one."""

    capture_ms: float = 0.0
    """Time in capture per step, ms, in the training thread."""
    step_ms: float = 0.0
    """Duration of a step, ms, capture included; from its first forward on where an evaluation precedes it."""
    bytes_written: int = 0
    """Since the run began."""

    @property
    def share(self) -> float:
        """Share of a step spent in capture, 0 to 1; 0 while no step is known."""
        return self.capture_ms / self.step_ms if self.step_ms else 0.0


class CostMeter:
    """Averages capture time and step duration between two readings."""

    __slots__ = (
        "_capture_ns",
        "_counted",
        "_last_spent_ns",
        "_mark_ns",
        "_wall_ns",
        "capture_ns",
        "last",
        "skipped",
        "step_ns",
    )

    def __init__(self) -> None:
        self.last = Cost()
        self._mark_ns = 0
        self._last_spent_ns = 0
        self._capture_ns = 0
        self._wall_ns = 0
        self._counted = 0
        self.step_ns = self.capture_ns = 0
        """What the last step took, and what of it capture took; 0 where it was not counted."""
        self.skipped = False
        """Whether the current step was not counted from its beginning, and may be from its first forward."""

    def skip(self) -> None:
        """The current step holds something that is not training: do not count it, or only what follows it."""
        self._mark_ns = 0
        self.skipped = True

    def go_on(self, spent_ns: int, began_ns: int) -> None:
        """The first forward of a step that trains begins, after what is not counted; see `step_done`."""
        self.skipped = False
        self._mark_ns = now = perf_counter_ns()
        self._last_spent_ns = spent_ns + now - began_ns if began_ns else spent_ns

    def step_done(self, spent_ns: int, began_ns: int) -> None:
        """A step is over.

        Parameters
        ----------
        spent_ns
            Time in capture since the run began, without the part that is running.
        began_ns
            When that part began, 0 where there is none: the rest of it falls into the next step.
        """
        now = perf_counter_ns()
        if began_ns:
            spent_ns += now - began_ns
        self.step_ns = self.capture_ns = 0
        if self._mark_ns:
            self.step_ns = now - self._mark_ns
            self.capture_ns = spent_ns - self._last_spent_ns
            self._wall_ns += self.step_ns
            self._capture_ns += self.capture_ns
            self._counted += 1
        self._mark_ns = now
        self.skipped = False
        self._last_spent_ns = spent_ns

    def read(self, bytes_written: int) -> Cost | None:
        """Averages since the last reading; None when no whole step went by."""
        if not self._counted:
            return None
        scale = 1e-6 / self._counted
        self.last = Cost(self._capture_ns * scale, self._wall_ns * scale, bytes_written)
        self._capture_ns = self._wall_ns = self._counted = 0
        return self.last
