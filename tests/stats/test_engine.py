import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tdbg_lab.stats import cpu, engine, jit, reference
from tdbg_lab.stats.dtypes import Code
from tdbg_lab.stats.engine import CpuEngine

ROOT = Path(__file__).parents[2]


def _engine(monkeypatch, marker):
    """An engine whose cache has this marker, and the commands of the children that it starts."""
    started = []
    monkeypatch.setattr(engine, "_marker", lambda: marker)
    monkeypatch.setattr(engine.subprocess, "run", lambda command, **_: started.append(command))
    fresh = CpuEngine()
    fresh._warm_up = lambda: setattr(fresh, "ready", True)
    return fresh, started


def test_warm_up_compiles_in_a_child_when_the_cache_is_cold(monkeypatch, tmp_path):
    fresh, started = _engine(monkeypatch, tmp_path / "none")
    fresh.warm_up()
    fresh.warm_up()
    assert len(started) == 1
    assert fresh.ready


@pytest.mark.parametrize("cached", [True, False])
def test_warm_up_starts_no_child_when_the_cache_is_warm_or_missing(monkeypatch, tmp_path, cached):
    (tmp_path / "marker").touch()
    fresh, started = _engine(monkeypatch, tmp_path / "marker" if cached else None)
    fresh.warm_up()
    assert started == []
    assert fresh.ready


def test_warm_up_goes_on_when_the_child_cannot_start(monkeypatch, tmp_path):
    fresh, _ = _engine(monkeypatch, tmp_path / "none")

    def refuse(*_, **__):
        raise subprocess.SubprocessError

    monkeypatch.setattr(engine.subprocess, "run", refuse)
    fresh.warm_up()
    assert fresh.ready


def test_compile_waits_for_its_turn_while_another_process_compiles(monkeypatch, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    fresh, _ = _engine(monkeypatch, tmp_path / "kernels.compiled")
    with (tmp_path / "kernels.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        compiling = threading.Thread(target=fresh.compile)
        compiling.start()
        compiling.join(0.2)
        assert compiling.is_alive()
        assert not fresh.ready
    compiling.join(60)
    assert fresh.ready


def test_engine_that_cannot_compile_falls_back_and_says_so_once(monkeypatch, caplog):
    def fail():
        raise ImportError("no numba")

    monkeypatch.setattr(engine, "_load", fail)
    fresh = CpuEngine()
    assert fresh.usable() is False
    assert fresh.usable() is False
    assert len(caplog.records) == 1


# A program of its own forks: this one has threads of many libraries by now, and they may hold locks.
FORKING = """
import os
import numpy as np
from tdbg_lab.stats import cpu

array = np.arange(600_000, dtype=np.float32)
assert cpu.summarize([array], threads=2).zero_count[0] == 1  # the pool of threads exists now
child = os.fork()
if child == 0:
    block = cpu.summarize([array], threads=2)
    os._exit(0 if block.zero_count[0] == 1 and block.count[0] == len(array) else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_engine_works_in_a_forked_child():
    subprocess.run([sys.executable, "-c", FORKING], cwd=ROOT, check=True, timeout=120)


def test_engine_serves_several_threads_at_once(assert_agree):
    arrays = [np.random.default_rng(seed).standard_normal(300_000).astype(np.float32) for seed in range(6)]
    got = {}

    def work(i):
        got[i] = cpu.summarize([arrays[i]] * 2, threads=2)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for i in range(6):
        assert_agree(got[i], reference.summarize([arrays[i]] * 2))


def test_source_stamp_tells_sources_apart():
    assert jit.source_stamp("jit") != jit.source_stamp("kernels")
    assert jit.source_stamp("jit") == jit.source_stamp("jit")
    assert jit.source_stamp("no_such_module") == 0


def test_caller_measures_alone_while_the_other_threads_are_busy(assert_agree):
    values = np.random.default_rng(0).normal(size=1 << 21).astype(np.float32)
    own = CpuEngine()
    own.compile()
    busy = threading.Event()
    own._pool, own._pool_pid = ThreadPoolExecutor(1), os.getpid()
    held = own._pool.submit(busy.wait, 60)
    memory = (values.ctypes.data, int(Code.FLOAT32), len(values), 0, 0)
    block = own.measure([memory], threads=2)
    assert not held.done()
    busy.set()
    own._pool.shutdown()
    assert_agree(block, reference.summarize([values]))
