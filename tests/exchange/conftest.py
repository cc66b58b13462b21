"""A small run with everything an export can hold, recorded by the real capture."""

from __future__ import annotations

import sys
import time
import types

import numpy as np
import pytest

import tdbg_lab as tdbg
from tdbg_lab.records import Finding, Severity
from tdbg_lab.store import FindingsWriter, SystemWriter


@pytest.fixture(scope="session", autouse=True)
def tensorboard_without_tensorflow():
    """TensorBoard loads TensorFlow where it is installed, which must not share a process with Triton."""
    sys.modules.setdefault("tensorboard.compat.notf", types.ModuleType("notf"))


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("exchange") / "run"
    random = np.random.default_rng(0)
    with tdbg.attach(store=path, save_every=1, hyperparameters={"lr": 0.1}, strict=True) as handle:
        for step in range(6):
            values = random.normal(size=(40, 5)) * 10.0**step
            values[:, 0] = 0.0
            handle.log(loss=1.0 / (step + 1), odd=float("nan") if step == 3 else 2.0)
            handle.record("latent", values, labels=np.arange(40) % 3)
            handle.advance()
        with handle.mode("eval"):
            handle.log(accuracy=0.5)
    system = SystemWriter(path)
    system.append(time.time_ns(), ["cpu", "memory"], ["cpu", ""], [50.0, 10.0])
    system.close()
    writer = FindingsWriter(path)
    writer.append(
        Finding(
            "dead_relu",
            Severity.WARNING,
            2,
            4,
            "All is dead.",
            tensor="latent",
            advice=("Wake it.",),
            id="one",
        )
    )
    writer.close()
    return path


@pytest.fixture
def run(recorded):
    return tdbg.open_run(recorded)
