"""Views of where the time goes: steps, phases, data loading, cores, ranks."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.analysis.loading import advise
from tdbg_lab.run import open_run
from tdbg_lab.store import SystemWriter, create_run
from tdbg_lab.store.loaders import LoaderFacts
from tdbg_lab.views import call_view
from tests.views.timed import MS, START_NS, made

if TYPE_CHECKING:
    from tdbg_lab.run import Run


def caption(run: Run, view: str, **params) -> str:
    return call_view(run, view, params).layout.meta["tdbg"]["caption"]


def test_phases_give_each_its_share_and_inner_ones_their_own(tmp_path):
    run = made(tmp_path / "run", 100, extra=("checkpoint", 100, {50}))
    assert "data 54.5%" in caption(run, "phases")
    assert "checkpoint 9.1%" in caption(run, "phases")
    assert "waits for data 54.5%" in caption(run, "phases")


def test_views_of_a_range_are_of_what_began_in_it(tmp_path):
    run = made(tmp_path / "run", 100, extra=("checkpoint", 100, {50}))
    zero = (START_NS - run.info.created_ns) / 1e9
    slow = [zero + 0.4995, zero + 0.6095]  # step 50, which takes 110 ms instead of 10
    told = caption(run, "phases", range=slow)
    assert told.startswith("110 ms from ")
    assert "checkpoint 90.9%" in told
    assert "checkpoint" not in caption(run, "phases", range=[zero, zero + 0.49])
    assert "checkpoint 9.1%" in caption(run, "phases", range=[zero, None])
    assert "110" in caption(run, "step_times", range=[zero + 0.4995, zero + 0.7])
    assert "54.5%" not in caption(run, "data_loading", range=[None, zero + 0.49])
    for view in ("phases", "step_times", "data_loading"):
        assert caption(run, view, range=[zero + 50, zero + 60]).startswith("No step was timed in this range.")


@pytest.mark.parametrize("show", ["bars", "pie", "time", "steps"])
def test_phases_draw_what_is_there(tmp_path, show):
    run = made(tmp_path / "run", 40)
    figure = call_view(run, "phases", {"show": show})
    if show == "pie":
        assert dict(zip(figure.data[0].labels, figure.data[0]["values"], strict=True))[
            "data"
        ] == pytest.approx(0.6)
    elif show == "bars":
        assert figure.data[0].x[-1] == pytest.approx(60)
    elif show == "time":
        assert np.sum([trace.y for trace in figure.data], axis=0) == pytest.approx(100)
    else:
        assert list(figure.data[0].x) == list(range(10, 40))
        assert {trace.name: trace.y[0] for trace in figure.data}["forward"] == pytest.approx(2)


def test_step_times_mark_outliers_and_name_their_phase(tmp_path):
    run = made(tmp_path / "run", 200, extra=("checkpoint", 90, {50, 150}))
    figure = call_view(run, "step_times")
    (marks,) = (trace for trace in figure.data if trace.type == "scatter")
    assert sorted(marks.customdata) == [50, 150]
    assert set(marks.text) == {", mostly checkpoint"}
    for step, (low, high) in zip(marks.customdata, marks.meta["moments"], strict=True):
        inside = caption(run, "phases", range=[low, high])
        assert "checkpoint" in inside, f"a click on step {step} shows what it did"
    assert marks.x[0] == pytest.approx(100)
    said = figure.layout.meta["tdbg"]["caption"]
    assert "median 10 ms" in said
    assert "2 outliers, mostly in checkpoint" in said


@pytest.mark.parametrize(("view", "most", "ranks"), [("step_times", 8, 9), ("ranks", 128, 129)])
def test_ranks_beyond_the_most_that_are_drawn_are_counted(tmp_path, view, most, ranks):
    run = made(tmp_path / "run", 2, ranks=ranks)
    assert f"The first {most} of {ranks} ranks are drawn." in caption(run, view)


def test_step_times_leave_room_for_usual_steps_beside_one_that_takes_very_long(tmp_path):
    run = made(tmp_path / "run", 200, extra=("checkpoint", 9_000, {50}))
    figure = call_view(run, "step_times")
    assert figure.layout.xaxis.type == "log"
    (bars,) = (trace for trace in figure.data if trace.type == "bar")
    assert sum(bars.y) == 198, "all but the outlier, and the last, whose end is not known"
    assert (np.asarray(bars.width) > 0).all()
    (marks,) = (trace for trace in figure.data if trace.type == "scatter")
    assert marks.x[0] == pytest.approx(9_010)
    assert [round(10**one.x) for one in figure.layout.annotations] == [10, 10]
    assert call_view(made(tmp_path / "even", 50), "step_times").layout.xaxis.type == "linear"


def test_step_times_of_even_steps_have_no_outlier(tmp_path):
    assert "no step is longer" in caption(made(tmp_path / "run", 50), "step_times")


def test_data_loading_says_what_workers_would_gain(tmp_path):
    run = made(tmp_path / "run", 60, loaders=[LoaderFacts(num_workers=0, batch_size=32)])
    said = caption(run, "data_loading")
    assert "Steps wait 6 ms for data on average, 60.0% of their time" in said
    assert "the loader has 0 workers, batches of 32" in said
    assert "num_workers=2 would make steps about 60.0% shorter." in said


def test_data_loading_says_how_busy_workers_are_and_how_long_copies_take(tmp_path):
    run = made(tmp_path / "run", 60, loaders=[LoaderFacts(num_workers=2, batch_size=32)])
    writer = SystemWriter(run.path)
    for tick in range(5):
        writer.append(START_NS + tick * MS, ["workers", "worker_cpu"], ["process"] * 2, [2.0, 150.0])
    writer.close()
    place = run.path / "rank-00000" / "profile" / "step-000000000004"
    place.mkdir(parents=True)
    facts = {"first_step": 4, "last_step": 5, "start_ns": START_NS, "duration_ns": 1, "problems": []}
    (place / "window.json").write_text(json.dumps(facts))
    rows = [{"name": "Memcpy HtoD (Pinned -> Device)", "total_us": 3000}, {"name": "gemm", "total_us": 9}]
    (place / "digest.json").write_text(json.dumps({"kernels": rows}))
    run.refresh()
    said = caption(run, "data_loading")
    assert "; its workers compute 75.0% of the time; copies to the GPU take 1.5 ms a step" in said


@pytest.mark.parametrize(("first", "cut"), [(1000, True), (10, False)])
def test_a_first_step_that_takes_many_times_longer_does_not_set_the_axis(tmp_path, first, cut):
    run = made(tmp_path / "run", 40, extra=("other", first, {0}))
    figure = call_view(run, "data_loading", {})
    said = figure.layout.meta["tdbg"]["caption"]
    assert said.endswith(" 1 step is higher than the axis.") is cut
    assert figure.layout.yaxis.range == ((0.0, pytest.approx(1.3 * 6)) if cut else None)


def test_data_loading_that_is_quick_is_left_alone(tmp_path):
    run = made(tmp_path / "run", 60, data_of_rank_0=-5.9)
    assert caption(run, "data_loading").endswith("data loading does not hold training up.")


@pytest.mark.parametrize(
    ("wait", "busy", "workers", "cores", "expected"),
    [
        (6, 4, 0, None, (2, 0.6)),
        (6, 4, 0, 1, (1, 0.4)),
        (6, 2, 2, 64, (8, 0.75)),
        (0.1, 4, 0, None, None),
        (6, 4, 4, 4, None),
        (0, 0, 0, 4, None),
    ],
)
def test_advice_is_the_least_number_of_workers_that_keeps_up(wait, busy, workers, cores, expected):
    found = advise(wait, busy, workers=workers, cores=cores)
    assert (found and (found.workers, pytest.approx(found.gain))) == expected


def test_ranks_name_the_slow_one_and_its_phase(tmp_path):
    run = made(tmp_path / "run", 50, ranks=3, data_of_rank_1=4, backward_of_rank_0=4, backward_of_rank_2=4)
    said = caption(run, "ranks")
    assert said.startswith("Rank 1 is the slow one: the others wait 4 ms a step for it")
    assert "its data takes 4 ms longer" in said


def test_ranks_of_equal_speed_have_no_slow_one(tmp_path):
    assert "at about the same time" in caption(made(tmp_path / "run", 20, ranks=2), "ranks")


def test_cores_are_rows_in_order_and_idle_ones_are_counted(tmp_path):
    folder = create_run(tmp_path / "run")
    writer = SystemWriter(folder.path)
    devices = ["cpu", *(f"cpu{n}" for n in range(12)), "gpu0"]
    for tick in range(50):
        loads = [50.0, *([95.0] * 2), *([1.0] * 10), 40.0]
        writer.append(START_NS + tick * 10**9, ["cpu"] * 13 + ["gpu"], devices, loads)
    writer.close()
    figure = call_view(open_run(folder.path), "cores")
    assert list(figure.data[0].y) == ["gpu0", *(f"cpu{n}" for n in range(12))]
    assert np.shape(figure.data[0].z) == (13, 50)
    said = figure.layout.meta["tdbg"]["caption"]
    assert said == "1 GPU at 40% on average; 12 cores at 16.7% on average, 10 idle, 2 at their limit."


@pytest.mark.parametrize("view", ["phases", "step_times", "data_loading"])
def test_views_of_a_long_run_are_quick_beside_reading_it(tmp_path, view):
    run = made(tmp_path / "run", 20_000)
    run.spans()
    reading = _cost(run.spans)
    drawing = _cost(lambda: call_view(run, view, {"window_s": 31_536_000}))
    assert drawing < 25 * reading + 0.2


def _cost(function) -> float:
    started = time.process_time()
    function()
    return time.process_time() - started
