"""The loop of the system sampler."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Protocol

from tdbg_lab.clock import EvenClock
from tdbg_lab.errors import StoreError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from tdbg_lab.profiler.probe import Probe, Reading

__all__ = ["SampleWriter", "Sampler"]

log = logging.getLogger(__name__)


class SampleWriter(Protocol):
    """What samples are written through: `tdbg_lab.store.SystemWriter`."""

    def append(
        self, time_ns: int, metrics: Sequence[str], devices: Sequence[str], values: Sequence[float]
    ) -> None:
        """Write the readings of one moment."""

    def close(self) -> None:
        """Close the stream."""


class Sampler:
    """Reads probes at a steady interval until there is a reason to end.

    Parameters
    ----------
    probes
        What is read. A probe that raises is left out from then on.
    writer
        Where samples go; `run` closes it.
    over
        Gives the reason to end, or None; asked before each reading.
    interval_s
        Time between two readings, s. Readings that were missed (a suspended machine) are not made up for.
    """

    def __init__(
        self,
        probes: Sequence[Probe],
        writer: SampleWriter,
        over: Callable[[], str | None],
        *,
        interval_s: float,
    ) -> None:
        self._probes = list(probes)
        self._writer = writer
        self._over = over
        self._interval_s = interval_s
        self._clock = EvenClock()

    def run(self, stop: threading.Event) -> str:
        """Sample until `over` or `stop` says so.

        Returns
        -------
        str
            Why it ended.
        """
        due_s = time.monotonic()
        try:
            while (reason := self._over()) is None:
                try:
                    self.sample()
                except StoreError as error:  # the writer tries again by itself
                    log.warning("Samples are missing: %s", error)
                due_s = max(due_s + self._interval_s, time.monotonic())
                if stop.wait(max(0.0, due_s - time.monotonic())):
                    return "asked to stop"
            return reason
        finally:
            self._close()

    def sample(self) -> None:
        """Read every probe once and write what was read."""
        now_ns = self._clock.now_ns()
        readings: list[Reading] = []
        for probe in tuple(self._probes):
            readings.extend(self._read(probe))
        if readings:
            metrics, devices, values = zip(*readings, strict=True)
            self._writer.append(now_ns, metrics, devices, values)

    def _read(self, probe: Probe) -> list[Reading]:
        try:
            return list(probe.read())
        except Exception:
            log.exception("%s is left out from now on", type(probe).__name__)
            self._probes.remove(probe)
            return []

    def _close(self) -> None:
        try:
            self._writer.close()
        except StoreError as error:
            log.debug("The samples' stream did not close: %s", error)
