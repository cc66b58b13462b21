"""How profiled steps used their device: calls that wait for it, and how small its pieces of work are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["WAITING", "DeviceUse", "Kernel"]

WAITING = frozenset(
    {
        *("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy"),
        *("hipStreamSynchronize", "hipDeviceSynchronize", "hipEventSynchronize", "hipMemcpyWithStream"),
    }
)
"""Calls of the runtime that return when the device is done."""

_CAUSES = {
    "aten::is_nonzero": "condition",
    "aten::equal": "condition",
    "aten::item": "item",
    "aten::_local_scalar_dense": "item",
    "aten::nonzero": "mask",
    "aten::masked_select": "mask",
    "aten::index": "mask",
    "aten::index_put_": "mask",
    "aten::to": "copy",
    "aten::_to_copy": "copy",
    "aten::copy_": "copy",
}
"""What an operator waits for; the outermost known one counts."""
_PRINTING = "_tensor_str.py"
_NOT_A_PLACE = ("<", "torch/", "torch\\", "nn.Module: ", "threading.py", "contextlib.py")
_MAX_CALLS = 200_000
_MAX_ROWS = 20


class Kernel(NamedTuple):
    """A piece of work of a GPU; times in microseconds."""

    name: str
    device: str
    start: float
    duration: float
    correlation: int
    """Links it to the call that launched it."""
    computes: bool
    """Whether it is a kernel; else it copies or fills memory."""


@dataclass(frozen=True, slots=True)
class _Wait:
    start: float
    end: float
    cause: str
    place: str


class DeviceUse:
    """Takes what happens on the CPU, in the order of the sweep; `dump` puts it beside the kernels.

    All times are microseconds on the clock of the trace.
    """

    def __init__(self) -> None:
        self._waits: list[_Wait] = []
        self._operators: list[float] = []
        self.last_copy = 0
        """Correlation of the last copy of memory that was asked for."""

    def operate(self, start: float) -> None:
        """An operator runs that no other one called."""
        if len(self._operators) < _MAX_CALLS:
            self._operators.append(start)

    def wait(
        self, when: tuple[float, float], operators: Sequence[str], functions: Sequence[str], copied: str
    ) -> None:
        """A call waits for the device, from and to `when`.

        Parameters
        ----------
        operators, functions
            What it is in, the outermost first; Python functions as ``file(line): name``.
        copied
            Name of the last copy, such as ``Memcpy DtoH (Device -> Pageable)``.
        """
        if len(self._waits) >= _MAX_CALLS:
            return
        if any(_PRINTING in one for one in functions):
            cause = "print"
        else:
            cause = next((_CAUSES[one] for one in operators if one in _CAUSES), "")
            cause = cause or (operators[0] if operators else "synchronize")
        if cause == "copy":
            cause = "to_device" if "HtoD" in copied else "cpu"
        place = next((one for one in reversed(functions) if not one.startswith(_NOT_A_PLACE)), "")
        self._waits.append(_Wait(*when, cause, place))

    def dump(self, kernels: Sequence[Kernel], steps: Sequence[tuple[float, float]]) -> dict[str, Any]:
        """Facts on the time within `steps` (start and duration), as JSON."""
        spans = np.array(sorted(steps), dtype=np.float64).reshape(-1, 2)
        begin, end = (spans[0, 0], spans[:, 0] + spans[:, 1]) if len(spans) else (0.0, np.zeros(1))
        inside = [one for one in kernels if begin <= one.start <= float(np.max(end))]
        busy = _union(inside)
        computing = [one.duration for one in inside if one.computes]
        operators = _within(spans, np.array(self._operators))
        return {
            "steps": len(spans),
            "step_us": round(float(spans[:, 1].sum()), 1),
            "kernels": len(computing),
            "kernel_median_us": round(float(np.median(computing)), 3) if computing else 0.0,
            "busy_us": round(float((busy[:, 1] - busy[:, 0]).sum()), 1),
            "operators": int(operators.sum()),
            "waits": self._wait_rows(spans, busy),
        }

    def _wait_rows(self, spans: NDArray[np.float64], busy: NDArray[np.float64]) -> list[dict[str, Any]]:
        """By cause and place: calls, time they waited, and what the device lost by it.

        Had a call not waited, the CPU would have been ahead by as long as it waited; the device would
        have had work at once instead of after a gap. The lesser of the two is the loss.
        """
        kept = _within(spans, np.array([one.start for one in self._waits]))
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for one, is_kept in zip(self._waits, kept.tolist(), strict=True):
            if not is_kept:
                continue
            row = rows.setdefault(
                (one.cause, one.place),
                {"cause": one.cause, "place": one.place, "calls": 0, "wait_us": 0.0, "lost_us": 0.0},
            )
            row["calls"] += 1
            row["wait_us"] += one.end - one.start
            row["lost_us"] += min(one.end - one.start, _gap(busy, one.end))
        worst = sorted(rows.values(), key=lambda row: (-row["lost_us"], -row["wait_us"]))[:_MAX_ROWS]
        return [row | {name: round(row[name], 1) for name in ("wait_us", "lost_us")} for row in worst]


def _union(kernels: Sequence[Kernel]) -> NDArray[np.float64]:
    """Times at which any kernel runs, without overlap, shape ``(N, 2)``."""
    if not kernels:
        return np.empty((0, 2))
    table = np.array(sorted((one.start, one.start + one.duration) for one in kernels))
    latest = np.maximum.accumulate(table[:, 1])
    first = np.flatnonzero(np.concatenate([[True], table[1:, 0] > latest[:-1]]))
    last = np.concatenate([first[1:] - 1, [len(table) - 1]])
    return np.stack([table[first, 0], latest[last]], axis=1)


def _gap(busy: NDArray[np.float64], moment: float) -> float:
    """How long after `moment` the device begins to work; 0 where it is at work, or never does again."""
    row = int(np.searchsorted(busy[:, 1], moment, side="right"))
    return max(0.0, float(busy[row, 0]) - moment) if row < len(busy) else 0.0


def _within(spans: NDArray[np.float64], moments: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which moments lie in one of the spans (start and duration), in order and without overlap."""
    if not len(spans) or not len(moments):
        return np.zeros(len(moments), np.bool_)
    row = np.searchsorted(spans[:, 0], moments, side="right") - 1
    ends = spans[:, 0] + spans[:, 1]
    return np.asarray((row >= 0) & (moments <= ends[np.maximum(row, 0)]))
