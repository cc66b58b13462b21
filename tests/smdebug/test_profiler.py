"""Profiler data of a run, through the predecessor's readers and frames."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tdbg_lab.smdebug.profiler import (
    LocalAlgorithmMetricsReader,
    LocalSystemMetricsReader,
    S3AlgorithmMetricsReader,
    S3SystemMetricsReader,
)
from tdbg_lab.smdebug.profiler.analysis.utils.merge_timelines import MergedTimeline, MergeUnit
from tdbg_lab.smdebug.profiler.analysis.utils.pandas_data_analysis import (
    PandasFrameAnalysis,
    Resource,
    StatsBy,
)
from tdbg_lab.smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame
from tdbg_lab.smdebug.profiler.analysis.utils.pytorch_dataloader_analysis import PT_dataloader_analysis
from tdbg_lab.smdebug.profiler.utils import TimeUnits
from tdbg_lab.store import RankWriter, SystemWriter, create_run
from tests.smdebug.predecessor import answers_of_both, needs_predecessor
from tests.smdebug.profiler_files import RECORDED

START = 1_700_000_000 * 10**9


@pytest.fixture
def run(tmp_path):
    """Two steps of 10 ms forward and 20 ms backward; CPU and GPU read every 10 ms."""
    folder = create_run(tmp_path / "run")
    writer = RankWriter(folder.path)
    for step in range(2):
        begin = START + step * 30_000_000
        writer.append_spans(
            ["forward", "backward"],
            ["forward", "backward"],
            [begin, begin + 10_000_000],
            [10_000_000, 20_000_000],
            [step, step],
        )
    writer.close()
    system = SystemWriter(folder.path)
    for reading, (cpu, gpu) in enumerate([(5, 95), (50, 95), (95, 40), (100, 5), (20, 99), (0, 100)]):
        system.append(START + reading * 10_000_000, ["cpu", "gpu"], ["cpu", "gpu0"], [cpu, gpu])
    system.close()
    folder.set_status("finished")
    return folder.path


def test_system_reader_gives_readings_between_two_times(run):
    reader = LocalSystemMetricsReader(run)
    events = reader.get_events(START // 1000, START // 1000 + 15_000)
    assert [(one.type, one.dimension, one.value) for one in events] == [
        ("cpu", "CPUUtilization", 5.0),
        ("gpu", "GPUUtilization", 95.0),
        ("cpu", "CPUUtilization", 50.0),
        ("gpu", "GPUUtilization", 95.0),
    ]
    seconds = reader.get_events(START / 1e9, START / 1e9 + 1, unit=TimeUnits.SECONDS, event_type="gpu")
    assert len(seconds) == 6
    assert reader.get_timestamp_of_first_available_file() == START // 1000


def test_algorithm_reader_gives_intervals_of_steps(run):
    events = LocalAlgorithmMetricsReader(run).get_events_by_step(1, 2)
    assert [(one.event_name, one.duration, one.event_args) for one in events] == [
        ("forward", 10_000, {"step_num": 1}),  # us, as everywhere in this library
        ("backward", 20_000, {"step_num": 1}),
    ]
    first, last = events[0].start_time, events[-1].end_time
    assert START // 1000 <= first < last
    reader = LocalAlgorithmMetricsReader(run)
    names = [one.event_name for one in reader.get_events(first + 1, last)]
    assert names == ["forward", "backward"]
    assert [one.event_name for one in reader.get_events(first + 1, first + 2)] == ["forward"]
    assert [one.event_name for one in reader.get_events(first, first)] == ["backward", "forward"]
    assert reader.get_events(last + 1, last + 9) == reader.get_events(0, first - 40_000) == []
    assert reader.get_events_by_step(7, 9) == []
    assert events[0].event_phase == "forward"
    assert json.loads(events[0].to_json())["dur"] == 10_000


WINDOWS = """
import importlib, json, sys
readers = importlib.import_module(sys.argv[1] + ".algorithm_metrics_reader")
reader = readers.LocalAlgorithmMetricsReader(sys.argv[2])
def told(events):
    return sorted([e.start_time, e.end_time, e.event_name, int(e.event_args["step_num"])] for e in events)
every = told(reader.get_events(0, 2e15))
answers = [every]
for row in every[:: max(1, len(every) // 12)]:
    start, end = row[:2]
    middle = (start + end) // 2
    for window in ((start, end), (middle, middle), (end, end + 1), (start - 1, start)):
        answers.append(told(reader.get_events(*window)))
steps = sorted({row[3] for row in every})
for first, last in zip(steps, steps[1:]):
    answers.append(told(reader.get_events_by_step(first, last)))
print("answers", json.dumps(answers))
"""


@needs_predecessor
def test_windows_of_the_algorithm_reader_are_the_predecessors(tmp_path):
    shutil.copytree(RECORDED / "pevents", tmp_path / "framework" / "pevents")
    there, here = answers_of_both(WINDOWS, "smdebug.profiler", str(tmp_path))
    assert here == there


def test_frames_hold_what_goes_on_between_two_times_and_only_what_is_wanted(run):
    frames = PandasFrame(run)
    us = START // 1000
    system, framework = frames.get_profiler_data_by_time(us + 12_000, us + 31_000)
    assert framework["framework_metric"].tolist() == ["backward", "forward"]
    assert len(system) == 4
    system, framework = frames.get_profiler_data_by_time(us, us + 60_000, get_system_metrics=False)
    assert (len(system), len(framework)) == (0, 4)
    system, framework = frames.get_profiler_data_by_time(us, us + 60_000, get_framework_metrics=False)
    assert (len(system), len(framework)) == (12, 0)
    printed = frames.get_all_framework_metrics()["start_time"].tolist()[1]
    during = frames.get_framework_metrics_by_timesteps([printed])
    assert during["framework_metric"].tolist() == ["forward", "backward"]
    with pytest.raises(ValueError, match="'noon' is no time"):
        frames.get_framework_metrics_by_timesteps(["noon"])


def test_readers_of_a_profiler_folder_give_what_is_in_it(tmp_path):
    folder = tmp_path / "system" / "incremental" / "2026112111"
    folder.mkdir(parents=True)
    rows = [
        ("cpu", "cpu0", "CPUUtilization"),
        ("cpu", "cpu1", "CPUUtilization"),
        ("i/o", "disk", "Algorithm"),
    ]
    (folder / "1795260900.algo-1.json").write_text(
        "".join(
            json.dumps(
                {
                    "Type": kind,
                    "Name": name,
                    "Dimension": dimension,
                    "Value": 5.0 * index,
                    "NodeId": "algo-1",
                    "Timestamp": 1795260930.5,
                }
            )
            + "\n"
            for index, (kind, name, dimension) in enumerate(rows)
        )
    )
    events = LocalSystemMetricsReader(tmp_path).get_events(0, 2e15)
    assert sorted((one.type, one.name, one.dimension, one.value) for one in events) == [
        ("cpu", "cpu0", "CPUUtilization", 0.0),
        ("cpu", "cpu1", "CPUUtilization", 5.0),
        ("i/o", "disk", "Algorithm", 10.0),
    ]
    assert len(LocalSystemMetricsReader(tmp_path).get_events(0, 2e15, event_type="cpu")) == 2
    assert PandasFrame(tmp_path).get_all_system_metrics()["type"].tolist().count("i/o") == 1


def test_frames_have_the_documented_columns(run):
    frames = PandasFrame(run)
    system = frames.get_all_system_metrics(selected_system_metrics=["^gpu"])
    assert list(system) == [
        "timestamp",
        "timestamp_us",
        "value",
        "system_metric",
        "dimension",
        "nodeID",
        "type",
    ]
    assert set(system["system_metric"]) == {"gpu0"}
    framework = frames.get_all_framework_metrics(["back"])
    assert {"start_time_us", "end_time_us", "framework_metric", "step", "process"} <= set(framework)
    assert framework["step"].tolist() == [0, 1]
    system, framework = frames.get_profiler_data_by_step(1, 2)
    assert framework["framework_metric"].tolist() == ["forward", "backward"]
    assert system["timestamp_us"].min() >= framework["start_time_us"].min()


def test_analysis_answers_about_steps_and_devices(run):
    frames = PandasFrame(run)
    analysis = PandasFrameAnalysis(frames.get_all_system_metrics(), frames.get_all_framework_metrics())
    whole = analysis.get_step_statistics(by=StatsBy.TRAINING_PHASE).set_index("training_phase")
    assert whole.loc["Step:ModeKeys.TRAIN", "duration_mean_us"] == pytest.approx(30_000)
    steps = analysis.get_step_statistics(by=StatsBy.PROCESS).set_index("process")
    assert steps.loc["backward", "duration_mean_us"] == pytest.approx(20_000)
    assert steps.loc["forward", "duration_p95_us"] == pytest.approx(10_000)
    job = analysis.get_job_statistics()
    assert (job["job_duration"], job["training_loop_duration"]) == (60_000, 60_000)
    assert job["initialization_%"] == job["finalization_%"] == 0.0
    assert "job_duration" in repr(job)
    assert "<table" in job._repr_html_()
    usage = analysis.get_device_usage_stats().set_index("type")
    assert usage.loc["cpu"].drop("nodeID").tolist() == [2, 2, 2]
    assert usage.columns.tolist() == ["nodeID", (0, 10), (10, 90), (90, 100)]
    stats = analysis.get_utilization_stats(Resource.GPU)
    assert stats["utilization_max"].tolist() == [100.0]
    phases = analysis.get_utilization_stats(Resource.CPU, by=StatsBy.TRAINING_PHASE, phase="forward")
    assert "Between forward and forward" in set(phases["Training_phase"])
    assert analysis.get_training_phase_intervals("forward")["phase"].tolist() == [
        "Before forward",
        "forward",
        "Between forward and forward",
        "forward",
        "After forward",
    ]
    assert analysis.get_training_phase_intervals("none of them") is None
    with pytest.raises(ValueError, match="by is 'phase'"):
        analysis.get_step_statistics(by="phase")
    with pytest.raises(ValueError, match="expected pairs"):
        analysis.get_device_usage_stats(utilization_ranges=[(1, 2, 3)])


def test_a_job_begins_with_its_first_step_where_readings_come_later(run):
    frames = PandasFrame(run)
    system, framework = frames.get_all_system_metrics(), frames.get_all_framework_metrics()
    late = system[system["timestamp_us"] > framework["start_time_us"].min()]
    job = PandasFrameAnalysis(late, framework).get_job_statistics()
    assert job["initialization"] == 0
    assert job["training_loop_%"] == 100.0
    early = system.assign(timestamp_us=system["timestamp_us"] - 30_000)
    job = PandasFrameAnalysis(early, framework).get_job_statistics()
    assert (job["initialization"], job["job_duration"]) == (30_000, 90_000)


def test_analysis_of_a_job_that_left_little_says_little():
    system = pd.DataFrame(columns=["timestamp", "timestamp_us", "value", "dimension", "nodeID", "type"])
    system["type"] = system["type"].astype(str)
    columns = [
        "start_time",
        "end_time",
        "start_time_us",
        "end_time_us",
        "framework_metric",
        "step",
        "process",
    ]
    nothing = PandasFrameAnalysis(system, pd.DataFrame(columns=columns).astype({"framework_metric": str}))
    assert nothing.get_job_statistics() == {}
    assert len(nothing.get_utilization_stats(by=StatsBy.TRAINING_PHASE)) == 0
    assert len(nothing.get_device_usage_stats()) == 0
    assert nothing.get_training_phase_intervals() is None


ANALYSED = """
import importlib, json, sys
utils = sys.argv[1] + ".profiler.analysis.utils."
frames = importlib.import_module(utils + "profiler_data_to_pandas").PandasFrame(sys.argv[2])
analysis = importlib.import_module(utils + "pandas_data_analysis")
system, framework = frames.get_all_system_metrics(), frames.get_all_framework_metrics()
job = analysis.PandasFrameAnalysis(system, framework)
cpu, gpu, phase = analysis.Resource.CPU, analysis.Resource.GPU, analysis.StatsBy.TRAINING_PHASE
def told(frame):
    return [[str(name) for name in frame.columns], json.loads(frame.round(3).to_json(orient="values"))]
def lengths(frame):
    return [row[2] for row in told(frame)[1]], (frame["end_time_us"] - frame["start_time_us"]).tolist()
facts = job.get_job_statistics()
kept = "start_time end_time job_duration training_loop_start training_loop_end finalization finalization_%"
print("answers", json.dumps([
    [str(facts[name]) for name in kept.split()],
    told(job.get_step_statistics()),
    told(job.get_step_statistics(by=analysis.StatsBy.FRAMEWORK_METRICS)),
    told(job.get_utilization_stats()),
    told(job.get_utilization_stats(resource=[gpu])),
    told(job.get_utilization_stats(resource=cpu, by=phase)),
    told(job.get_utilization_stats(resource=cpu, by=phase, phase="Step:ModeKeys.TRAIN")),
    told(job.get_device_usage_stats()),
    told(job.get_device_usage_stats(device=gpu, utilization_ranges=[(50, 100)])),
    lengths(job.get_training_phase_intervals()),
]))
"""


@needs_predecessor
def test_analysis_gives_the_predecessors_tables(tmp_path):
    shutil.copytree(RECORDED / "pevents", tmp_path / "framework" / "pevents")
    path = tmp_path / "system" / "incremental" / "2026112111" / "1795260900.algo-1.json"
    path.parent.mkdir(parents=True)
    devices = [("cpu", "cpu0", 10.0, 1.0), ("cpu", "cpu1", 90.0, -1.0), ("gpu", "gpu0", 0.0, 5.0)]
    with path.open("w") as file:
        for reading in range(20):
            for kind, name, first, slope in devices:
                event = {"Type": kind, "Name": name, "Dimension": f"{kind.upper()}Utilization"}
                event |= {"Value": first + slope * reading, "NodeId": "algo-1"}
                file.write(json.dumps({**event, "Timestamp": 1795260931.9 + reading / 20}) + "\n")
    there, here = answers_of_both(ANALYSED, "smdebug", str(tmp_path))
    assert here == there


def test_readings_of_steps_and_a_plot_of_a_window(run):
    reader = LocalSystemMetricsReader(run)
    assert [one.value for one in reader.get_events_by_step(1, 2, event_type="gpu")] == [5.0, 99.0, 100.0]
    assert reader.get_events_by_step(8, 9) == []
    charts = PT_dataloader_analysis(PandasFrame(run)).plot_the_window(START // 1000, START // 1000 + 60_000)
    assert len(charts.figure.data) > 0
    assert S3SystemMetricsReader(s3_trial_path=run).get_timestamp_of_first_available_file() == START // 1000
    assert len(S3AlgorithmMetricsReader(s3_trial_path=run).get_events(0, 2e15)) == 4


def test_merged_timeline_is_a_chrome_trace(run, tmp_path):
    merged = MergedTimeline(run, output_directory=tmp_path)
    events = json.loads(Path(merged.merge_timeline(0, 2, MergeUnit.STEP)).read_text())
    assert sum(one["ph"] == "X" for one in events) == 4
    assert [one["name"] for one in events if one["ph"] == "i"] == ["gpu0 is 40 % busy", "gpu0 is 5 % busy"]
    path = merged.merge_timeline(START // 1000, START // 1000 + 5_000, sys_metrics_filter={})
    assert all(one["ph"] != "i" for one in json.loads(Path(path).read_text()))


def test_times_are_converted_as_by_the_predecessor():
    from datetime import UTC, datetime

    from tdbg_lab.smdebug.profiler import utils

    moment = datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC)
    us = utils.convert_utc_datetime_to_microseconds(moment)
    assert utils.us_since_epoch_to_human_readable_time(us) == "2026-01-31T12:00:00:250000"
    assert utils.ns_since_epoch_to_human_readable_time(us * 1000) == "2026-01-31T12:00:00:250000"
    assert utils.convert_utc_datetime_to_nanoseconds(moment) == us * 1000
    assert utils.convert_utc_timestamp_to_microseconds(us / 1e6, TimeUnits.SECONDS) == us
    assert utils.convert_utc_timestamp_to_seconds(us) == us // 10**6
    assert utils.convert_utc_timestamp_to_nanoseconds(2, TimeUnits.MILLISECONDS) == 2_000_000


def test_profiler_and_trials_need_no_torch():
    code = (
        "import sys, tdbg_lab.smdebug.profiler, tdbg_lab.smdebug.trials, tdbg_lab.smdebug.rules;"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
