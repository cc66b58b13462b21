"""System metrics of a SageMaker job: JSON objects, one a line, as samples of ours.

Each line has ``Type`` (cpu, gpu, memory, i/o, network), ``Name``, ``Dimension``, ``Value``, ``NodeId``
(``algo-1``) and ``Timestamp`` in seconds.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tdbg_lab.store.limits import MAX_NAME_CHARS
from tdbg_lab.store.smdebug.bounds import MAX_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Sample", "parse_samples", "with_totals"]

_NODE = re.compile(r".*?(\d{1,6})")
_FLOWS = (
    ("i/o", ("read",), "disk_read"),
    ("i/o", ("write",), "disk_write"),
    ("network", ("receive", "recv", "in"), "net_recv"),
    ("network", ("transmit", "sen", "out"), "net_sent"),
)


class Sample(NamedTuple):
    """One reading."""

    time_ns: int
    metric: str
    device: str
    value: float
    rank: int


def parse_samples(data: bytes) -> tuple[list[Sample], int]:
    """Samples of a file, and how many whole lines are none; a last line without an end is left for later."""
    found: list[Sample] = []
    broken = 0
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        if not line.strip():
            continue
        try:
            found.append(_sample(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            broken += 1
        if len(found) >= MAX_SAMPLES:
            break
    return found, broken


def with_totals(samples: Iterable[Sample]) -> list[Sample]:
    """Samples, and for cores measured at one moment the mean of all of them as device ``cpu``."""
    found = list(samples)
    cores: dict[tuple[int, int], list[float]] = {}
    whole = set()
    for sample in found:
        if sample.metric == "cpu" and sample.device == "cpu":
            whole.add((sample.time_ns, sample.rank))
        elif sample.metric == "cpu":
            cores.setdefault((sample.time_ns, sample.rank), []).append(sample.value)
    found += [
        Sample(time_ns, "cpu", "cpu", sum(values) / len(values), rank)
        for (time_ns, rank), values in cores.items()
        if (time_ns, rank) not in whole
    ]
    return found


def _sample(event: Any) -> Sample:
    kind, name = str(event["Type"]).lower(), str(event.get("Name") or "")
    dimension = str(event.get("Dimension") or "")
    seconds, value = float(event["Timestamp"]), float(event["Value"])
    if not 0 <= seconds < 2**33:
        raise ValueError("a sample has no proper time")
    node = _NODE.match(str(event.get("NodeId") or ""))
    metric, device = _place(kind, name, dimension)
    return Sample(
        round(seconds * 1e6) * 1000,  # all that a double holds of it
        metric[:MAX_NAME_CHARS],
        device[:MAX_NAME_CHARS],
        value if math.isfinite(value) else math.nan,
        max(int(node[1]) - 1, 0) if node else 0,
    )


def _place(kind: str, name: str, dimension: str) -> tuple[str, str]:
    """Metric and device in our words; what has none keeps its own."""
    if kind == "cpu":
        return "cpu", name or "cpu"
    if kind == "gpu":
        return ("gpu_memory" if "memory" in dimension.lower() else "gpu"), name or "gpu0"
    if kind == "memory":
        return "memory", ""
    what = f"{name} {dimension}".lower()
    for flow, words, metric in _FLOWS:
        if kind == flow and any(word in what for word in words):
            return metric, "" if name.lower() in {"algorithm", "platform"} else name
    return f"{kind}/{dimension or name}", name
