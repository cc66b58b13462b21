"""The example of boosted trees, run as a script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tdbg_lab.run import open_run

EXAMPLE = Path(__file__).parents[2] / "examples" / "xgboost_cancer.py"


def test_xgboost_example_records_what_it_promises(tmp_path):
    pytest.importorskip("xgboost")
    command = [sys.executable, EXAMPLE, "--rounds", "21", "--store", tmp_path / "cancer"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert "confusion at step 20" in done.stdout
    assert done.stdout.count("of the gain") == 3
    run = open_run(tmp_path / "cancer")
    assert run.raw_steps("average_shap") == [0, 10, 20]
    losses = run.scalars("test-logloss", mode="eval").values
    assert losses[-1] < losses[0]
