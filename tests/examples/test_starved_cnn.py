"""The example of a starved net, run as a script: its verdict, and what taking the advice gains."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tdbg_lab.run import open_run
from tdbg_lab.views.data_loading import waiting

EXAMPLE = Path(__file__).parents[2] / "examples" / "starved_cnn.py"


def test_starved_cnn_waits_less_with_the_workers_it_is_advised(tmp_path):
    pytest.importorskip("torch")
    command = [sys.executable, EXAMPLE, "--steps", "24", "--delay-ms", "10", "--store", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert "num_workers=" in done.stdout
    starved, fed = open_run(tmp_path / "starved"), open_run(tmp_path / "fed")
    assert [(one.kind, one.num_workers, one.batch_size, one.rows) for one in starved.loaders()] == [
        ("SlowDigits", 0, 16, 384)
    ]
    assert fed.loaders()[0].num_workers > 0
    assert waiting(starved.spans()).wait_s.mean() > 0.16
    assert waiting(fed.spans()).wait_s[4:].mean() < 0.7 * waiting(starved.spans()).wait_s[4:].mean()
    assert (tmp_path / "starved-report.html").stat().st_size < 15_000_000
