"""A training of two processes on machines of their own: other host names, and a clock that is ahead."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tdbg_lab.run import open_run
from tdbg_lab.views import call_view
from tdbg_lab.views.report import write_report

ROOT = Path(__file__).parents[2]
TRAINING = ROOT / "tests" / "rules" / "profile" / "slow_rank.py"
AHEAD_S = 30
CLOCK = """
import os, time
ahead_s = int(os.environ["AHEAD_S"])
time_ns, seconds = time.time_ns, time.time
time.time_ns = lambda: time_ns() + ahead_s * 10**9
time.time = lambda: seconds() + ahead_s
"""
APART = ("unshare", "--user", "--map-root-user", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"')


def _can_be_apart() -> bool:
    if shutil.which("unshare") is None:
        return False
    done = subprocess.run([*APART, "node", "true"], capture_output=True, timeout=20, check=False)
    return done.returncode == 0


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    torch = pytest.importorskip("torch")
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        pytest.skip("needs gloo")
    if not _can_be_apart():
        pytest.skip("needs names of hosts of its own (unshare)")
    folder = tmp_path_factory.mktemp("two")
    (folder / "sitecustomize.py").write_text(CLOCK)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    paths = os.pathsep.join((str(folder), str(ROOT)))
    started = [
        subprocess.Popen(
            [*APART, f"node-{rank}", sys.executable, TRAINING, folder / "run"],
            env={
                **os.environ,
                **common,
                "RANK": str(rank),
                "AHEAD_S": str(AHEAD_S * rank),
                "PYTHONPATH": paths,
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        told = [one.communicate(timeout=240)[1] for one in started]
    finally:
        for one in started:
            one.kill()
    assert [one.returncode for one in started] == [0, 0], told
    return open_run(folder / "run")


def test_machines_are_told_apart_and_share_one_clock(run):
    assert [(one.rank, one.host) for one in run.machines()] == [(0, "node-0"), (1, "node-1")]
    assert run.clock_offsets() == {"node-1": pytest.approx(AHEAD_S, abs=0.2)}
    figure = call_view(run, "timeline", {"tracks": "machines"})
    names = [trace.name for trace in figure.data]
    assert {"forward of node-0", "forward of node-1", "CPU of node-0", "CPU of node-1"} <= set(names)
    ends = {rank: (one["start_ns"] + one["duration_ns"]).max() for rank, one in run.spans().groupby("rank")}
    assert abs(ends[1] - ends[0]) < 5e9
    assert {"cpu0 of node-0", "cpu0 of node-1"} <= set(call_view(run, "cores").data[0].y)


def test_who_waits_for_whom_is_told_over_machines(run):
    assert "Rank 1 is the slow one" in call_view(run, "ranks").layout.meta["tdbg"]["caption"]


def test_report_tells_of_both_machines(run, tmp_path):
    page = write_report(run.path, tmp_path / "report.html").read_text()
    assert "forward of node-0" in page
    assert "CPU of node-1" in page
    assert "Clocks of the machines differ: that of node-1 is 30" in page
