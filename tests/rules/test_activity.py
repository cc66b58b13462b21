"""What rules see of phases and load: bounded, in time order, whatever is on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.rules import Needs, RunView
from tdbg_lab.rules.activity_feed import ActivityFeed
from tdbg_lab.rules.feed import Feed
from tdbg_lab.rules.sample_log import BUSIEST, SampleLog
from tdbg_lab.rules.span_log import SpanLog
from tdbg_lab.store import RankWriter, SystemWriter, create_run

from .profile.recorded import USUAL, Recorded, healthy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MS = 1_000_000


def put(log: SpanLog, rows: Sequence[tuple[str, int, int, int]], rank: int = 0) -> None:
    """Spans as phase, begin, length (ms) and step."""
    phases, starts, lengths, steps = zip(*rows, strict=True)
    columns = [np.array(one, np.int64) for one in (starts, lengths, steps)]
    log.put(rank, phases, columns[0] * MS, columns[1] * MS, columns[2])


def test_busiest_core_stands_for_all_cores() -> None:
    log = SampleLog()
    for moment in range(3):
        log.put(0, moment, ["cpu"] * 3, ["cpu", "cpu0", "cpu1"], np.array([50.0, 10.0 * moment, 90.0]))
    assert log.cores() == 2
    assert log.devices("cpu") == [(0, "cpu")]
    assert log.recent(BUSIEST, "cpu").values.tolist() == [90, 90, 90]
    assert not len(log.recent("gpu", "gpu0").values)


def test_samples_are_bounded_and_cover_the_whole_run() -> None:
    log = SampleLog()
    for moment in range(20_000):
        log.put(0, moment, ["memory"], ["memory"], np.array([float(moment)]))
    recent, whole = log.recent("memory", "memory"), log.whole("memory", "memory")
    assert 4096 <= len(recent.values) <= 8192
    assert recent.values[-1] == 19_999
    assert 1000 <= len(whole.values) <= 2049
    assert whole.values[0] == 0
    assert whole.values[-1] > 19_900
    assert len(np.unique(np.diff(whole.values))) == 1


def test_values_that_are_no_numbers_are_left_out_and_devices_bounded() -> None:
    log = SampleLog()
    log.put(0, 1, ["gpu", "gpu"], ["gpu0", "gpu1"], np.array([np.nan, 5.0]))
    assert len(log.recent("gpu", "gpu0").values) == 0
    log.put(0, 2, ["x"] * 5000, [f"d{n}" for n in range(5000)], np.zeros(5000))
    assert len(log.devices("x")) <= 1024


def test_phases_within_phases_count_once_and_the_open_step_waits() -> None:
    log = SpanLog()
    put(log, [("data", 0, 10, 0), ("forward", 10, 20, 0), ("checkpoint", 2, 6, 0), ("data", 30, 5, 1)])
    log.settle()
    times = log.times()
    assert times.step.tolist() == [0]
    assert times.of("checkpoint").tolist() == [0.006]
    assert times.of("forward", "data").tolist() == pytest.approx([0.024])
    assert times.besides("forward").tolist() == pytest.approx([0.010])
    assert log.first_ns == 0


def test_phase_around_whole_steps_is_left_out() -> None:
    log = SpanLog()
    for step in range(4):
        put(log, [("forward", 10 * step, 10, step)])
        log.settle()
    put(log, [("epoch", 0, 40, 0), ("forward", 40, 10, 4)])
    log.settle()
    assert log.times().step.tolist() == [0, 1, 2, 3]
    assert log.times().besides().tolist() == pytest.approx([0.01] * 4)


def test_training_that_goes_back_to_a_checkpoint_goes_on() -> None:
    log = SpanLog()
    for at, step in enumerate([5, 6, 7, 3, 4, 5]):
        put(log, [("forward", 10 * at, 10, step)])
        log.settle()
    assert log.times().step.tolist() == [5, 6, 7, 3, 4]


def test_many_steps_and_phases_are_bounded() -> None:
    log = SpanLog()
    for first in range(0, 6000, 100):
        put(log, [(f"phase{step % 40}", 10 * step, 10, step) for step in range(first, first + 100)])
        log.settle()
    times = log.times()
    assert len(times) == 2048
    assert len(times.names) == 12
    assert times.names[-1] == "other"
    assert times.besides().tolist() == pytest.approx([0.01] * 2048)
    assert len(log.spans().start_ns) <= 16_384


def test_ranks_are_kept_apart() -> None:
    log = SpanLog()
    for rank in (1, 3):
        put(log, [("forward", 0, rank, 0), ("forward", rank, 1, 1)], rank)
    log.settle()
    assert log.ranks == [1, 3]
    assert [log.times(rank).of("forward").tolist() for rank in (1, 3)] == [[0.001], [0.003]]
    assert log.times().of("forward").tolist() == [0.001]
    assert not len(log.times(7))


def test_nothing_is_seen_of_the_time_after_the_checked_step(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run").steps(healthy(300)).load({("memory", "memory"): [5.0] * 24})
    feed = Feed.of(made.path, [Needs(activity=True)])
    seen = {}
    for step in feed.steps(last=True):
        times = feed.view.phase_times()
        seen[step] = int(times.step[-1]) if len(times) else -1
        assert seen[step] <= step
        newest = feed.view.samples("memory", "memory").time_ns
        assert (
            not len(newest)
            or newest[-1] <= made.zero_ns + int((step + 1) * sum(USUAL.values()) * MS)
            or step == 299
        )
    assert seen[150] > 100
    assert seen[299] == 298


def test_a_clock_that_was_set_back_before_training_was_taken_up_again_hides_nothing(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run").steps(healthy(300)).load({("memory", "memory"): [5.0] * 24})
    made.now_ns[0] -= 3600 * 10**9
    made.zero_ns = made.now_ns[0]
    made.steps(healthy(300)).load({("memory", "memory"): [6.0] * 24})
    feed = Feed.of(made.path, [Needs(activity=True)])
    for step in feed.steps(last=True):
        if step == 590:
            assert feed.view.phase_times().step[-1] > 500
            seen = feed.view.samples("memory", "memory")
            assert (seen.values[-20:] == 6.0).all()
            assert (np.diff(seen.time_ns) >= 0).all()
            assert seen.time_ns[-1] < made.zero_ns + 3700 * 10**9


def test_view_without_activity_is_empty(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run").steps(healthy(3))
    feed = Feed.of(made.path, [Needs()])
    assert list(feed.steps(last=True)) == [0, 1, 2]
    view: RunView = feed.view
    assert view.activity is None
    assert (len(view.phase_times()), len(view.spans().step), view.loaders) == (0, 0, ())
    assert not len(view.samples("cpu", "cpu").values)


def test_step_is_checked_again_with_what_came_after_it(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run").steps(healthy(5))
    feed = Feed.of(
        made.path,
        [Needs(activity=True)],
    )
    assert list(feed.steps(last=True)) == [0, 1, 2, 3, 4]
    made.load({("memory", "memory"): [5.0] * 2})
    assert list(feed.steps(last=True)) == [4]
    assert list(feed.steps(last=True)) == []
    assert len(feed.view.samples("memory", "memory").values) == 2


def test_odd_times_and_lengths_do_no_harm(tmp_path: Path) -> None:
    folder = create_run(tmp_path / "run")
    writer, system = RankWriter(folder.path, rank=0), SystemWriter(folder.path, rank=0)
    names = ["forward"] * 4
    writer.append_spans(names, names, [0, 2**62, -5, 10], [-7, 5, 0, 2**40], [0, 1, -1, 2**40])
    system.append(2**62, ["gpu"], ["gpu0"], [float("inf")])
    system.append(-5, ["gpu"], ["gpu0"], [50.0])
    writer.close()
    system.close()
    feed = ActivityFeed(folder.path)
    feed.move_to({0: 10**18})
    assert feed.finish()
    assert feed.activity.samples.recent("gpu", "gpu0").values.tolist() == [50.0]
    assert np.isfinite(feed.activity.spans.times().besides()).all()
