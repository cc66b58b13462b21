"""What views need of a trace of torch.profiler: operators, kernels, memory, call trees of CPU and GPU."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.profiler.call_tree import OWN, CallTree, is_own
from tdbg_lab.profiler.device_use import WAITING, DeviceUse, Kernel
from tdbg_lab.store.json_stream import BrokenTraceError, TraceStream

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["digest_trace"]

_OPERATOR, _FRAME, _NOTE, _LAUNCH, _MEMORY = range(5)
_ON_CPU = {
    "cpu_op": _OPERATOR,
    "python_function": _FRAME,
    "user_annotation": _NOTE,
    "cuda_runtime": _LAUNCH,
    "cuda_driver": _LAUNCH,
}
_ON_GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
_MAX_EVENTS = 3_000_000
_MAX_DEPTH = 128
_MAX_ROWS = 400
_MAX_POINTS = 1000
_STEP = "ProfilerStep#"


@dataclass(slots=True)
class _Operator:
    calls: int = 0
    total_us: float = 0.0
    own_us: float = 0.0
    gpu_us: float = 0.0
    """Time of the kernels it launched itself."""
    bytes_allocated: int = 0
    shapes: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Frame:
    """An event that is running in the sweep."""

    end: float
    node: int
    name: str
    kind: int
    own: float
    ours: bool


class _Digest:
    """Events of a trace, column by column, and what is made of them."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.start, self.duration = array("d"), array("d")
        self.name, self.kind, self.thread, self.extra = array("l"), array("b"), array("q"), array("q")
        self.texts: list[str] = []
        self.shapes: dict[int, str] = {}
        self.memory: dict[str, list[tuple[float, float]]] = {}
        self.kernels: list[Kernel] = []
        self.use = DeviceUse()
        self.steps: list[tuple[float, float, int]] = []
        self.step_threads: set[int] = set()
        self.operators: dict[str, _Operator] = {}
        self.cpu, self.gpu = CallTree(), CallTree()
        self._numbers: dict[str, int] = {}
        self._launches: dict[int, tuple[tuple[str, ...], str]] = {}
        self._copies: dict[int, str] = {}

    # -- reading ----------------------------------------------------------------------------------

    def take(self, event: dict[str, Any]) -> None:
        """Take one event of the trace, if it is one of ours."""
        category, start = event.get("cat"), event.get("ts")
        if not isinstance(start, int | float):
            return
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        if event.get("ph") == "X":
            duration = event.get("dur")
            if isinstance(duration, int | float) and duration >= 0:
                self._span(event, str(category), float(start), float(duration), args)
        elif event.get("name") == "[memory]":
            self._memory(event, float(start), args)

    def _span(
        self, event: dict[str, Any], category: str, start: float, duration: float, args: dict[str, Any]
    ) -> None:
        name = str(event.get("name", ""))[:200]
        if category in _ON_GPU:
            device = f"gpu{args.get('device', 0)}"[:16]
            correlation = _int(args, "correlation")
            self.kernels.append(Kernel(name, device, start, duration, correlation, category == "kernel"))
            if category == "gpu_memcpy":
                self._copies[correlation] = name
        elif category == "user_annotation" and name.startswith(_STEP):  # a GPU has its own marks of steps
            number = name.removeprefix(_STEP)
            self.steps.append((start, duration, int(number) if number.isdecimal() else -1))
            self.step_threads.add(_thread(event))
        elif category in _ON_CPU:
            kind = _ON_CPU[category]
            row = len(self.start)
            if kind == _OPERATOR and args.get("Input Dims"):
                self.shapes[row] = str(args["Input Dims"])[:120]
            self._append((start, duration), name, kind, _thread(event), _int(args, "correlation"))

    def _memory(self, event: dict[str, Any], start: float, args: dict[str, Any]) -> None:
        device = "cpu" if _int(args, "Device Id") < 0 else f"gpu{_int(args, 'Device Id')}"
        total = args.get("Total Allocated")
        if isinstance(total, int | float):
            self.memory.setdefault(device, []).append((start, float(total)))
        self._append((start, 0.0), "", _MEMORY, _thread(event), _int(args, "Bytes"))

    def _append(self, when: tuple[float, float], name: str, kind: int, thread: int, extra: int) -> None:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.texts)
            self.texts.append(name)
        self.start.append(when[0])
        self.duration.append(when[1])
        self.name.append(number)
        self.kind.append(kind)
        self.thread.append(thread)
        self.extra.append(extra)

    # -- the sweep --------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Go through the events of each thread in time, with the calls that are running as a stack.

        Threads without any operator have nothing to do with the steps.
        """
        start, duration = np.array(self.start), np.array(self.duration)
        thread, kind = np.array(self.thread), np.array(self.kind)
        busy = np.union1d(thread[np.isin(kind, (_OPERATOR, _LAUNCH))], list(self.step_threads))
        order = np.lexsort((-duration, start, thread))
        order = order[np.isin(thread[order], busy)].tolist()
        stack: list[_Frame] = []
        current: int | None = None
        for row in order:
            if self.thread[row] != current:
                self._pop(stack, float("inf"))
                current = self.thread[row]
            self._pop(stack, self.start[row])
            base = (
                0 if current in self.step_threads or len(busy) < 2 else self.cpu.child(0, f"thread {current}")
            )
            self._enter(row, stack, base)
        self._pop(stack, float("inf"))
        self._attribute_kernels()

    def _enter(self, row: int, stack: list[_Frame], base: int) -> None:
        kind, name = self.kind[row], self.texts[self.name[row]]
        if stack and stack[-1].ours:  # what capture does is one call
            return
        if kind == _MEMORY:
            self._allocate(stack, self.extra[row])
            return
        if kind == _LAUNCH:
            self._launch(row, name, stack)
        if len(stack) >= _MAX_DEPTH:
            return
        end = self.start[row] + self.duration[row]
        if stack:
            end = min(end, stack[-1].end)  # events of one thread may cross: the outer one wins
        length = end - self.start[row]
        if stack:
            stack[-1].own -= length
        ours = kind == _FRAME and is_own(name)
        node = self.cpu.child(stack[-1].node if stack else base, OWN if ours else name)
        stack.append(_Frame(end, node, name, kind, length, ours))
        if kind == _OPERATOR:
            self._operate(row, name, length, stack[:-1])

    def _operate(self, row: int, name: str, length: float, callers: list[_Frame]) -> None:
        found = self.operators.setdefault(name, _Operator())
        found.calls += 1
        if all(one.kind != _OPERATOR for one in callers):
            self.use.operate(self.start[row])
        if all(one.name != name for one in callers):  # a call within one of the same is in it already
            found.total_us += length
        shape = self.shapes.get(row)
        if shape is not None and (shape in found.shapes or len(found.shapes) < 64):
            found.shapes[shape] = found.shapes.get(shape, 0) + 1

    def _launch(self, row: int, name: str, stack: list[_Frame]) -> None:
        """Something is asked of the GPU, or waited for."""
        correlation = self.extra[row]
        if correlation > 0:
            operator = next((one.name for one in reversed(stack) if one.kind == _OPERATOR), name)
            self._launches[correlation] = (tuple(one.name for one in stack[-_MAX_DEPTH:]), operator)
        if "Memcpy" in name:
            self.use.last_copy = correlation
        if name in WAITING:
            operators = [one.name for one in stack if one.kind == _OPERATOR]
            functions = [one.name for one in stack if one.kind == _FRAME]
            when = self.start[row], self.start[row] + self.duration[row]
            self.use.wait(when, operators, functions, self._copies.get(self.use.last_copy, ""))

    def _pop(self, stack: list[_Frame], now: float) -> None:
        while stack and stack[-1].end <= now:
            frame = stack.pop()
            self.cpu.add(frame.node, max(frame.own, 0.0))
            if frame.kind == _OPERATOR:
                self.operators[frame.name].own_us += max(frame.own, 0.0)
            elif frame.kind == _LAUNCH:
                operator = next((one for one in reversed(stack) if one.kind == _OPERATOR), None)
                if operator is not None:
                    self.operators[operator.name].own_us += max(frame.own, 0.0)

    def _allocate(self, stack: list[_Frame], size: int) -> None:
        operator = next((one for one in reversed(stack) if one.kind == _OPERATOR), None)
        if operator is not None and size > 0:
            self.operators[operator.name].bytes_allocated += size

    def _attribute_kernels(self) -> None:
        """Give the time of each kernel to what launched it."""
        for kernel in self.kernels:
            path, operator = self._launches.get(kernel.correlation, ((), ""))
            node = self.gpu.child(0, kernel.device)
            for one in path:
                node = self.gpu.child(node, one)
            self.gpu.add(self.gpu.child(node, kernel.name), kernel.duration)
            if operator in self.operators:
                self.operators[operator].gpu_us += kernel.duration

    # -- the answer -------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """As JSON."""
        rows: list[dict[str, Any]] = [
            {
                "name": name,
                "calls": one.calls,
                "total_us": round(one.total_us, 3),
                "self_us": round(one.own_us, 3),
                "gpu_us": round(one.gpu_us, 3),
                "bytes": one.bytes_allocated,
                "shapes": max(one.shapes, key=lambda shape: one.shapes[shape]) if one.shapes else "",
            }
            for name, one in self.operators.items()
        ]
        rows.sort(key=lambda row: -(row["self_us"] + row["gpu_us"]))
        return {
            "operators": rows[:_MAX_ROWS],
            "kernels": self._kernel_rows(),
            "trees": {
                "cpu": self.cpu.dump(),
                **({"gpu": self.gpu.dump()} if self.kernels else {}),
            },
            "memory": {device: _thinned(points) for device, points in list(self.memory.items())[:17]},
            "steps": [
                {"step": number, "start_us": round(start, 1), "duration_us": round(length, 1)}
                for start, length, number in sorted(self.steps)[:1000]
            ],
            "use": self.use.dump(self.kernels, [(start, length) for start, length, _ in self.steps]),
            "problems": self.problems,
        }

    def _kernel_rows(self) -> list[dict[str, Any]]:
        found: dict[tuple[str, str], list[float]] = {}
        for kernel in self.kernels:
            found.setdefault((kernel.name, kernel.device), []).append(kernel.duration)
        rows = [
            {"name": name, "device": device, "calls": len(times), "total_us": round(sum(times), 3)}
            for (name, device), times in found.items()
        ]
        return sorted(rows, key=lambda row: -float(str(row["total_us"])))[:_MAX_ROWS]


def digest_trace(path: Path) -> dict[str, Any]:
    """What views need of a Chrome trace of torch.profiler; a broken one is read up to where it breaks.

    Times are microseconds; those of steps and memory count from the same zero as the trace.
    """
    digest, stream = _Digest(), TraceStream(path)
    try:
        for event in stream.events():
            digest.take(event)
            if len(digest.start) >= _MAX_EVENTS:
                digest.problems.append(f"only the first {_MAX_EVENTS:,} events of the trace were read")
                break
    except (BrokenTraceError, OSError) as error:
        digest.problems.append(f"the trace was read up to where it breaks: {error}")
    digest.sweep()
    return digest.dump()


def _thinned(points: list[tuple[float, float]]) -> dict[str, list[float]]:
    """Largest value in each of at most `_MAX_POINTS` equal parts."""
    points.sort()
    times, values = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    if len(times) > _MAX_POINTS:
        bucket = (np.arange(len(times)) * _MAX_POINTS) // len(times)
        first = np.flatnonzero(np.diff(bucket, prepend=-1))
        times, values = times[first], np.maximum.reduceat(values, first)
    return {"time_us": np.round(times, 1).tolist(), "bytes": values.tolist()}


def _int(args: dict[str, Any], key: str) -> int:
    value = args.get(key)
    return value if isinstance(value, int) and abs(value) < 2**62 else 0


def _thread(event: dict[str, Any]) -> int:
    value = event.get("tid")
    return value if isinstance(value, int) and abs(value) < 2**62 else -1
