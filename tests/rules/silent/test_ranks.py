"""Rules that compare ranks, on real ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tdbg_lab.records import Severity
from tdbg_lab.rules import run_rules

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
FOUND = {
    "healthy": {},
    "not_averaged": {"diverging_replicas": "in 0.weight"},
    "clipped_differently": {"clipping_differs": "norms from 0.05 to 0.1", "diverging_replicas": "differ by"},
    "clipped_on_one_rank": {"clipping_differs": "rank 1 did not clip", "diverging_replicas": "differ by"},
}
"""What each rule by itself says about each training."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One group of two processes for all of them."""
    folder = tmp_path_factory.mktemp("ranks")
    result = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2",
         str(HERE / "two_ranks.py"), str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-4000:]
    return folder


@pytest.mark.parametrize("fault", FOUND)
def test_ranks_that_part_are_found(runs: Path, fault: str) -> None:
    told = {
        finding.rule: finding.message
        for name in ("diverging_replicas", "clipping_differs")
        for finding in run_rules(runs / fault, [name])
    }
    assert told.keys() == FOUND[fault].keys()
    assert all(text in told[name] for name, text in FOUND[fault].items()), told


@pytest.mark.parametrize("fault", ["clipped_differently", "clipped_on_one_rank"])
def test_replicas_drift_apart_because_they_are_clipped_differently(runs: Path, fault: str) -> None:
    found = run_rules(runs / fault, ["diverging_replicas", "clipping_differs"])
    assert [one.rule for one in found if not one.cause] == ["clipping_differs"]
    (drift,) = [one for one in found if one.cause]
    assert (drift.rule, drift.severity) == ("diverging_replicas", Severity.NOTICE)
