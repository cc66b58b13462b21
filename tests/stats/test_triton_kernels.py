"""When the Triton kernels may be called."""

from __future__ import annotations

import threading
import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from tdbg_lab.stats import cuda, cuda_samples
from tdbg_lab.stats.triton_kernels import TritonKernels


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_they_are_not_called_while_a_thread_compiles_them(monkeypatch):
    go_on, begun = threading.Event(), []
    monkeypatch.setattr(cuda, "compile_kernels", lambda: begun.append(1) or go_on.wait(20))
    monkeypatch.setattr(cuda_samples, "compile_kernels", lambda: None)
    kernels = TritonKernels()
    assert kernels.usable(), "nobody has begun: who calls them compiles"
    kernels.warm_up()
    assert not kernels.usable()
    kernels.warm_up()
    go_on.set()
    wait_until(kernels.usable)
    assert begun == [1]


def test_what_cannot_be_compiled_is_not_called(monkeypatch, caplog):
    monkeypatch.setattr(cuda, "compile_kernels", lambda: 1 / 0)
    kernels = TritonKernels()
    kernels.warm_up()
    wait_until(lambda: kernels._done)
    assert not kernels.usable()
    assert "torch operations measure" in caplog.text
