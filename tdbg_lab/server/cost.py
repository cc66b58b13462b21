"""What tdbg-lab itself costs a run, as the run recorded it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from tdbg_lab.run import Run
    from tdbg_lab.server.wire import CostJson

__all__ = ["cost"]

CAPTURE = "tdbg/capture_ms"
STEP = "tdbg/step_ms"
BYTES = "tdbg/bytes_written"
EVERY = "tdbg/save_every"


def cost(run: Run) -> CostJson | None:
    """Average cost of a step of late; None when the run recorded none."""
    names = set(run.tensor_names(kind=Kind.COST))
    if CAPTURE not in names:
        return None
    capture_ms, step_ms, written, every = (
        _last(run, name) if name in names else None for name in (CAPTURE, STEP, BYTES, EVERY)
    )
    share = capture_ms / step_ms if capture_ms is not None and step_ms else None
    return {
        "capture_ms": capture_ms,
        "step_ms": step_ms,
        "share": share,
        "bytes_written": None if written is None else int(written),
        "save_every": None if every is None else int(every),
    }


def _last(run: Run, name: str) -> float | None:
    values = run.scalars(name).values
    return float(values[-1]) if len(values) and math.isfinite(values[-1]) else None
