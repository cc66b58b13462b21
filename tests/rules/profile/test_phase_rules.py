"""Rules on phases: slow steps, a slow rank, long initialisation, loader workers; summaries."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.analysis.phases import step_times
from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import (
    Dataloader,
    MaxInitializationTime,
    OverallFrameworkMetrics,
    OverallSystemUsage,
    StepOutlier,
    Straggler,
    check_run,
)
from tdbg_lab.rules.runner import Runner

from .recorded import USUAL, Recorded, healthy

if TYPE_CHECKING:
    from tdbg_lab.rules import Rule

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent


def periodic(n: int, every: int, phase: str = "checkpoint") -> list[dict[str, float]]:
    slow = {**USUAL, phase: 400.0}
    return [slow if step % every == every - 1 else USUAL for step in range(n)]


class Large:
    """State that takes its time to be saved."""

    def __reduce__(self) -> tuple[Any, ...]:
        time.sleep(0.4)
        return (int, ())


def checkpointed(tmp_path: Path, save: Any) -> tuple[Path, float]:
    """A training that calls `save` each tenth step; its run directory, and how long the loop took, s."""
    torch.set_num_threads(1)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with tdbg.attach(model, optimizer=optimizer, store=tmp_path / "run", strict=True) as handle:
        begun = time.perf_counter()
        for step in range(80):
            optimizer.zero_grad()
            time.sleep(0.005)
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()
            if step % 10 == 9:
                save({"model": model.state_dict(), "more": Large()}, tmp_path / f"model-{step}.pt")
        took_s = time.perf_counter() - begun
    return handle.run_path, took_s


def test_checkpoints_of_a_real_training_are_found_and_saving_in_a_thread_gains_what_is_said(
    tmp_path: Path,
) -> None:
    run_path, took_s = checkpointed(tmp_path, torch.save)
    (finding,) = check_run(run_path, [StepOutlier()])[0]
    assert finding.severity == "warning"
    assert finding.evidence["phase"] == "checkpoint"
    assert finding.evidence["period_steps"] == 10
    assert "every 10 steps" in finding.message
    assert finding.view is not None
    assert finding.view.name == "step_times"
    assert "torch.save in a thread" in finding.advice[0]
    with ThreadPoolExecutor(1) as saver:
        run_path, later_s = checkpointed(tmp_path, partial(saver.submit, torch.save))
    assert check_run(run_path, [StepOutlier()])[0] == []
    assert 1 - later_s / took_s > 0.6 * float(finding.evidence["cost_percent"]) / 100


@pytest.mark.parametrize(
    ("steps", "severity"),
    [
        (periodic(200, 20), "warning"),
        (periodic(200, 20, "data"), "warning"),
        (healthy(200), None),
        ([{**USUAL, "data": 400.0, "capture": 5.0} if step % 5 == 0 else USUAL for step in range(200)], None),
        (
            [{**USUAL, "forward": 90.0, "capture": 5.0} if step % 5 == 0 else USUAL for step in range(200)],
            None,
        ),
        (
            [
                {**USUAL, "forward": 180.0, "capture": 5.0}
                if step % 5 == 0
                else {**USUAL, "forward": 180.0 if step % 20 == 7 else USUAL["forward"]}
                for step in range(200)
            ],
            None,
        ),
        ([*healthy(60), {**USUAL, "forward": 400.0}, *healthy(60)], None),
        ([{**USUAL, "forward": 10.0 + step % 30} for step in range(200)], None),
        ([{**USUAL, "eval": 900.0} if step % 20 == 0 else USUAL for step in range(200)], None),
    ],
)
def test_slow_steps_are_those_that_cost(
    tmp_path: Path, steps: list[dict[str, float]], severity: str | None
) -> None:
    finding = Recorded(tmp_path / "run").steps(steps).find(StepOutlier())
    assert (None if finding is None else finding.severity) == severity


@pytest.mark.parametrize(("phase", "times"), [("forward", 0), ("data", 0), ("other", 0), ("checkpoint", 1)])
def test_a_program_that_gathers_its_own_data_does_so_between_two_steps(
    tmp_path: Path, phase: str, times: int
) -> None:
    recorded = Recorded(tmp_path / "run").fact("gathers", 3.0).steps(periodic(200, 20, phase))
    assert len(recorded.check(StepOutlier())[0]) == times


def slow_now_and_then(path: Path, own: float, begin_s: float) -> Recorded:
    """Two cores, 95% busy, from so long after the start on: training takes `own` percent of one core."""
    rng = np.random.default_rng(0)
    slow = rng.permutation(200) < 20
    load = {
        ("cpu", "cpu"): 95.0,
        ("cpu", "cpu0"): 95.0,
        ("cpu", "cpu1"): 95.0,
        ("process_cpu", "process"): own,
    }
    steps = [{**USUAL, "forward": 210.0} if is_slow else USUAL for is_slow in slow]
    recorded = Recorded(path, begin_s=begin_s).steps(steps)
    return recorded.load({key: [value] * 60 for key, value in load.items()})


@pytest.mark.parametrize(("own", "others"), [(90.0, 50.0), (180.0, None)])
def test_irregular_slow_steps_tell_of_other_programs_on_a_full_machine(
    tmp_path: Path, own: float, others: float | None
) -> None:
    finding = slow_now_and_then(tmp_path / "run", own, 30.0).find(StepOutlier())
    assert finding is not None
    assert finding.severity == "notice"
    assert finding.evidence.get("other_programs_cpu_percent") == others
    assert finding.advice[0].startswith("Other programs take 50%") is (others is not None)


def test_irregular_slow_steps_are_not_told_while_our_own_processes_start(tmp_path: Path) -> None:
    recorded = slow_now_and_then(tmp_path / "run", 90.0, 1.0)
    assert recorded.find(StepOutlier()) is None
    assert recorded.steps([USUAL] * 300).find(StepOutlier()) is None, "nor later"


@pytest.mark.parametrize(
    ("phase", "first"), [("step", "Batches of varying length"), ("boosting", "Click a slow step")]
)
def test_what_computes_as_a_whole_is_not_to_be_made_rarer(tmp_path: Path, phase: str, first: str) -> None:
    steps = [{"data": 1.0, phase: 200.0 if step % 20 == 7 else 10.0} for step in range(200)]
    finding = Recorded(tmp_path / "run").steps(steps).find(StepOutlier())
    assert finding is not None
    assert finding.evidence["phase"] == phase
    assert finding.advice[0].startswith(first)


@pytest.mark.parametrize(("n_outliers", "found"), [(10, False), (9, True)])
def test_classic_outliers_are_more_than_their_number(tmp_path: Path, n_outliers: int, *, found: bool) -> None:
    steps = [{**USUAL, "forward": 210.0} if step % 19 == 18 else USUAL for step in range(195)]
    finding = Recorded(tmp_path / "run").steps(steps).find(StepOutlier(classic=True, n_outliers=n_outliers))
    assert (finding is not None) is found


def test_slow_rank_of_two_real_processes_is_found_and_gains_what_is_said(tmp_path: Path) -> None:
    """Rank 1 takes 90 ms longer in each forward pass, then no longer; both are joined by gloo."""
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        pytest.skip("needs gloo")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launch, HERE / "slow_rank.py", tmp_path / "run", "0.1", "0.01"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found, states = check_run(tmp_path / "run", [Straggler()])
    assert len(found) == 1, states
    assert found[0].rank == 1
    assert found[0].evidence["phase"] == "forward"
    assert found[0].evidence["behind_ms"] > 50
    assert check_run(tmp_path / "run-2", [Straggler()])[0] == []
    slow_s, even_s = (
        float(np.median(step_times(tdbg.open_run(tmp_path / name).spans()).duration_s))
        for name in ("run", "run-2")
    )
    gain = float(found[0].evidence["gain_percent"]) / 100
    assert 1 - even_s / slow_s == pytest.approx(gain, abs=0.25)


@pytest.mark.parametrize(
    ("second", "rank"),
    [
        ([USUAL] * 100, None),
        ([{**USUAL, "forward": 16.0, "backward": 14.0}] * 100, 1),
        ([{**USUAL, "forward": 18.0 if step % 2 else 2.0} for step in range(100)], None),
    ],
)
def test_straggler_is_late_step_after_step(
    tmp_path: Path, second: list[dict[str, float]], rank: int | None
) -> None:
    made = Recorded(tmp_path / "run", ranks=2).steps(healthy(100)).steps(second, rank=1)
    finding = made.find(Straggler())
    assert (None if finding is None else finding.rank) == rank


def test_straggler_is_found_where_a_restart_made_steps_again(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run", ranks=2)
    late = {**USUAL, "forward": 16.0, "backward": 14.0}
    for rank, phases in enumerate((USUAL, late)):
        made.steps([phases] * 90, rank=rank)
        made.step[rank] = 60
        made.steps([phases] * 25, rank=rank)
    finding = made.find(Straggler())
    assert finding is not None
    assert finding.rank == 1


def test_stages_of_a_pipeline_are_no_stragglers(tmp_path: Path) -> None:
    late = [{**USUAL, "forward": 16.0, "backward": 14.0}] * 100
    made = Recorded(tmp_path / "run", ranks=2)
    for rank, phases in enumerate((healthy(100), late)):
        made.fact("stage", 1.0, rank=rank).steps(phases, rank=rank)
    assert made.why_not(Straggler()).startswith("Each rank has a stage of a pipeline")


def test_single_process_has_no_straggler(tmp_path: Path) -> None:
    reason = Recorded(tmp_path / "run").steps(healthy(30)).why_not(Straggler())
    assert reason.startswith("Only one process of this run has recorded steps")


@pytest.mark.parametrize(("begin_s", "found"), [(59.0, False), (61.0, True)])
def test_long_initialization_counts_to_the_first_phase(
    tmp_path: Path, begin_s: float, *, found: bool
) -> None:
    made = Recorded(tmp_path / "run", begin_s=begin_s).steps(healthy(30))
    finding = made.find(MaxInitializationTime(threshold=1.0))
    assert (finding is not None) is found


def test_long_initialization_is_told_before_the_first_step(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run")
    runner = Runner(made.path, [MaxInitializationTime(threshold=2.0)])
    runner._feed._clock = lambda: 1e9
    runner.work()
    (finding,) = runner.findings
    assert finding.message.startswith("No training step has come for")
    runner.close()


def test_initialization_is_not_long_because_the_clock_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Recorded(tmp_path / "run")
    runner = Runner(made.path, [MaxInitializationTime(threshold=2.0)])
    now_s, now_ns = time.monotonic() + 5.0, time.time_ns()
    runner._feed._clock = lambda: now_s
    monkeypatch.setattr(time, "time_ns", lambda: now_ns + 3600 * 10**9)
    runner.work()
    assert runner.findings == []
    now_s += 120.0
    monkeypatch.setattr(time, "time_ns", lambda: now_ns - 3600 * 10**9)
    runner._idle_ns = 0
    runner.work()
    (finding,) = runner.findings
    assert finding.evidence["initialization_min"] == pytest.approx(2.1, abs=0.1)
    runner.close()


CORES = {("cpu", "cpu"): [20.0] * 30, **{("cpu", f"cpu{core}"): [20.0] * 30 for core in range(4)}}


@pytest.mark.parametrize(
    ("workers", "classic", "text"),
    [
        (8, False, None),
        (9, False, "num_workers=4 would load as much"),
        (2, True, "more would load"),
        (3, True, None),
    ],
)
def test_workers_are_compared_with_cores(
    tmp_path: Path, workers: int, text: str | None, *, classic: bool
) -> None:
    made = Recorded(tmp_path / "run").steps(healthy(40, 10)).load(CORES).loader(num_workers=workers)
    finding = made.find(Dataloader(classic=classic))
    assert (finding is None) == (text is None)
    if finding is not None and text is not None:
        assert text in finding.message


def test_unpinned_memory_is_told_where_a_gpu_is_at_work(tmp_path: Path) -> None:
    load = {**CORES, ("gpu", "gpu0"): [80.0] * 30}
    made = Recorded(tmp_path / "run").steps(healthy(40, 10)).load(load).loader(num_workers=2)
    finding = made.find(Dataloader())
    assert finding is not None
    assert "does not pin its memory" in finding.message


def test_loader_and_cores_must_be_known(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "unseen").steps(healthy(30)).load(CORES)
    assert made.why_not(Dataloader()) == "No data loader of PyTorch was seen so far."
    made = Recorded(tmp_path / "unsampled").steps(healthy(30)).loader(num_workers=1)
    assert made.why_not(Dataloader()).startswith("The cores of the machine are not known")


def test_summaries_give_numbers_and_classic_ones_nothing(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run").steps(healthy(100, 10)).load({**CORES, ("gpu", "gpu0"): [80.0] * 30})
    found, _ = made.check(OverallFrameworkMetrics(), OverallSystemUsage(least=10))
    messages = {one.rule: one for one in found}
    shares = messages["overall_framework_metrics"].evidence
    assert shares["backward_percent"] == pytest.approx(50)
    assert messages["overall_system_usage"].evidence["gpu_p95_percent"] == 80
    assert {one.severity for one in found} == {"notice"}
    classic = [OverallFrameworkMetrics(classic=True), OverallSystemUsage(least=10, classic=True)]
    assert not check_run(made.path, classic)[0]


@pytest.mark.parametrize("rule", [StepOutlier, Straggler, Dataloader, OverallFrameworkMetrics])
def test_not_applicable_without_phases(tmp_path: Path, rule: type[Rule]) -> None:
    made = Recorded(tmp_path / "run").steps([{"profile": 1.0}] * 4)
    assert made.why_not(rule()) == (
        "No step was timed so far; attach(..., profiler=True), the default, times them."
    )


@pytest.mark.parametrize(
    ("rule", "given", "text"),
    [
        (StepOutlier, {"factor": 1.0}, "step_outlier.factor is 1.0"),
        (Straggler, {"max_behind": 2.0}, "straggler.max_behind is 2.0"),
        (Dataloader, {"max_threshold": -1}, "dataloader.max_threshold is -1"),
        (MaxInitializationTime, {"threshold": 0}, "max_initialization_time.threshold is 0"),
        (OverallFrameworkMetrics, {"min_steps": 0}, "overall_framework_metrics.min_steps is 0"),
        (OverallSystemUsage, {"least": 0}, "overall_system_usage.least is 0"),
    ],
)
def test_bad_thresholds_are_refused(rule: Any, given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        rule(**given)
