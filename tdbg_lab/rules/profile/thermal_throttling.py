"""GPUs that slow down because they are too hot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import ViewRef
from tdbg_lab.rules.profile.activity_rule import GpuRule
from tdbg_lab.rules.profile.machine import devices
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.sample_log import Samples
    from tdbg_lab.rules.view import RunView

__all__ = ["ThermalThrottling"]


@rule("thermal_throttling", title="Thermal throttling")
@dataclass(frozen=True, kw_only=True)
class ThermalThrottling(GpuRule):
    """A GPU lowers its clock because it, or its board, is too hot: the driver says so.

    The gain is what the clock lost, against the highest clock of the same GPU in this run. Where the driver
    gives no reasons, temperatures above `max_temperature_c` count.
    """

    max_share: float = 0.1
    """Share of the moments with a lowered clock."""
    max_temperature_c: float = 90.0
    """Without the driver's word: temperature, degrees Celsius."""
    window: int = 240
    """Last moments that are looked at."""
    least: int = 20
    """Least number of moments."""

    explains: ClassVar[tuple[str, ...]] = ("straggler", "load_balancing")

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("max_share", above=0, below=1)
        self.require("max_temperature_c", above=0)
        self.require("window", "least", at_least=1)

    def judge(self, run: RunView) -> Finding | None:
        """Look at each GPU."""
        for rank, device in devices(run, "gpu"):
            hot = self._hot(run, device, rank)
            if len(hot) >= self.least and hot.mean() > self.max_share:
                return self._found(run, device, rank, float(hot.mean()))
        return None

    def _hot(self, run: RunView, device: str, rank: int) -> NDArray[np.bool_]:
        told = run.samples("gpu_throttled_thermal", device, rank).last(self.window)
        if len(told.values):
            return np.asarray(told.values > 0)
        heat = run.samples("gpu_temperature_c", device, rank).last(self.window)
        return np.asarray(heat.values >= self.max_temperature_c)

    def _found(self, run: RunView, device: str, rank: int, share: float) -> Finding:
        heat = run.samples("gpu_temperature_c", device, rank).last(self.window).values
        gain = _lost(run.samples("gpu_clock_mhz", device, rank), self.window)
        hottest = float(heat.max()) if len(heat) else float("nan")
        evidence: dict[str, float | int | str] = {"throttled_percent": 100 * share, "device": device}
        if len(heat):
            evidence["gpu_temperature_max_c"] = hottest
        evidence["gain_percent"] = 100 * gain
        slower = (
            f", its clock about {gain:.0%} below its best: cooled, it would be that much faster"
            if gain > 0.005
            else ""
        )
        degrees = f" (up to {hottest:.0f} °C)" if len(heat) else ""
        return self.finding(
            run.step,
            f"{device} is throttled for heat in {share:.0%} of the time{degrees}{slower}.",
            evidence=evidence,
            advice=(
                "Look after cooling: fans, dust, air flow, room temperature, neighbours in the rack.",
                "Limit its power a little (nvidia-smi -pl): slower by a few percent, and steady.",
                "Spread the work to cooler GPUs.",
            ),
            view=ViewRef("timeline", {}),
            rank=rank if len(run.ranks) > 1 else None,
        )


def _lost(clock: Samples, window: int) -> float:
    """Share of its best clock that a GPU lacks in the last moments."""
    if not len(clock.values) or clock.values.max() <= 0:
        return 0.0
    return max(0.0, 1.0 - float(np.median(clock.values[-window:])) / float(clock.values.max()))
