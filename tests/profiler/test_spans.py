from __future__ import annotations

import time

import pytest

from tdbg_lab.errors import StoreError
from tdbg_lab.profiler import PhaseRecorder


class MemoryWriter:
    def __init__(self, error: Exception | None = None) -> None:
        self.batches: list[list[tuple]] = []
        self.error = error

    def append_spans(self, names, phases, start_ns, duration_ns, steps, device="", thread=0) -> None:
        if self.error is not None:
            raise self.error
        self.batches.append(list(zip(names, phases, start_ns, duration_ns, steps, strict=True)))

    @property
    def spans(self) -> list[tuple]:
        return [span for batch in self.batches for span in batch]


def test_spans_carry_epoch_time_phase_and_step() -> None:
    writer = MemoryWriter()
    recorder = PhaseRecorder(writer)
    before = time.time_ns()
    recorder.begin("forward", 7)
    recorder.end()
    recorder.close()
    ((name, phase, start, duration, step),) = writer.spans
    assert (name, phase, step) == ("forward", "forward", 7)
    assert before - 1_000_000 <= start <= start + duration <= time.time_ns() + 1_000_000


def test_spans_nest_and_the_outer_contains_the_inner() -> None:
    writer = MemoryWriter()
    recorder = PhaseRecorder(writer)
    with recorder.phase("eval", 1), recorder.phase("forward", 1, name="validation forward"):
        pass
    recorder.flush()
    inner, outer = writer.spans
    assert inner[:2] == ("validation forward", "forward")
    assert outer[2] <= inner[2]
    assert inner[2] + inner[3] <= outer[2] + outer[3]


def test_a_span_is_split_where_it_became_another_phase() -> None:
    writer = MemoryWriter()
    recorder = PhaseRecorder(writer)
    recorder.begin("mine")
    recorder.switch("forward", 3)
    at = time.perf_counter_ns()
    recorder.split("other", at, 3)
    assert recorder.current == "mine"
    recorder.close()
    forward, other, _ = writer.spans
    assert [forward[0], other[0]] == ["forward", "other"]
    assert forward[2] + forward[3] == other[2]


def test_a_phase_of_the_user_is_not_split() -> None:
    writer = MemoryWriter()
    recorder = PhaseRecorder(writer)
    recorder.begin("mine")
    recorder.split("other", time.perf_counter_ns())
    recorder.close()
    assert [span[0] for span in writer.spans] == ["mine"]


def test_switch_leaves_no_gap() -> None:
    writer = MemoryWriter()
    recorder = PhaseRecorder(writer)
    recorder.begin("data")
    recorder.switch("forward")
    assert recorder.current == "forward"
    recorder.close()
    data, forward = writer.spans
    assert 0 <= forward[2] - (data[2] + data[3]) < 1_000_000


def test_end_of_a_phase_ends_what_an_exception_left_open_within() -> None:
    writer = MemoryWriter()
    recorder = PhaseRecorder(writer)
    recorder.begin("eval")
    recorder.begin("forward")
    recorder.end("eval")
    recorder.end("eval")
    recorder.end()
    recorder.flush()
    assert [span[1] for span in writer.spans] == ["forward", "eval"]
    assert recorder.current is None


def test_open_spans_are_bounded_when_ends_are_lost() -> None:
    writer = MemoryWriter()
    recorder = PhaseRecorder(writer)
    for step in range(1000):
        recorder.begin("forward", step)
    recorder.close()
    assert len(writer.spans) == 64
    assert writer.spans[0][4] == 999


def test_batch_is_written_when_old_and_when_full() -> None:
    writer = MemoryWriter()
    recorder = PhaseRecorder(writer, flush_after_s=0.0)
    recorder.begin("data")
    recorder.end()
    assert len(writer.batches) == 1
    full = PhaseRecorder(writer, flush_after_s=1e6, capacity=3)
    for _ in range(7):
        full.add("other", 0, 1)
    assert [len(batch) for batch in writer.batches] == [1, 3, 3]


def test_phases_that_cannot_be_written_are_missing_and_later_ones_are_not() -> None:
    writer = MemoryWriter(StoreError("disk full"))
    recorder = PhaseRecorder(writer)
    with recorder.phase("forward"):
        pass
    recorder.flush()
    writer.error = None
    with recorder.phase("backward"):
        pass
    recorder.close()
    assert recorder.error is None
    assert [span[0] for span in writer.spans] == ["backward"]


def test_failing_writer_ends_recording_and_never_raises(caplog) -> None:
    error = ValueError("a bug")
    recorder = PhaseRecorder(MemoryWriter(error))
    with recorder.phase("forward"):
        pass
    recorder.flush()
    with recorder.phase("forward"):
        pass
    recorder.close()
    assert recorder.error is error
    assert len(caplog.records) == 1


def test_exception_of_the_body_passes_and_the_span_is_kept() -> None:
    writer = MemoryWriter()
    recorder = PhaseRecorder(writer)
    with pytest.raises(KeyError), recorder.phase("forward"):
        raise KeyError
    recorder.close()
    assert len(writer.spans) == 1
