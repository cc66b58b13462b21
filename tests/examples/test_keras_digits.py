"""The example for Keras runs as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import tdbg_lab as tdbg

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_keras_digits_runs_and_is_recorded(tmp_path: Path, backend: str) -> None:
    if find_spec("keras") is None or find_spec(backend) is None:
        pytest.skip(f"Keras on {backend} is not installed")
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT)}
    script = [sys.executable, str(ROOT / "examples" / "keras_digits.py"), str(tmp_path / "digits")]
    done = subprocess.run(script, capture_output=True, text=True, env=environment, check=False, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    run = tdbg.open_run(tmp_path / "digits")
    assert str(run.status) == "finished"
    assert {"gradient/hidden/kernel", "activation/hidden", "loss/total", "epoch/val_accuracy"} <= set(
        run.tensor_names()
    )
    assert run.scalars("epoch/accuracy").values[-1] > 0.5
