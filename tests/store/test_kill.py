"""kill -9 at random moments: nothing acknowledged is lost, everything is readable."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, create_run, tail

WRITER = """
import os, sys, time
import numpy as np
from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.store import RankWriter, limits, stream
from tdbg_lab.testing import block_of
import pyarrow.parquet, safetensors.numpy
stream.SEGMENT_BATCHES["stats"] = 16      # seal often: the moment of the kill is then often inside it
keys = tuple(TensorKey(f"t{i}", Kind.WEIGHT) for i in range(40))
block = block_of([np.arange(50.0) + i for i in range(40)])
while True:                               # one process forks many writers: importing takes longest
    line = sys.stdin.readline()
    if not line:
        break
    path, first = line.split()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        writer = RankWriter(path)
        for step in range(int(first), 10**9):
            writer.append(StatsRows(step, Mode.TRAIN, 0, time.time_ns(), keys, block))
            os.write(1, b"%d\\n" % step)  # acknowledged
            if step % 5 == 0:
                writer.write_raw(step, {"x": np.full(2000, float(step))}, mode=Mode.TRAIN)
    os.close(read); os.close(write)
    sys.stdout.write(f"pid {child}\\n"); sys.stdout.flush()
    os.waitpid(child, 0)
    sys.stdout.write("dead\\n"); sys.stdout.flush()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_writer_killed_at_fifty_random_moments_loses_nothing_acknowledged(tmp_path):
    path = create_run(tmp_path / "run").path
    moments = random.Random(7)
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", WRITER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    acknowledged: list[int] = []
    delivered: list[int] = []
    follower = tail(path)
    try:
        for _ in range(50):
            first = acknowledged[-1] + 2 if acknowledged else 0  # the step in flight may be there or not
            server.stdin.write(f"{path} {first}\n")
            server.stdin.flush()
            acknowledged += kill_at_random(server, moments)
            delivered += drain(follower)
            assert set(acknowledged) <= set(delivered)
    finally:
        server.stdin.close()
        server.wait(30)
        server.stdout.close()
    assert len(delivered) == len(set(delivered))
    assert len(set(delivered) - set(acknowledged)) <= 50  # at most the step in flight, each time
    RankWriter(path).close()  # seals what was left
    run = open_run(path)
    assert run.problems == []
    assert run.steps().tolist() == sorted(delivered)
    assert not list((path / "rank-00000").glob("*.arrows"))
    for step in run.raw_steps("x"):
        assert (run.tensor("x").value(step) == step).all()
    assert drain(follower) == []


def kill_at_random(server, moments: random.Random) -> list[int]:
    """Kill the forked writer after a random time; steps it acknowledged."""
    steps, pid = [], None
    deadline = None
    for line in server.stdout:
        if line.startswith("dead"):
            return steps
        if line.startswith("pid"):
            pid = int(line.split()[1])
        else:
            steps.append(int(line))
        if pid is not None and steps and deadline is None:
            deadline = time.monotonic() + moments.uniform(0, 0.08)
        if deadline is not None and time.monotonic() >= deadline:
            os.kill(pid, signal.SIGKILL)
            deadline = float("inf")
    raise AssertionError("the writer's parent died")


def drain(follower) -> list[int]:
    found = []
    while (chunk := next(follower)) is not None:
        found.append(chunk.table["step"][0].as_py())
    return found
