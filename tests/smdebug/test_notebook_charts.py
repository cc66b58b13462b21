"""Charts of the predecessor's notebooks, on a run whose numbers are known."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("plotly")

from tdbg_lab.smdebug.exceptions import NoMoreProfilerData, SMDebugValueError
from tdbg_lab.smdebug.profiler.analysis.notebook_utils import (
    Heatmap,
    MetricsHistogram,
    StepHistogram,
    StepTimelineChart,
    TimelineCharts,
    TrainingJob,
)
from tdbg_lab.store import RankWriter, SystemWriter, create_run

START = 1_700_000_000 * 10**9
STEPS = 20


@pytest.fixture
def writers(tmp_path):
    """A run that goes on: steps of 30 ms (one of 90), two cores and a GPU read every 10 ms."""
    folder = create_run(tmp_path / "run")
    spans, system = RankWriter(folder.path), SystemWriter(folder.path)
    begin = START
    for step in range(STEPS + 1):
        lengths = [10_000_000, 80_000_000 if step == 7 else 20_000_000]
        names = ["forward", "backward"]
        spans.append_spans(names, names, [begin, begin + lengths[0]], lengths, [step, step])
        begin += sum(lengths)
    _read(system, range(60))
    yield folder, spans, system
    spans.close()
    system.close()


def _read(system, readings):
    for at in readings:
        devices, loads = ["cpu", "cpu0", "cpu1", "gpu0"], [50.0, 25.0, 75.0, float(at % 10)]
        system.append(START + at * 10_000_000, ["cpu", "cpu", "cpu", "gpu"], devices, loads)


@pytest.fixture
def job(writers):
    return TrainingJob(writers[0].path)


def test_metrics_are_counted_in_percent_by_device(job):
    chart = MetricsHistogram(job.get_systems_metrics_reader())
    chart.plot(select_dimensions=["CPU"], select_events=["total", "cpu0"])
    assert [note.text for note in chart.figure.layout.annotations] == [
        "cpu0 CPUUtilization-nodeid:algo-1",
        "total CPUUtilization-nodeid:algo-1",
    ]
    quarter, half = chart.figure.data
    assert (quarter.x[np.argmax(quarter.y)], max(quarter.y)) == (25.0, 60)
    assert (half.x[np.argmax(half.y)], max(half.y)) == (51.0, 60)
    chart.plot(starttime=(START + 300_000_000) // 1000, select_dimensions=["GPU"], show_workers=False)
    (gpu,) = chart.figure.data
    assert sum(gpu.y) == 30
    assert chart.figure.layout.annotations[0].text == "gpu0 GPUUtilization"


def test_steps_and_phases_of_a_run_have_the_documented_names(job):
    chart = StepHistogram(job.get_framework_metrics_reader())
    for show_workers in (True, False):
        chart.plot(show_workers=show_workers)
        node = "-nodeid:0-algo-1" if show_workers else ""
        names = ["Step:ModeKeys.TRAIN", "Backward(post-forward)", "Forward"]
        assert list(chart.step_metrics) == [f"{name}{node}" for name in names]
    step, backward, forward = chart.figure.data
    assert (sum(step.y), sum(backward.y), sum(forward.y)) == (STEPS - 1, STEPS, STEPS + 1)
    assert forward.x[np.argmax(forward.y)] == pytest.approx(10.0, abs=0.5)
    assert "1 took longer" in step.hovertemplate


def test_step_timeline_shows_the_slow_step_and_grows(writers, job):
    chart = StepTimelineChart(job.get_framework_metrics_reader(), width=5)
    (line,) = chart.figure.data
    assert int(np.argmax(line.y)) == 7
    assert max(line.y) == pytest.approx(90.0)
    first, last = chart.figure.layout.xaxis.range
    assert last - first == pytest.approx(4 * 0.03)
    writers[1].append_spans(["forward"], ["forward"], [START + 10**9], [10_000_000], [STEPS + 1])
    chart.update_data((START + 2 * 10**9) // 1000)
    assert len(chart.figure.data[0].y) == len(line.y) + 1


def test_heatmap_has_a_row_for_each_device_and_grows(writers, job):
    chart = Heatmap(job.get_systems_metrics_reader(), select_events=[r"\d$"], plot_height=200)
    (image,) = chart.figure.data
    assert [name.split()[-1] for name in image.y] == ["cpu0", "cpu1", "gpu0"]
    assert np.nanmean(image.z, axis=1).tolist() == pytest.approx([25.0, 75.0, 4.5])
    assert chart.figure.layout.height == 200
    _read(writers[2], range(60, 70))
    chart.update_data((START + 10**9) // 1000)
    assert len(chart.rows[image.y[0]].values) == 70


def test_timelines_answer_which_phases_ran_meanwhile(job):
    chart = TimelineCharts(
        job.get_systems_metrics_reader(), job.get_framework_metrics_reader(), select_events=["total", "gpu"]
    )
    cpu, gpu = chart.figure.data
    assert (cpu.yaxis, gpu.yaxis) == ("y", "y2")
    assert set(cpu.y) == {50.0}
    assert (cpu.showlegend, gpu.showlegend) == (True, True)
    took = chart.find_time_annotations(range(30))  # 0 to 290 ms: eight steps begin, seven are followed
    assert took == pytest.approx(
        {
            "Backward(post-forward)-nodeid:0-algo-1": 7 * 0.02 + 0.08,
            "Step:ModeKeys.TRAIN-nodeid:0-algo-1": 7 * 0.03,
            "Forward-nodeid:0-algo-1": 8 * 0.01,
        }
    )
    assert list(took.values()) == sorted(took.values(), reverse=True)
    figure = chart.plot_detailed_profiler_data([0, 29])
    assert {bar.y[0] for bar in figure.data} == set(took)
    with pytest.raises(SMDebugValueError, match=r"\[400\] has no readings: expected indexes from 0 to 59"):
        chart.find_time_annotations([400])


def test_selection_that_fits_nothing_and_wrong_patterns_are_said(writers, job):
    chart = MetricsHistogram(job.get_systems_metrics_reader())
    chart.plot(select_dimensions=["Network"])
    assert "Nothing fits the selection" in chart.figure.layout.annotations[0].text
    with pytest.raises(SMDebugValueError, match=r"'\(' is no regular expression"):
        chart.plot(select_dimensions=["("])
    with pytest.raises(SMDebugValueError, match="jobs of SageMaker are not looked up"):
        TrainingJob("my-training-job", region="eu-central-1")
    other = create_run(writers[0].path.parent / "other")
    other.set_status("finished")
    with pytest.raises(NoMoreProfilerData):
        TrainingJob(other.path).wait_for_sys_profiling_data_to_be_available()
