"""The life of a sender: passes at intervals, patience with failures, and when it is over."""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tdbg_lab.clock import since_boot_ns
from tdbg_lab.errors import StoreError
from tdbg_lab.store.findings import read_rule_status
from tdbg_lab.store.remote.outgoing import walk
from tdbg_lab.store.remote.spool import Spooled, UploadState, spooled_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from threading import Event

    from tdbg_lab.store.remote.uploader import Uploader

__all__ = ["FLUSH_S", "Service", "unsent_runs"]

log = logging.getLogger("tdbg_lab")

FLUSH_S: Final = 2.0
"""Time between two passes: what a reader waits for a new row, apart from its own interval."""
LONGEST_WAIT_S: Final = 30.0
QUIET_PASSES: Final = 2
"""Passes without news after the end: the other processes of a run end a little later."""
GIVE_UP_S: Final = 3600.0
"""After the end, a failing sender leaves the rest to ``tdbg sync`` or the next training."""
GIVE_UP_REFUSED_S: Final = 60.0
"""The same where the object store says no: it will not change its mind soon."""
STATE_S: Final = 10.0
RUNNER_SILENCE_NS: Final = 120 * 10**9


@dataclass(slots=True)
class _Failing:
    times: int = 0
    since_s: float = 0.0
    since_ns: int = 0
    problem: str | None = None
    transient: bool = True


class Service:
    """Sends one run until it has ended and all of it is sent.

    Parameters
    ----------
    flush_s
        Time between two passes.
    once
        End with the first failure, and do not wait for the end of the run: somebody waits for us.
    """

    def __init__(
        self, spooled: Spooled, uploader: Uploader, *, flush_s: float = FLUSH_S, once: bool = False
    ) -> None:
        self._spooled = spooled
        self._uploader = uploader
        self._flush_s = flush_s
        self._once = once
        self._failing = _Failing()
        self._sent_bytes = 0
        self._quiet = 0
        self._told_s = float("-inf")
        self._told: tuple[str | None, bool] = (None, False)

    @property
    def problem(self) -> str | None:
        """Why the last pass failed; None when it did not."""
        return self._failing.problem

    def run(self, stop: Event) -> bool:
        """Send until all is done, `stop` is set or there is no hope; whether everything was sent."""
        while True:
            last = stop.is_set()
            over = self._is_over()  # before the pass: what was written until now is in it
            quiet = self._pass()
            self._quiet = self._quiet + 1 if quiet else 0
            needed = 1 if self._once else QUIET_PASSES
            if self._quiet >= needed and (over or self._once):
                self._tell(done=over)
                return True
            gone = not (self._spooled.path / "run.json").exists()
            if last or gone or self._hopeless(over=over):
                self._tell()
                return False
            self._tell()
            stop.wait(self._pause_s())

    def _pass(self) -> bool:
        """One pass; whether it went well and found nothing to send."""
        try:
            sent = self._uploader.step(since_boot_ns())
        except (StoreError, OSError) as error:
            self._fail(error)
            return False
        except Exception as error:
            log.debug("A pass failed", exc_info=error)
            self._fail(StoreError(f"Sending failed unexpectedly ({type(error).__name__})."))
            return False
        self._failing = _Failing()
        self._sent_bytes += sent.n_bytes
        return sent.files == 0

    def _fail(self, error: OSError) -> None:
        failing = self._failing
        if not failing.times:
            failing.since_s, failing.since_ns = time.monotonic(), time.time_ns()
        failing.times += 1
        ours = isinstance(error, StoreError) or not error.strerror
        failing.problem = str(error) if ours else f"The run directory cannot be read: {error.strerror}."
        failing.transient = getattr(error, "transient", True)

    def _hopeless(self, *, over: bool) -> bool:
        if not self._failing.times:
            return False
        if self._once:
            return True
        limit = GIVE_UP_S if self._failing.transient else GIVE_UP_REFUSED_S
        return over and time.monotonic() - self._failing.since_s > limit

    def _pause_s(self) -> float:
        """Time to the next pass, longer and longer while it fails; never in step with other senders."""
        if not self._failing.times:
            return self._flush_s
        grown = max(self._flush_s, 0.5) * 2.0 ** min(self._failing.times - 1, 10)
        return min(grown, LONGEST_WAIT_S) * random.uniform(0.7, 1.0)  # noqa: S311 - not a secret

    def _is_over(self) -> bool:
        """Whether nobody will write into the run any more."""
        if self._spooled.is_running():
            return False
        return not _runner_lives(self._spooled.path, self._spooled.writers())

    def _tell(self, *, done: bool = False) -> None:
        now_s, news = time.monotonic(), (self._failing.problem, done)
        if news == self._told and now_s - self._told_s < STATE_S:
            return
        self._told, self._told_s = news, now_s
        waiting = 0 if done else self._uploader.waiting_bytes
        since_ns = self._failing.since_ns if self._failing.times else None
        state = UploadState(0, waiting, self._sent_bytes, since_ns, self._failing.problem, done)
        try:
            self._spooled.set_state(state)
        except OSError as error:  # a full disk: sending goes on
            log.debug("The state of the sender cannot be written: %s", error)


def unsent_runs() -> Iterator[Spooled]:
    """Runs in the spool of which something may not be sent, whether a sender is at work or not."""
    for spooled in spooled_runs():
        state = spooled.state()
        if not state.done or any(file.modified_ns > state.time_ns for file in walk(spooled.path)):
            yield spooled


def _runner_lives(run_path: Path, writers: Sequence[int]) -> bool:
    """Whether the rule runner of a run is still at work on this machine, in a process of its own."""
    import psutil

    status = read_rule_status(run_path)
    pid, heartbeat_ns = status.get("pid"), status.get("heartbeat_ns")
    if not isinstance(pid, int) or not isinstance(heartbeat_ns, int):
        return False
    if pid in writers or not 0 < pid < 2**31 or time.time_ns() - heartbeat_ns > RUNNER_SILENCE_NS:
        return False
    return psutil.pid_exists(pid)
