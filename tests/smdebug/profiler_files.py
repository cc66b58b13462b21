"""Profiler files of the predecessor: recorded timelines, and readings of the system as it writes them."""

from __future__ import annotations

import json
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "data" / "smdebug" / "profiler" / "framework"
READINGS = [
    {"Type": "cpu", "Name": "cpu0", "Dimension": "CPUUtilization", "Value": 5.0, "Timestamp": 1795260930.5},
    {"Type": "gpu", "Name": "gpu0", "Dimension": "GPUUtilization", "Value": 9.0, "Timestamp": 1795260931.5},
    {"Type": "memory", "Dimension": "MemoryUsedPercent", "Value": 40.0, "Timestamp": 1795260932.5},
]


def write_readings(folder: Path, end: str = "") -> Path:
    """The readings in a file below a folder, and what comes behind them."""
    path = folder / "system" / "incremental" / "2026112111" / "1795260900.algo-1.json"
    path.parent.mkdir(parents=True)
    lines = (json.dumps({**reading, "NodeId": "algo-1"}) + "\n" for reading in READINGS)
    path.write_text("".join(lines) + end)
    return path
