from __future__ import annotations

import numpy as np
import pytest

from tdbg_lab.analysis.spans import Bars, merge_narrow, side_by_side
from tdbg_lab.records import RuleState, RuleStatus
from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, SystemWriter, create_run
from tdbg_lab.store.findings import write_rule_states
from tdbg_lab.store.machines import MachineFacts, write_machine
from tdbg_lab.views import call_view


def test_timeline_bars_add_up_to_the_recorded_time(plain):
    figure = call_view(plain, "timeline", {"window_s": 3600, "n_out": 4000})
    spans = plain.spans()
    for phase in ("data", "forward", "backward", "optimizer"):
        bars = next(trace for trace in figure.data if trace.name == phase)
        mine = spans[spans["phase"] == phase]
        np.testing.assert_allclose(np.nansum(bars.customdata), mine["duration_ns"].sum() / 1e6, rtol=1e-6)
        words = [each for each in bars.text[0] if each]
        assert sum(int(each.split()[0]) if " span" in each else 1 for each in words) == len(mine)
        assert len(words) == np.isfinite(bars.z).sum()


def test_timeline_keeps_everything_on_one_x_axis(plain):
    figure = call_view(plain, "timeline")
    assert {trace.xaxis for trace in figure.data} <= {None, "x"}
    assert figure.layout.meta["tdbg"]["axis"] == "time"
    assert figure.layout.meta["tdbg"]["time_zero_ns"].isdigit()


def test_timeline_marks_findings_where_their_first_step_was(plain):
    figure = call_view(plain, "timeline", {"window_s": 3600})
    (marks,) = (trace for trace in figure.data if trace.name in {"notice", "warning", "critical"})
    seconds = dict(map(tuple, figure.layout.meta["tdbg"]["step_seconds"]))
    assert (marks.name, list(marks.customdata)) == ("warning", [20])
    assert marks.x[0] == pytest.approx(seconds[20], abs=1e-3)
    assert marks.text[0].startswith("Dead ReLU: ")
    row = figure.layout.yaxis.tickvals[figure.layout.yaxis.ticktext.index("findings")]
    assert list(marks.y) == [row]
    before = call_view(plain, "timeline", {"range": [0, seconds[20] - 0.01]})
    assert "findings" not in before.layout.yaxis.ticktext


def test_timeline_opens_on_the_last_minute_and_on_all_of_a_run_that_has_ended(tmp_path):
    folder = create_run(tmp_path / "run")
    writer = SystemWriter(folder.path)
    for second in (0, 100, 200):
        writer.append(folder.info.created_ns + second * 10**9, ["cpu"], ["cpu"], [50.0])
    writer.close()
    run = open_run(folder.path)
    assert call_view(run, "timeline").layout.xaxis.range == pytest.approx((140, 200))
    assert call_view(run, "timeline", {"window_s": 10}).layout.xaxis.range == pytest.approx((190, 200))
    folder.set_status("finished")
    run.refresh()
    assert call_view(run, "timeline").layout.xaxis.range == pytest.approx((0, 200))
    assert call_view(run, "timeline", {"window_s": 10}).layout.xaxis.range == pytest.approx((190, 200))


def test_timeline_range_wins_over_the_window(plain):
    figure = call_view(plain, "timeline", {"range": [0.2, 0.5], "window_s": 1})
    assert tuple(figure.layout.xaxis.range) == (0.2, 0.5)


def test_timeline_leaves_the_digits_of_its_times_to_the_zoom(plain):
    zero_ns = int(call_view(plain, "timeline").layout.meta["tdbg"]["time_zero_ns"])
    begin = (int(plain.spans()["start_ns"].iloc[20]) - zero_ns) / 1e9
    axis = call_view(plain, "timeline", {"range": [begin, begin + 1e-4]}).layout.xaxis
    # A format has so many digits and no more: 3532.2621 and 3532.2622 read alike; nor is it 3.53k.
    assert (axis.tickformat, axis.exponentformat) == (None, "none")


def test_timeline_marks_the_shared_step(plain):
    figure = call_view(plain, "timeline", {"step": 20})
    seconds = dict(map(tuple, figure.layout.meta["tdbg"]["step_seconds"]))
    assert abs(figure.layout.shapes[0].x0 - seconds[20]) < 1e-3


def test_timeline_says_that_the_machine_slept_and_its_clock_was_set(tmp_path):
    folder = create_run(tmp_path / "run")
    writer = SystemWriter(folder.path)
    for second, odd in enumerate([(), ("suspended_s", 7200.0), ("clock_jump_s", -90.0)]):
        metrics, devices, values = ["cpu"], ["cpu"], [50.0]
        if odd:
            metrics, devices, values = [*metrics, odd[0]], [*devices, "clock"], [*values, odd[1]]
        writer.append(folder.info.created_ns + second * 10**9, metrics, devices, values)
    writer.close()
    caption = call_view(open_run(folder.path), "timeline").layout.meta["tdbg"]["caption"]
    assert "the machine was suspended for 2 h; the clock was set back by 90 s" in caption


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (59, "00:59"),
        (3599, "59:59"),
        (3600, "01:00:00"),
        (90_000, "1 day 01:00:00"),
        (200_000, "2 days 07:33:20"),
    ],
)
def test_timeline_says_how_long_after_the_start_it_is_also_after_days(tmp_path, seconds, told):
    folder = create_run(tmp_path / "run")
    writer = SystemWriter(folder.path)
    for second in (0, seconds):
        writer.append(folder.info.created_ns + second * 10**9, ["cpu"], ["cpu"], [50.0])
    writer.close()
    caption = call_view(open_run(folder.path), "timeline").layout.meta["tdbg"]["caption"]
    assert f" s up to {told} after the start" in caption


def test_timeline_says_that_the_sampler_has_ended(tmp_path):
    folder = create_run(tmp_path / "run")
    zero = folder.info.created_ns
    system, rank = SystemWriter(folder.path), RankWriter(folder.path)
    for second in range(200):
        rank.append_spans(["forward"], ["forward"], [zero + second * 10**9], [10**9], [second])
        if second < 50:
            system.append(zero + second * 10**9, ["cpu"], ["cpu"], [50.0])
    system.close()
    rank.close()
    run = open_run(folder.path)
    told = call_view(run, "timeline", {"window_s": 300}).layout.meta["tdbg"]["caption"]
    assert "the machine was no longer sampled in the last 2.52 min: its sampler has ended" in told
    told = call_view(run, "timeline", {"range": [0, 50]}).layout.meta["tdbg"]["caption"]
    assert "sampler" not in told


def test_merge_narrow_loses_no_span_and_stays_small():
    rng = np.random.default_rng(0)
    start = np.sort(rng.uniform(0, 60, 50_000))
    length = rng.exponential(1e-3, 50_000)
    bars = merge_narrow(start, length, np.arange(50_000), 0.1)
    assert bars.spans.sum() == 50_000
    np.testing.assert_allclose(bars.busy.sum(), length.sum())
    assert len(bars.start) <= 2 * 600
    assert (np.diff(bars.start) >= 0).all()
    assert bars.step_first[0] == 0
    assert bars.step_last.max() == 49_999


def test_merge_narrow_leaves_wide_spans_alone():
    bars = merge_narrow(np.array([0.0, 2.0]), np.array([1.0, 3.0]), np.array([0, 1]), 0.1)
    np.testing.assert_array_equal(bars.start, [0, 2])
    np.testing.assert_array_equal(bars.length, [1, 3])


def test_merge_narrow_of_nothing_is_nothing():
    none = np.empty(0)
    assert len(merge_narrow(none, none, np.empty(0, dtype=np.int64), 0.1).start) == 0


def _bars(start: list[float], length: list[float]) -> Bars:
    count = np.ones(len(start), dtype=np.int64)
    return Bars(np.array(start), np.array(length), np.array(length), count, count, count)


def test_side_by_side_shows_gaps_and_what_began_last():
    edges, shown = side_by_side(_bars([0.0, 1.0, 2.0, 9.0], [5.0, 1.0, 1.0, 1.0]), 0.1)
    np.testing.assert_allclose(edges, [0, 1, 2, 3, 5, 9, 10])
    assert shown.tolist() == [0, 1, 2, 0, -1, 3]


def test_side_by_side_makes_every_bar_wide_enough_to_be_seen():
    edges, shown = side_by_side(_bars([0.0, 4.0], [1e-9, 0.0]), 0.5)
    np.testing.assert_allclose(edges, [0, 0.5, 4, 4.5])
    assert shown.tolist() == [0, -1, 1]


def test_side_by_side_of_nothing_is_nothing():
    _, shown = side_by_side(_bars([], []), 0.5)
    assert len(shown) == 0


def test_timeline_draws_a_track_as_one_picture(plain):
    figure = call_view(plain, "timeline", {"window_s": 3600})
    assert not [trace for trace in figure.data if trace.type == "bar"]
    tracks = [trace for trace in figure.data if trace.type == "heatmap"]
    assert {trace.name for trace in tracks} >= {"data", "forward", "backward", "optimizer"}
    for trace in tracks:
        assert trace.z.shape == trace.customdata.shape == (1, len(trace.x) - 1)
        assert (np.diff(trace.x) > 0).all()
        row = figure.layout.yaxis.tickvals[figure.layout.yaxis.ticktext.index(trace.name)]
        assert trace.y[0] < row < trace.y[1]


def test_rules_say_status_and_severity_in_words(plain):
    figure = call_view(plain, "rules")
    rows = list(figure.layout.yaxis.categoryarray)
    assert any("Dead ReLU" in row and "issue found" in row for row in rows)
    assert any("Vanishing gradient" in row and "no issue" in row for row in rows)
    warning = next(trace for trace in figure.data if trace.name == "warning")
    assert warning.base[0] == 20
    assert "1 warning" in figure.layout.meta["tdbg"]["caption"]


def test_rules_say_how_far_they_have_come(tmp_path):
    path = create_run(tmp_path / "run").path
    states = [
        RuleState("begun", RuleStatus.NO_ISSUE, step_checked=1200, cost_ms=3.4),
        RuleState("waits", RuleStatus.IN_PROGRESS),
    ]
    write_rule_states(path, states)
    bars = next(trace for trace in call_view(open_run(path), "rules").data if trace.name == "checked")
    assert {row[1] for row in bars.customdata} == {"checked to step 1,200 in 3 ms", "has checked no step"}


def test_rules_of_which_there_are_many_show_those_that_found_something(tmp_path):
    path = create_run(tmp_path / "run").path
    calm = [RuleState(f"calm_{i}", RuleStatus.NO_ISSUE, step_checked=9) for i in range(40)]
    found = RuleState("found_it", RuleStatus.ISSUE_FOUND, step_checked=9, findings=1)
    write_rule_states(path, [*calm, found])
    figure = call_view(open_run(path), "rules")
    rows = list(figure.layout.yaxis.categoryarray)
    assert len(rows) < 20
    assert not [row for row in rows if "<br>" in row]  # two lines each would overlap
    assert "Found it" in rows[-1]  # the topmost
    assert f"41 rules ({41 - len(rows)} of them not drawn)" in figure.layout.meta["tdbg"]["caption"]


def two_machines(path):
    folder = create_run(path, world_size=3)
    for rank, host in enumerate(("a", "a", "b")):
        writer = RankWriter(folder.path, rank)
        write_machine(writer.path, MachineFacts(host=host))
        begin = folder.info.created_ns + np.arange(4) * 10**9 + rank * 10**8
        writer.append_spans(["forward"] * 4, ["forward"] * 4, begin.tolist(), [5 * 10**7] * 4, list(range(4)))
        writer.close()
    folder.set_status("finished")
    return open_run(folder.path)


@pytest.mark.parametrize(
    ("tracks", "names"),
    [
        ("together", ["forward"]),
        ("machines", ["forward of a", "forward of b"]),
        ("processes", ["forward of rank 0", "forward of rank 1", "forward of rank 2"]),
    ],
)
def test_timeline_keeps_machines_or_processes_apart(tmp_path, tracks, names):
    figure = call_view(two_machines(tmp_path / "run"), "timeline", {"tracks": tracks})
    assert list(figure.layout.yaxis.ticktext) == names
    spent = {trace.name: float(np.nansum(trace.customdata)) for trace in figure.data}
    assert sum(spent.values()) == pytest.approx(3 * 4 * 50, rel=1e-5)
    assert spent[names[-1]] == pytest.approx(12 * 50 if len(names) == 1 else 4 * 50, rel=1e-5)


def test_timeline_of_one_machine_has_nothing_to_keep_apart(plain):
    together = call_view(plain, "timeline")
    for tracks in ("machines", "processes"):
        apart = call_view(plain, "timeline", {"tracks": tracks})
        assert apart.layout.yaxis.ticktext == together.layout.yaxis.ticktext
