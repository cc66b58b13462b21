from __future__ import annotations

import threading
import time

import pytest

from tdbg_lab.errors import StoreError
from tdbg_lab.profiler.probe import Reading
from tdbg_lab.profiler.sampler import Sampler


class Fixed:
    def read(self):
        return [Reading("cpu", "cpu", 12.5)]


class Broken:
    def __init__(self) -> None:
        self.calls = 0

    def read(self):
        self.calls += 1
        yield Reading("memory", "memory", 1.0)
        raise OSError("half way")


class Memory:
    def __init__(self, fail_at: int = -1) -> None:
        self.rows: list[tuple] = []
        self.times: list[int] = []
        self.closed = 0
        self.fail_at = fail_at

    def append(self, time_ns, metrics, devices, values) -> None:
        if len(self.times) == self.fail_at:
            self.fail_at = -1
            raise StoreError("no space left")
        self.rows.append((tuple(metrics), tuple(devices), tuple(values)))
        self.times.append(time_ns)

    def close(self) -> None:
        self.closed += 1


def countdown(n: int):
    left = iter([None] * n)
    return lambda: next(left, "the run has ended")


def test_sampler_reads_until_the_run_is_over_and_closes() -> None:
    writer = Memory()
    reason = Sampler([Fixed()], writer, countdown(3), interval_s=0.001).run(threading.Event())
    assert reason == "the run has ended"
    assert writer.rows == [(("cpu",), ("cpu",), (12.5,))] * 3
    assert writer.closed == 1


def test_sampler_ends_when_asked_without_waiting_for_the_interval() -> None:
    stop = threading.Event()
    stop.set()
    writer = Memory()
    assert Sampler([Fixed()], writer, lambda: None, interval_s=3600).run(stop) == "asked to stop"
    assert writer.closed == 1


def test_broken_probe_is_left_out_and_the_others_go_on(caplog) -> None:
    broken = Broken()
    writer = Memory()
    Sampler([broken, Fixed()], writer, countdown(3), interval_s=0.001).run(threading.Event())
    assert broken.calls == 1
    assert len(writer.rows) == 3
    assert len(caplog.records) == 1


def test_sampler_goes_on_when_a_sample_cannot_be_written(caplog) -> None:
    writer = Memory(fail_at=1)
    reason = Sampler([Fixed()], writer, countdown(4), interval_s=0.001).run(threading.Event())
    assert reason == "the run has ended"
    assert len(writer.rows) == 3
    assert [one.getMessage() for one in caplog.records] == ["Samples are missing: no space left"]
    assert writer.closed == 1


@pytest.mark.parametrize("set_s", [-3600, 3600])
def test_samples_go_on_evenly_when_the_clock_is_set(monkeypatch, set_s) -> None:
    writer, real_ns = Memory(), time.time_ns
    sampler = Sampler([Fixed()], writer, lambda: None, interval_s=0.001)
    sampler.sample()
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + set_s * 10**9)
    sampler.sample()
    assert 0 < writer.times[1] - writer.times[0] < 60 * 10**9
