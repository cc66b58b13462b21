"""Hand-made traces of torch.profiler, beside hand-made phases: events as the profiler writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tdbg_lab.profiler.digest import digest_profile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .recorded import Recorded

Event = dict[str, Any]
PLACE = "train.py(12): train"
CPU, STREAM = 4242, 7


def event(name: str, cat: str, ts: float, dur: float, **args: Any) -> Event:
    tid = STREAM if cat in {"kernel", "gpu_memcpy"} else CPU
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def step_events(step: int, at: float, length: float) -> list[Event]:
    """The mark of a step, and the same on the GPU, which is none."""
    name = f"ProfilerStep#{step}"
    return [
        event(name, "user_annotation", at, length),
        {**event(name, "gpu_user_annotation", at, length * 2), "tid": STREAM},
        event(PLACE, "python_function", at, length),
    ]


def kernel(at: float, length: float, number: int) -> list[Event]:
    """A kernel, with the operator that launches it."""
    return [
        event("aten::mul", "cpu_op", at, 4),
        event("cudaLaunchKernel", "cuda_runtime", at + 1, 2, correlation=number),
        event("elementwise", "kernel", at + 2, length, device=0, stream=STREAM, correlation=number),
    ]


def item(at: float, length: float, number: int, operator: str = "aten::item") -> list[Event]:
    """A call that copies a number back and waits for it."""
    return [
        event("<built-in method item of Tensor object at 0x7f>", "python_function", at, length + 4),
        event(operator, "cpu_op", at, length + 3),
        event("aten::_local_scalar_dense", "cpu_op", at, length + 2),
        event("cudaMemcpyAsync", "cuda_runtime", at, 1, correlation=number),
        event("cudaStreamSynchronize", "cuda_runtime", at + 1, length, correlation=number + 1),
        event(
            "Memcpy DtoH (Device -> Pageable)", "gpu_memcpy", at + length - 1, 1, device=0, correlation=number
        ),
    ]


def add_profile(run: Recorded, steps: Sequence[Sequence[Event]], *, first: int = 20, rank: int = 0) -> Path:
    """Put the profile of some steps into a run, as capture leaves it."""
    folder = run.path / f"rank-{rank:05d}" / "profile" / f"step-{first:012d}"
    folder.mkdir(parents=True)
    events = [one for step in steps for one in step]
    (folder / "trace.json").write_text(json.dumps({"traceEvents": events}))
    facts = {
        "first_step": first,
        "last_step": first + len(steps) - 1,
        "start_ns": run.zero_ns + 1_000_000,
        "duration_ns": 1_000_000,
        "problems": [],
    }
    (folder / "window.json").write_text(json.dumps(facts))
    digest_profile(folder)
    return folder
