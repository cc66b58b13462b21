"""Profiler folders: system metrics, timelines that are closed or still open, profiles of Python code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tdbg_lab.run import list_runs, open_run
from tdbg_lab.store.smdebug.profile import ProfileFolder, is_profile_folder
from tdbg_lab.store.smdebug.timeline import Timeline, phase_of

RECORDED = Path(__file__).parents[2] / "data" / "smdebug" / "profiler"


def sample(
    name: str, value: float, *, kind: str = "cpu", dimension: str = "CPUUtilization", at: float = 0.0
) -> str:
    event = {"Type": kind, "Name": name, "Dimension": dimension, "Value": value, "NodeId": "algo-2"}
    return json.dumps({**event, "Timestamp": 1_600_000_000.25 + at}) + "\n"


def test_recorded_timelines_are_spans() -> None:
    run = open_run(RECORDED)
    assert run.problems == []
    spans = run.spans()
    assert set(spans["rank"]) == {0, 1}  # a closed file and one that is open
    forward = spans[(spans["phase"] == "forward") & (spans["name"] == "Net")]
    assert len(forward) >= 8
    assert set(spans["step"]) >= {0, 1, 2, 3}
    assert (spans["duration_ns"] >= 0).all()
    assert spans["start_ns"].is_monotonic_increasing
    assert 1_795_000_000 < spans["start_ns"][0] / 1e9 < 1_796_000_000
    assert run.tensors() == []
    assert run.steps().tolist() == []


def test_recorded_timelines_are_drawn_from_when_they_began() -> None:
    views = pytest.importorskip("tdbg_lab.views")
    run = open_run(RECORDED)
    assert run.info.created_ns <= run.spans()["start_ns"][0]
    figure = views.call_view(run, "timeline", {})
    assert {"forward", "Step:ModeKeys.TRAIN"} <= {trace.name for trace in figure.data}


def test_recorded_python_profiles_are_listed() -> None:
    profiles = ProfileFolder(RECORDED).python_profiles()
    assert {profile.profiler for profile in profiles} == {"cprofile"}
    first = profiles[0]
    assert first.start[:3] in {("train", "1", "stepstart"), ("train", "1", "forwardpassend")}
    assert first.end[3] > first.start[3]


def test_system_metrics_are_samples_and_cores_have_a_mean(tmp_path: Path) -> None:
    folder = tmp_path / "system" / "incremental" / "2026112111"
    folder.mkdir(parents=True)
    file = folder / "1600000020.algo-2.json"
    file.write_text(
        sample("cpu0", 20)
        + sample("cpu1", 40)
        + sample("gpu0", 70, kind="gpu", dimension="GPUUtilization")
        + sample("gpu0", 30, kind="gpu", dimension="GPUMemoryUtilization")
        + sample("MemoryUsedPercent", 12, kind="memory", dimension="MemoryUsedPercent")
        + sample("Algorithm", 5, kind="network", dimension="ReceiveBytesPerSecond")
        + sample("Algorithm", 6, kind="i/o", dimension="IOPS")
        + "nonsense\n"
        + sample("cpu0", 90, at=1)[:30]
    )
    assert is_profile_folder(tmp_path)
    run = open_run(tmp_path)
    samples = run.samples()
    found = {(row.metric, row.device): row.value for row in samples.itertuples()}
    assert found == {
        ("cpu", "cpu0"): 20,
        ("cpu", "cpu1"): 40,
        ("cpu", "cpu"): 30,
        ("gpu", "gpu0"): 70,
        ("gpu_memory", "gpu0"): 30,
        ("memory", ""): 12,
        ("net_recv", ""): 5,
        ("i/o/IOPS", "Algorithm"): 6,
    }
    assert set(samples["time_ns"]) == {1_600_000_000_250_000_000}
    assert set(samples["rank"]) == {1}
    assert run.problems == ["1600000020.algo-2.json: 1 lines are not what the profiler writes; left out."]
    with file.open("r+") as growing:
        text = growing.read()
        growing.seek(0)
        growing.write(text[: text.rindex("{")] + sample("cpu0", 90, at=1))
    assert run.refresh()
    later = run.samples(start_ns=1_600_000_001 * 10**9)
    assert later[later["device"] == "cpu"]["value"].tolist() == [90]


def test_open_timeline_is_followed_until_it_is_renamed(tmp_path: Path) -> None:
    folder = tmp_path / "framework"
    folder.mkdir()
    file = folder / "7-host_pythontimeline.json.tmp"
    head = '[\n{"name": "process_name", "ph": "M", "pid": 0, '
    head += '"args": {"start_time_since_epoch_in_micros": 1000}},\n'
    head += '{"name": "process_name", "ph": "M", "pid": 3, "args": {"name": "DataLoaderIter"}},\n'
    event = '{"name": "next", "pid": 3, "ph": "X", "ts": 5, "dur": 2, "args": {"step_num": "4"}},\n'
    file.write_text(head + event + event[:20])
    run = open_run(tmp_path)
    row = run.spans().iloc[0]
    assert (row["name"], row["phase"], row["start_ns"], row["duration_ns"], row["step"]) == (
        "next",
        "data",
        1_005_000,
        2000,
        4,
    )
    with file.open("a") as growing:
        growing.write(event[20:])
    assert run.refresh()
    assert len(run.spans()) == 2
    closed = folder / "pevents" / "2026112111" / "1795260932693072_7-host_pythontimeline.json"
    closed.parent.mkdir(parents=True)
    file.rename(closed)
    closed.write_text(closed.read_text().rstrip(",\n") + "\n]")
    assert run.refresh()
    assert len(run.spans()) == 2
    assert run.problems == []


def test_foreign_timeline_in_one_line_and_with_begin_and_end() -> None:
    events = [
        {"ph": "B", "name": "allreduce", "pid": 1, "tid": 2, "ts": 10},
        {"ph": "E", "pid": 1, "tid": 2, "ts": 14},
        {"ph": "E", "pid": 1, "tid": 2, "ts": 15},
        {"ph": "i", "name": "mark", "pid": 1, "ts": 1},
    ]
    timeline = Timeline()
    (span,) = timeline.feed(json.dumps(events).encode(), last=True)
    assert (span.name, span.start_ns, span.duration_ns, span.thread) == ("allreduce", 10_000, 4000, 2)
    assert timeline.broken == 0


@pytest.mark.parametrize(
    "line",
    [b"7", b'{"ph": "X"}', b'{"ph": "X", "ts": "x"}', b'{"ph": "X", "ts": 1e300, "dur": 1}', b"[" * 9000],
)
def test_timeline_leaves_out_what_is_no_event(line: bytes) -> None:
    timeline = Timeline()
    assert timeline.feed(b"[\n" + line + b",\n]\n", last=True) == []
    assert timeline.broken == 1


def test_phases_are_called_as_ours() -> None:
    assert [
        phase_of(name) for name in ("Forward-SubModuleInternal", "Backward(post-forward)", "DataIterator")
    ] == [
        "forward",
        "backward",
        "data",
    ]
    assert phase_of("NcclManager") == "NcclManager"


def test_profiler_folder_is_listed(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "job" / "profiler-output")
    (summary,) = list_runs(tmp_path)
    assert summary.info.name == "job/profiler-output"
    assert summary.last_step == -1
