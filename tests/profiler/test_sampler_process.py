"""The real sampler process beside a real process that stands for training."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tdbg_lab.profiler import PhaseRecorder
from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, create_run, tail
from tdbg_lab.store.machines import read_machines
from tdbg_lab.views import call_view

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TRAINER = "import sys; print(flush=True); sys.stdin.read()"


@pytest.fixture
def trainer() -> Iterator[subprocess.Popen]:
    with subprocess.Popen(
        [sys.executable, "-c", TRAINER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    return create_run(tmp_path / "run").path


@pytest.fixture
def start() -> Iterator:
    started: list[subprocess.Popen] = []

    def begin(run_path: Path, pid: int) -> subprocess.Popen:
        command = [
            sys.executable,
            "-m",
            "tdbg_lab.profiler",
            str(run_path),
            "--pid",
            str(pid),
            "--interval",
            "0.05",
        ]
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def samples(run_path: Path, n: int = 1) -> dict[tuple[str, str], list[float]]:
    """Everything sampled, once there are `n` readings of the memory."""
    found: dict[tuple[str, str], list[float]] = {}
    deadline = time.monotonic() + 30
    for chunk in tail(run_path, streams=("system",)):
        if chunk is not None:
            for row in chunk.table.to_pylist():
                found.setdefault((row["metric"], row["device"]), []).append(row["value"])
        elif len(found.get(("memory", "memory"), [])) >= n:
            return found
        elif time.monotonic() > deadline:
            pytest.fail("the sampler wrote nothing")
        else:
            time.sleep(0.02)
    return found


def test_sampler_writes_metrics_and_ends_with_the_process(run_path: Path, trainer, start) -> None:
    sampler = start(run_path, trainer.pid)
    found = samples(run_path, 3)
    assert 0 < found["memory", "memory"][0] < 100
    assert all(0 <= value <= 100 for value in found["cpu", "cpu"])
    assert found["process_memory_bytes", "process"][0] > 1e6
    (machine,) = read_machines(run_path)
    assert (machine.rank, machine.host, machine.interval_s) == (0, socket.gethostname(), 0.05)
    assert bool(machine.gpus) != bool(machine.problem), "there are GPUs, or a word why there are none"
    trainer.kill()
    assert sampler.wait(10) == 0
    assert sampler.stderr.read() == b""


FORBIDDEN = """
import importlib.machinery, importlib.util, os, sys
_paths = [path for path in sys.path if path != os.path.dirname(__file__)]
_spec = importlib.machinery.PathFinder.find_spec("pynvml", _paths)
_real = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_real)
globals().update({name: value for name, value in vars(_real).items() if not name.startswith("__")})
def nvmlInit():
    raise NVMLError(NVML_ERROR_NO_PERMISSION)
"""
"""The real NVML, for a user who may not open it."""


def test_gpus_that_may_not_be_read_leave_a_word_and_all_else(
    run_path: Path, trainer, start, tmp_path: Path, monkeypatch
) -> None:
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / "pynvml.py").write_text(FORBIDDEN)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(shadow), os.environ.get("PYTHONPATH", ""))))
    start(run_path, trainer.pid)
    assert ("cpu", "cpu") in samples(run_path, 3)
    (machine,) = read_machines(run_path)
    assert machine.gpus == ()
    assert machine.problem.startswith("This process may not read the GPUs (")
    said = call_view(open_run(run_path), "timeline").layout.meta["tdbg"]["caption"]
    assert "may not read the GPUs" in said


def test_killed_sampler_leaves_its_samples_and_a_word(run_path: Path, trainer, start) -> None:
    sampler = start(run_path, trainer.pid)
    written = len(samples(run_path, 5)["memory", "memory"])
    sampler.kill()
    sampler.wait(10)
    run = open_run(run_path)
    assert len(run.samples(metrics=["memory"])) >= written
    assert run.problems == []
    phases = RankWriter(run_path)
    phases.append_spans(["forward"], ["forward"], [time.time_ns()], [20 * 10**9], [0])
    phases.close()
    run.refresh()
    said = call_view(run, "timeline", {"window_s": 60}).layout.meta["tdbg"]["caption"]
    assert "the machine was no longer sampled in the last 2" in said
    assert "its sampler has ended" in said


def test_sampler_ends_when_the_run_has_ended(run_path: Path, trainer, start) -> None:
    folder = create_run(run_path.parent / "other")
    sampler = start(folder.path, trainer.pid)
    samples(folder.path)
    folder.set_status("finished")
    assert sampler.wait(10) == 0


def test_sampler_ends_quietly_when_the_run_is_deleted(run_path: Path, trainer, start) -> None:
    sampler = start(run_path, trainer.pid)
    samples(run_path)
    shutil.rmtree(run_path)
    assert sampler.wait(10) == 0
    assert sampler.stderr.read() == b""
    assert not run_path.exists()


def test_sampler_survives_a_hung_trainer_and_a_keyboard_interrupt(run_path: Path, trainer, start) -> None:
    sampler = start(run_path, trainer.pid)
    samples(run_path)
    trainer.send_signal(signal.SIGSTOP)
    sampler.send_signal(signal.SIGINT)
    assert samples(run_path, 5)
    assert sampler.poll() is None
    sampler.send_signal(signal.SIGTERM)
    assert sampler.wait(10) == 0


@pytest.mark.parametrize("pid", [2**22 - 3, -4])
def test_sampler_of_a_process_that_is_gone_ends_at_once(run_path: Path, start, pid: int) -> None:
    assert start(run_path, pid).wait(20) == 0
    assert next(tail(run_path, streams=("system",))) is None


def test_phases_reach_the_store(run_path: Path) -> None:
    writer = RankWriter(run_path)
    recorder = PhaseRecorder(writer)
    for step in range(3):
        with recorder.phase("forward", step):
            pass
        recorder.add("warm up", 5, 6, step, name="user's own")
    recorder.close()
    writer.close()
    chunks = [chunk for chunk, _ in zip(tail(run_path, streams=("spans",)), range(3), strict=False) if chunk]
    rows = [row for chunk in chunks for row in chunk.table.to_pylist()]
    assert sorted({row["phase"] for row in rows}) == ["forward", "warm up"]
    assert sorted(row["step"] for row in rows) == [0, 0, 1, 1, 2, 2]
    assert {row["thread"] for row in rows} != {0}


def test_sampler_leaves_heavy_packages_unloaded() -> None:
    code = (
        "import sys, tdbg_lab.profiler.__main__;"
        "print([m for m in ('torch', 'pandas', 'plotly', 'tornado', 'numba') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"
