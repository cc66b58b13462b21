"""When an action that failed is tried again: one that is performed once a run would else never be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.rules.acting import Failure, Worker

__all__ = ["MAX_TRIES", "Retry"]

MAX_TRIES = 6
"""With the default `cooldown_s` over half an hour: long enough for a server that starts anew."""
_LEAST_WAIT_S = 5.0


@dataclass(slots=True)
class Retry:
    """An action that failed for a finding, and how it went on."""

    failure: Failure
    """The latest."""
    tries: int = 0
    due_s: float | None = None
    """When it is tried again, s of the clock of `failed`; None while it is tried, or never again."""

    def failed(self, failure: Failure, worker: Worker, now_s: float, *, last: bool) -> str:
        """Take note of a failure; gives what to tell of it. `last` when there is no time to try again."""
        self.failure = failure
        self.tries += 1
        why = failure.message
        if worker.hangs:
            return f"failed: {why}"
        if last or self.tries >= MAX_TRIES:
            return f"failed {_times(self.tries)} and is not tried again: {why}"
        wait_s = max(worker.action.cooldown_s, _LEAST_WAIT_S) * 2 ** (self.tries - 1)
        self.due_s = now_s + wait_s
        return f"failed and is tried again: {why}"

    def performed(self) -> str:
        """What to tell now that it went well."""
        return f"was performed at try {self.tries + 1}; before, it failed: {self.failure.message}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
