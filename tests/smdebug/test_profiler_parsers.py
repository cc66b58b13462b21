"""Parsers of single profiler files, on what the predecessor recorded and on broken files."""

from __future__ import annotations

import gzip
import json
import logging
from typing import TYPE_CHECKING

import pytest

from tdbg_lab.smdebug.exceptions import SMDebugValueError
from tdbg_lab.smdebug.profiler import (
    HorovodProfilerEvents,
    SMProfilerEvents,
    SystemProfilerEventParser,
    TensorboardProfilerEvents,
)
from tests.smdebug.predecessor import answers_of_both, needs_predecessor
from tests.smdebug.profiler_files import RECORDED, write_readings

if TYPE_CHECKING:
    from pathlib import Path

TIMELINE = next(RECORDED.glob("pevents/*/*_pythontimeline.json"))
ANSWERS = """
import importlib, json, sys
profiler = importlib.import_module(sys.argv[1])
timeline, system = profiler.SMProfilerEvents(), profiler.SystemProfilerEventParser()
timeline.read_events_from_file(sys.argv[2])
system.read_events_from_file(sys.argv[3])
fields = "event_name event_phase start_time end_time duration pid node_id phase phase_pid file_type "
fields += "event_args"
def told(events):
    return [[getattr(event, name) for name in fields.split()] for event in events]
middle = timeline.get_all_events()[6].start_time
print("answers", json.dumps([
    told(timeline.get_events_start_time_sorted()),
    told(timeline.get_events_end_time_sorted()),
    told(timeline.get_events_within_time_range(middle, middle + 1000)),
    len({event.tid for event in timeline.get_all_events()}),
    {number: process.name for number, process in timeline.get_processes().items()},
    [[e.type, e.name, e.dimension, e.value, e.node_id, e.timestamp] for e in system.get_all_events()],
    [e.name for e in system.get_events_within_time_range(1795260930500000, 1795260931500000)],
    [e.name for e in system.get_events_within_time_range(0, 2e15, event_type="gpu")],
]))
"""


def write_events(path: Path, events: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(events))
    return path


def test_recorded_timeline_comes_back():
    parser = SMProfilerEvents()
    parser.read_events_from_file(TIMELINE)
    assert {one.event_phase for one in parser.get_all_events()} == {
        "Forward-SubModuleInternal",
        "Forward",
        "Step:ModeKeys.TRAIN",
    }
    first = parser.get_events_start_time_sorted()[0]
    assert first.start_time // 10**6 == 1795260931
    assert (first.node_id, first.event_args["step_num"]) == ("26002-vm", "0")
    assert parser.get_process_info(first.phase_pid).get_thread_info(first.phase_tid).tid == first.tid
    parser.clear_events()
    assert parser.get_all_events() == []


def test_timeline_that_is_still_open_is_read_up_to_its_end():
    parser = SMProfilerEvents()
    parser.read_events_from_file(next(RECORDED.glob("*.tmp")))
    assert len(parser.get_all_events()) > 3
    assert parser.get_all_events()[0].node_id == "26302-vm"


def test_interval_in_two_events_ends_with_the_second(tmp_path):
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "ALLREDUCE"}},
        {"ph": "B", "name": "NEGOTIATE", "pid": 1, "ts": 10},
        {"ph": "E", "pid": 1, "ts": 25},
        {"ph": "E", "pid": 1, "ts": 30},  # nothing began
    ]
    parser = HorovodProfilerEvents()
    parser.read_events_from_file(write_events(tmp_path / "5_7-algo-1_horovod_timeline.json", events))
    assert [(one.event_name, one.event_phase, one.duration) for one in parser.get_all_events()] == [
        ("NEGOTIATE", "ALLREDUCE", 15)
    ]
    assert parser.get_all_events()[0].node_id == "algo-1-7"


def test_events_that_lack_a_part_are_left_out_and_told(tmp_path, caplog):
    events = [
        {"ph": "X", "name": "a", "pid": 1, "ts": 0},
        {"ph": "X", "pid": [], "name": "b", "ts": 1, "dur": 1},
    ]
    good = {"ph": "X", "name": "c", "pid": 1, "ts": 0, "dur": 1}
    parser = SMProfilerEvents()
    with caplog.at_level(logging.WARNING):
        parser.logger.addHandler(caplog.handler)
        try:
            parser.read_events_from_file(write_events(tmp_path / "1_n_pythontimeline.json", [*events, good]))
            parser.read_events_from_file(tmp_path / "none.json")
        finally:
            parser.logger.removeHandler(caplog.handler)
    assert [one.event_name for one in parser.get_all_events()] == ["c"]
    assert "2 events are left out" in caplog.text
    assert "none.json is read in part" in caplog.text


def test_operations_of_tensorflow_are_told_by_their_marks(tmp_path):
    step = tmp_path / "framework" / "tensorflow" / "detailed_profiling" / "2020080513" / "000000000"
    trace = step / "plugins" / "profile" / "2020_08_05_13_37_44" / "host.trace.json.gz"
    trace.parent.mkdir(parents=True)
    (step / "algo-1_1596659864545103_1596659864854168.metadata").touch()
    events = [
        {"ph": "X", "name": name, "pid": 1, "tid": 2, "ts": ts, "dur": 2, "args": {"group_id": 0}}
        for ts, name in enumerate(["aws_marker-ForwardPass/relu", "aws_marker-ApplyGradient/add", "other"])
    ]
    trace.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    assert TensorboardProfilerEvents().get_training_info(trace) == {
        "ForwardPass": [["aws_marker-ForwardPass/relu", 1596659864545103, 2]],
        "ComputeGradient": [],
        "ApplyGradient": [["aws_marker-ApplyGradient/add", 1596659864545104, 2]],
    }


def test_last_reading_may_be_still_written_but_no_other(tmp_path):
    parser = SystemProfilerEventParser()
    parser.read_events_from_file(write_readings(tmp_path / "growing", '{"Type": "cp'))
    assert [one.value for one in parser.get_all_events()] == [5.0, 9.0, 40.0]
    with pytest.raises(SMDebugValueError, match=r"Line 4 of .* is no reading of system metrics"):
        SystemProfilerEventParser().read_events_from_file(write_readings(tmp_path / "broken", "{}\n{}\n"))


@needs_predecessor
def test_answers_are_those_of_the_predecessor(tmp_path):
    files = str(TIMELINE), str(write_readings(tmp_path, '{"Type": "cp'))
    theirs, ours = answers_of_both(ANSWERS, "smdebug.profiler", *files)
    assert theirs == ours
