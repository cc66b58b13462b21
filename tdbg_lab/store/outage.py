"""A place that cannot be written to for a while: a full disk, a file system that is gone."""

from __future__ import annotations

import time

__all__ = ["Outage"]

RETRY_S = 30.0
"""Time from a failure to the next try, doubled with each failure: trying must cost training nothing."""
LONGEST_S = 600.0


class Outage:
    """Whether it is worth trying to write, and what is missing where it was not."""

    def __init__(self) -> None:
        self.reason: str | None = None
        """Why nothing can be written now; None while all goes well."""
        self._missing = 0
        self._wait_s = RETRY_S
        self._due_s = 0.0

    @property
    def blocks(self) -> bool:
        """Whether it is too early to try again."""
        return self.reason is not None and time.monotonic() < self._due_s

    def miss(self, count: int = 1) -> None:
        """Count what is not written."""
        self._missing += count

    def begin(self, reason: str) -> bool:
        """A write failed; whether the one before it had not."""
        first = self.reason is None
        self.reason = reason
        self._due_s = time.monotonic() + self._wait_s
        self._wait_s = min(2 * self._wait_s, LONGEST_S)
        return first

    def end(self, what: str) -> str:
        """A write went well again; says how many of `what` are missing."""
        reason, self.reason = self.reason, None
        missing, self._missing = self._missing, 0
        return f"{missing:,} {what} could not be written ({reason})"
