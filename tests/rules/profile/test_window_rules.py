"""Rules on profiled steps, on traces made by hand and on real ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.profiler.digest import digest_profile
from tdbg_lab.profiler.operators import OperatorPass
from tdbg_lab.profiler.window import ProfileWindow
from tdbg_lab.records import Severity
from tdbg_lab.rules import SynchronisingCalls, TinyKernels

from .profiled import PLACE, add_profile, event, item, kernel, step_events
from .recorded import Recorded, healthy

if TYPE_CHECKING:
    from pathlib import Path

    from .profiled import Event

STEP_US = 40_000.0


def waiting(
    step: int, *, calls: int = 20, wait: float = 1000, gap: float = 300, length: float = STEP_US
) -> list[Event]:
    """A step: kernels, each waited for, and a pause of the GPU after each; then it is busy to the end."""
    at = step * length
    events = step_events(step, at, length - 10)
    begin = at
    for call in range(calls):
        number = 10 * (step * 1000 + call)
        events += kernel(begin, wait, number)
        events += item(begin + 6, wait, number + 2)
        begin += wait + gap + 5  # the wait is over 5 us after the kernel
    return events + kernel(begin, at + length - begin - 2, 10 * (step * 1000 + calls))


def launching(step: int, *, kernels: int, length: float) -> list[Event]:
    """A step of 40 ms with kernels spread over it."""
    at = step * STEP_US
    events = step_events(step, at, STEP_US - 10)
    for place in range(kernels):
        events += kernel(at + place * 30_000 / kernels, length, step * 10_000 + place + 1)
    return events


def operating(step: int, operators: int) -> list[Event]:
    """A step of 40 ms on the CPU."""
    at = step * STEP_US
    inner = [event("aten::empty", "cpu_op", at + 1.5, 1)]
    return [
        *step_events(step, at, STEP_US - 10),
        *(event("aten::add", "cpu_op", at + 5 * place, 4) for place in range(operators)),
        *inner,
    ]


def run_of(path: Path, steps: list[list[Event]]) -> Recorded:
    run = Recorded(path / "run").steps(healthy(120))
    add_profile(run, steps)
    return run


def test_item_in_the_loop_is_told_with_place_and_gain(tmp_path: Path) -> None:
    found = run_of(tmp_path, [waiting(step) for step in range(5)]).find(SynchronisingCalls())
    assert found is not None
    assert found.severity is Severity.WARNING
    assert found.message.startswith(
        f"The loop waits for the GPU 20 times a step, mostly in .item() or float() in {PLACE}: "
    )
    assert found.message.endswith("steps would be about 15% shorter.")
    assert found.evidence["waited_percent"] == pytest.approx(50, abs=1)
    assert "total += loss.detach()" in found.advice[0]


@pytest.mark.parametrize(
    ("how", "severity"),
    [
        ({"gap": 59.0}, None),
        ({"gap": 61.0}, Severity.NOTICE),
        ({"wait": 40.0, "gap": 1900.0}, None),  # the loop gains no more than it waits
        ({"calls": 1, "wait": 38_000.0, "gap": 1990.0}, Severity.NOTICE),
        ({"wait": 1950.0, "gap": 900.0, "length": 60_000.0}, None),  # only profiling makes the GPU idle
    ],
)
def test_waiting_counts_by_what_the_gpu_loses(
    tmp_path: Path, how: dict[str, Any], severity: Severity | None
) -> None:
    found = run_of(tmp_path, [waiting(step, **how) for step in range(8)]).find(SynchronisingCalls())
    assert (found.severity if found else None) == severity


def test_causes_are_told_apart(tmp_path: Path) -> None:
    run = Recorded(tmp_path / "run").steps(healthy(120))
    copy = [
        event("aten::to", "cpu_op", 7000, 100),
        event("cudaMemcpyAsync", "cuda_runtime", 7000, 1, correlation=70),
        event("cudaStreamSynchronize", "cuda_runtime", 7002, 90),
        event("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", 7003, 80, device=0, correlation=70),
    ]
    events = [
        *step_events(0, 0, STEP_US),
        *kernel(100, 50, 1),
        *item(1000, 100, 10),
        *item(2000, 100, 20, operator="aten::is_nonzero"),
        event("torch/_tensor_str.py(650): _str", "python_function", 3000, 200),
        *item(3000, 100, 30),
        event("torch/cuda/__init__.py(1200): synchronize", "python_function", 4000, 100),
        event("cudaDeviceSynchronize", "cuda_runtime", 4000, 90),
        event("tdbg_lab/capture/guard.py(50): run", "python_function", 5000, 200),
        *item(5001, 100, 50),
        *item(STEP_US + 10, 100, 60),  # between steps
        *copy,
    ]
    folder = add_profile(run, [events])
    waits = json.loads((folder / "use.json").read_text())["waits"]
    assert {row["cause"]: row["calls"] for row in waits} == {
        "item": 1,
        "condition": 1,
        "print": 1,
        "synchronize": 1,
        "to_device": 1,
    }
    assert {row["place"] for row in waits} == {PLACE}


def test_without_a_profile_or_a_gpu_there_is_nothing_to_judge(tmp_path: Path) -> None:
    bare = Recorded(tmp_path / "bare").steps(healthy(20))
    assert "profile a few to judge this" in bare.why_not(SynchronisingCalls())
    assert "profile a few to judge this" in Recorded(tmp_path / "two").steps(healthy(20)).why_not(
        TinyKernels()
    )
    on_cpu = run_of(tmp_path, [[*step_events(0, 0, 100), event("aten::item", "cpu_op", 5, 3)]])
    assert "nothing ran on a GPU" in on_cpu.why_not(SynchronisingCalls())


@pytest.mark.parametrize(
    ("kernels", "length", "found"),
    [(400, 5.0, True), (100, 20.0, True), (99, 5.0, False), (400, 20.5, False), (2000, 14.0, False)],
)
def test_tiny_kernels_are_many_small_and_leave_the_gpu_idle(
    tmp_path: Path, kernels: int, length: float, *, found: bool
) -> None:
    steps = [launching(step, kernels=kernels, length=length) for step in range(3)]
    one = run_of(tmp_path, steps).find(TinyKernels())
    assert (one is not None) == found
    if one is not None:
        idle = 100 * (1 - kernels * length / 38_000)  # of forward, backward and optimizer
        assert one.evidence["idle_percent"] == pytest.approx(idle, abs=0.1)
        assert one.evidence["gain_percent"] == pytest.approx(idle * 38 / 40, abs=0.1)
        assert one.message.startswith(f"A step is {kernels} kernels of typically {length:.2g} us")


@pytest.mark.parametrize(("operators", "found"), [(6300, False), (6400, True)])
def test_many_operators_of_the_cpu_are_a_notice(tmp_path: Path, operators: int, *, found: bool) -> None:
    one = run_of(tmp_path, [operating(0, operators), operating(1, operators)]).find(TinyKernels())
    assert (one is not None) == found
    if one is not None:
        assert one.severity is Severity.NOTICE
        assert one.evidence["operators_a_step"] == operators  # calls within calls do not count


@pytest.mark.parametrize("text", ["{", "[]", '{"steps": -1}', '{"steps": 5, "step_us": "much"}'])
def test_broken_facts_of_a_profile_are_left_out(tmp_path: Path, text: str) -> None:
    run = Recorded(tmp_path / "run").steps(healthy(120))
    (add_profile(run, [waiting(0)]) / "use.json").write_text(text)
    assert "No steps were profiled" in run.why_not(SynchronisingCalls())


@pytest.mark.parametrize(
    ("thresholds", "sentence"),
    [({"min_gain": 0.0}, "synchronising_calls.min_gain is 0"), ({"warn_gain": 1.5}, "warn_gain is 1.5")],
)
def test_thresholds_out_of_range_are_refused(thresholds: dict[str, float], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        SynchronisingCalls(**thresholds)


def use_of_real_steps(folder: Path, device: str) -> dict[str, Any]:
    """What a real profile of three steps with ``.item()`` in the loop says."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(8, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    profile = OperatorPass(ProfileWindow(steps=3))
    for step in range(4):
        profile.start(step) if step == 1 else profile.step(step) if step > 1 else None
        optimizer.zero_grad()
        loss = model(torch.ones(4, 8, device=device)).sum()
        loss.backward()
        optimizer.step()
        loss.item()
    profile.stop()
    profile.save(folder)
    digest_profile(folder)
    use: dict[str, Any] = json.loads((folder / "use.json").read_text())
    return use


def test_item_on_the_cpu_waits_for_nothing(tmp_path: Path) -> None:
    use = use_of_real_steps(tmp_path, "cpu")
    assert (use["steps"], use["kernels"], use["waits"]) == (3, 0, [])
    assert use["operators"] >= 3 * 5  # at least linear, sum, item and backward of them
    names = {
        row["name"]: row["calls"] for row in json.loads((tmp_path / "digest.json").read_text())["operators"]
    }
    assert names["aten::item"] == 3


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")  # some releases of PyTorch always do
def test_item_on_a_gpu_is_seen_with_its_place(tmp_path: Path) -> None:
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no GPU here")
    use = use_of_real_steps(tmp_path, "cuda")
    (wait,) = [row for row in use["waits"] if row["cause"] == "item"]
    assert wait["calls"] == 3
    assert "test_window_rules.py" in wait["place"]
    assert use["kernels"] >= 12
    assert 0 < use["busy_us"] < use["step_us"]
