"""Checks on a real Dask cluster of processes on this machine."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np
import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Finding, RuleStatus
from tdbg_lab.rules import Rule, check_run, resolve_rules
from tdbg_lab.rules.cluster import check_on_cluster, partition

from .made import Made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

distributed = pytest.importorskip("distributed")


@dataclass(frozen=True, kw_only=True)
class KillsOnce(Rule):
    """Kills the worker it runs on, unless somebody did so before."""

    marker: str

    def check(self, step: int, run: Any) -> Finding | None:
        if step == 2:
            try:
                os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return self.finding(step, "survived")
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        return None


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True, host="127.0.0.1"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def runs(tmp_path: Path) -> list[Made]:
    made = [Made(tmp_path / str(number), ranks=2) for number in range(2)]
    for number, run in enumerate(made):
        for step in range(6):
            for rank in range(2):
                bad = np.nan if number and step > 3 else 1.0
                run.step(step, {"a.weight": np.full((2, 2), bad), "loss/x": bad}, rank=rank)
        run.end()
    return made


def test_cluster_finds_what_this_process_finds(scheduler: str, runs: list[Made]) -> None:
    rules = resolve_rules("default")
    found = check_on_cluster([run.path for run in runs], rules, scheduler)
    for run in runs:
        findings, states = check_run(run.path)
        theirs, their_states = found[run.path]
        # What follows from what is decided when all is gathered, here as soon as it is told.
        # Which of two findings of one step came first depends on the machines, so they are compared by id.
        assert [one.step_first for one in theirs] == [one.step_first for one in findings]
        assert {one.id: one.message for one in theirs} == {one.id: one.message for one in findings}
        assert [(one.rule, one.status, one.step_checked) for one in their_states] == [
            (one.rule, one.status, one.step_checked) for one in states
        ]
    assert "critical" in {str(one.severity) for one in found[runs[1].path][0]}


def test_check_of_a_killed_worker_is_done_by_another(
    scheduler: str, runs: list[Made], tmp_path: Path
) -> None:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        rules = [KillsOnce(marker=str(tmp_path / "killed")), *resolve_rules("exploding_tensor")]
        findings, states = check_on_cluster([runs[1].path], rules, scheduler)[runs[1].path]
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert (tmp_path / "killed").exists()
    assert {one.rule for one in findings} == {"kills_once", "exploding_tensor"}
    assert {one.status for one in states} == {RuleStatus.ISSUE_FOUND}


def test_scheduler_that_does_not_answer_is_told(runs: list[Made], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tdbg_lab.rules.cluster._TIMEOUT_S", 0.5)
    with pytest.raises(ConfigError, match=r"No Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        check_on_cluster([runs[0].path], resolve_rules("dead_relu"), "tcp://127.0.0.1:9")


@pytest.mark.parametrize(("workers", "shares"), [(1, 2), (2, 4), (50, 4)])
def test_every_rule_is_in_one_share(workers: int, shares: int) -> None:
    rules = resolve_rules(["dead_relu", "exploding_tensor", "vanishing_gradient", "loss_not_decreasing"])
    parts = partition(rules, workers)
    assert len(parts) == shares
    assert sorted(rule.name for part in parts for rule in part) == sorted(rule.name for rule in rules)
