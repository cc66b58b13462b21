"""Load of the machines of a run as lines: which metrics are drawn together, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.analysis.downsample import min_max
from tdbg_lab.views.labels import safe
from tdbg_lab.views.machines import machine_names, named
from tdbg_lab.views.palette import pick

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tdbg_lab.run import Run
    from tdbg_lab.store.series import SampleSeries

__all__ = ["GROUPS", "LoadSamples", "by_device", "load_axes", "load_lines"]

GROUPS = {
    "usage": ("Load", ("cpu", "memory", "gpu", "gpu_memory", "iowait", "swap"), "%"),
    "process": ("Training process", ("process_cpu",), "%"),
    "bytes": ("Memory", ("memory_bytes", "process_memory_bytes", "gpu_memory_bytes"), "B"),
    "io": ("Input and output", ("disk_read", "disk_write", "net_recv", "net_sent"), "B/s"),
    "gpu": ("GPU", ("gpu_power_w", "gpu_temperature_c"), ""),
    "links": (
        "GPU links",
        ("gpu_pcie_recv", "gpu_pcie_sent", "gpu_nvlink_recv", "gpu_nvlink_sent"),
        "B/s",
    ),
    "clocks": ("GPU clocks", ("gpu_clock_mhz", "gpu_memory_clock_mhz"), "MHz"),
}
_WORDS = {
    "cpu": "CPU",
    "memory": "memory",
    "gpu": "GPU",
    "gpu_memory": "GPU memory",
    "iowait": "I/O wait",
    "swap": "swap",
    "process_cpu": "process CPU",
    "memory_bytes": "memory",
    "process_memory_bytes": "process memory",
    "gpu_memory_bytes": "GPU memory",
    "disk_read": "disk read",
    "disk_write": "disk write",
    "net_recv": "network in",
    "net_sent": "network out",
    "gpu_power_w": "power (W)",
    "gpu_temperature_c": "temperature (\N{DEGREE SIGN}C)",
    "gpu_pcie_recv": "PCIe in",
    "gpu_pcie_sent": "PCIe out",
    "gpu_nvlink_recv": "NVLink in",
    "gpu_nvlink_sent": "NVLink out",
    "gpu_clock_mhz": "processor clock",
    "gpu_memory_clock_mhz": "memory clock",
}
_DASHES = ("solid", "dash", "dot", "dashdot")
_MOST_LINES = 24
_NS = 1e9

LoadSamples = dict[tuple[str, str], "tuple[NDArray[np.int64], NDArray[np.float64]]"]
"""Time and values by metric and device."""


def by_device(run: Run, series: Sequence[SampleSeries]) -> LoadSamples:
    """Devices of each machine, processes of each rank; of cores only the mean: single ones hide the rest."""
    machines = machine_names(run)
    several = len({one.rank for one in series}) > 1
    found: LoadSamples = {}
    for one in series:
        if one.device == "process":
            device = named(one.device, f"rank {one.rank}" if several else "")
        elif one.rank in machines and (one.metric != "cpu" or one.device == "cpu"):
            device = named(one.device, machines[one.rank])
        else:
            continue
        found[one.metric, device] = one.time_ns, one.value
    return found


def load_lines(samples: LoadSamples, group: str, zero: int, n_out: int, yaxis: str) -> list[dict[str, Any]]:
    """Lines of one group of metrics: a colour for each metric, a line style for each device."""
    _, wanted, unit = GROUPS[group]
    traces: list[dict[str, Any]] = []
    for name in wanted:
        for index, each in enumerate(device for metric, device in samples if metric == name):
            time_ns, value = samples[name, each]
            when = (time_ns - zero) / _NS
            at = min_max(value, max(n_out, 4), x=when)
            shown = each if name.startswith("gpu") else each.partition(" ")[2]
            which = f" {safe(shown)}" if shown else ""
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines" if len(at) > 1 else "markers",
                    "x": when[at],
                    "y": value[at],
                    "yaxis": yaxis,
                    "name": f"{_WORDS[name]}{which}",
                    "line": {
                        "color": pick(wanted.index(name) + (len(group) % 3)),
                        "width": 1.8,
                        "dash": _DASHES[index % 4],
                    },
                    "hovertemplate": f"{_WORDS[name]}{which} <b>%{{y:.3~s}}{unit}</b>"
                    " at %{x:.1f} s<extra></extra>",
                }
            )
    return traces[:_MOST_LINES]


def load_axes(groups: Sequence[str]) -> dict[str, Any]:
    """The y axis of each group of metrics, by its name in the layout."""
    axes: dict[str, Any] = {}
    for row, name in enumerate(groups):
        title, _, unit = GROUPS[name]
        axis: dict[str, Any] = {
            "title": {"text": f"{title} ({unit})" if unit else title},
            "rangemode": "tozero",
            "fixedrange": True,
        }
        if name == "usage":
            axis["range"] = [0, 103]
        if unit.startswith("B"):
            axis["tickformat"] = "~s"
        axes[f"yaxis{row + 2}"] = axis
    return axes
