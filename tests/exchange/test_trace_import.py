"""Traces of torch.profiler as runs: real ones, packed ones, broken ones, hostile ones."""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.exchange import trace as trace_module
from tdbg_lab.store.json_stream import BrokenTraceError, TraceStream

PROFILED = """
import sys
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
schedule = torch.profiler.schedule(wait=0, warmup=1, active=3, repeat=1)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule) as profiler:
    for _ in range(4):
        model(torch.ones(4, 8)).sum().backward()
        profiler.step()
profiler.export_chrome_trace(sys.argv[1])
"""
"""In a process of its own: other native libraries that tests load are no company for a profiler."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs PyTorch")
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    subprocess.run([sys.executable, "-c", PROFILED, path], check=True, capture_output=True)
    return path


def spans_of(path):
    return [event for event in json.loads(path.read_text())["traceEvents"] if event.get("ph") == "X"]


@pytest.mark.parametrize("packed", [False, True])
def test_trace_of_torch_becomes_spans_with_thread_and_step(trace, tmp_path, packed):
    path = trace
    if packed:
        path = tmp_path / "trace.json.gz"
        path.write_bytes(gzip.compress(trace.read_bytes()))
    run = tdbg.import_run(path, store=tmp_path / "run")
    found, expected = run.spans(), spans_of(trace)
    assert len(found) == len(expected) > 20
    assert sorted(found.name) == sorted(event["name"] for event in expected)
    assert set(found.phase) >= {"cpu_op", "user_annotation"}
    base = json.loads(trace.read_text())["baseTimeNanoseconds"]
    starts = sorted(base + float(event["ts"]) * 1000 for event in expected)
    np.testing.assert_allclose(found.start_ns, starts, atol=1000)
    assert run.info.framework == "pytorch"
    assert run.info.created_ns == found.start_ns.min()
    linear = found[found.name == "aten::linear"]
    assert set(linear.step) == {1, 2, 3}
    assert run.info.last_step == 3
    assert run.status == "finished"


def test_kernels_are_on_their_device(tmp_path):
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": "gemm",
            "ts": 5,
            "dur": 2,
            "pid": 0,
            "tid": 7,
            "args": {"device": 1, "stream": 7},
        },
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 9, "pid": 3, "tid": "thread 12"},
        {"ph": "C", "name": "GPU", "ts": 2, "pid": 0, "args": {"util": 50, "text": "x"}},
    ]
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"traceEvents": events, "baseTimeNanoseconds": 10**18}))
    run = tdbg.import_run(path, store=tmp_path / "run")
    found = run.spans()
    assert found[["name", "device", "thread", "start_ns", "duration_ns"]].to_numpy().tolist() == [
        ["aten::mm", "", 12, 10**18 + 1000, 9000],
        ["gemm", "gpu1", 7, 10**18 + 5000, 2000],
    ]
    assert run.samples()[["metric", "device", "value"]].to_numpy().tolist() == [["util", "GPU", 50.0]]


def test_other_json_files_of_a_folder_are_told_and_are_no_ranks(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "config.json").write_text('{"lr": 0.1}')
    (source / "trace.json").write_text('{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2}]}')
    run = tdbg.import_run(source, store=tmp_path / "run")
    assert run.ranks() == [0]
    assert len(run.spans()) == 1
    assert run.info.notes == (
        "Imported 1 spans and 0 counter values of 1 trace files. 1 of 2 files hold no span and no counter."
    )


def test_files_of_a_folder_are_ranks(trace, tmp_path):
    for rank in range(2):
        (tmp_path / "traces").mkdir(exist_ok=True)
        (tmp_path / "traces" / f"rank{rank}.json").write_bytes(trace.read_bytes())
    run = tdbg.import_run(tmp_path / "traces", store=tmp_path / "run")
    assert sorted(run.spans()["rank"].unique()) == [0, 1]


def test_own_trace_comes_back(run, tmp_path):
    path = tdbg.export(run, to="chrome", path=tmp_path / "mine.json")
    again = tdbg.import_run(path, store=tmp_path / "again")
    mine, theirs = run.spans(), again.spans()
    np.testing.assert_allclose(mine.start_ns, theirs.start_ns, atol=1000)
    assert mine.phase.tolist() == theirs.phase.tolist()
    assert len(again.samples()) == len(run.samples())


@pytest.mark.parametrize("packed", [False, True])
def test_torn_trace_is_kept_up_to_where_it_breaks(trace, tmp_path, packed):
    data = trace.read_bytes()
    path = tmp_path / ("torn.json.gz" if packed else "torn.json")
    path.write_bytes(
        gzip.compress(data)[: 3 * len(gzip.compress(data)) // 4] if packed else data[: 3 * len(data) // 4]
    )
    run = tdbg.import_run(path, store=tmp_path / "run")
    assert 0 < len(run.spans()) < len(spans_of(trace))
    assert f"{path.name} was read up to where it breaks".capitalize()[:4] in run.info.notes
    assert "was read up to where it breaks" in run.info.notes


def test_huge_trace_is_cut_and_said(trace, tmp_path, monkeypatch):
    monkeypatch.setattr(trace_module, "_MAX_SPANS", 10)
    run = tdbg.import_run(trace, store=tmp_path / "run")
    assert len(run.spans()) == 10
    assert "only the first 10 spans were taken" in run.info.notes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        '{"traceEvents": 3}',
        '{"traceEvents": [',
        '{"a" 1}',
        "[[[[",
        "[" * 100_000,
        '{"a": ' + "[" * 100_000,
        '{"traceEvents": [{"ph": "X", "ts": "x"}, 3, null, {"ph": "X", "ts": 1e300, "dur": 1}]}',
        '[{"ph": "X", "ts": NaN, "name": []}]',
    ],
)
def test_files_that_are_no_trace_are_one_sentence(tmp_path, text):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ConfigError, match=r"bad\.json holds no span and no counter"):
        tdbg.import_run(tmp_path / "bad.json", store=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_strange_values_of_events_are_harmless(tmp_path):
    events = [
        {"ph": "X", "name": None, "ts": "12.5", "dur": "3", "tid": None, "cat": ["x"], "args": []},
        {"ph": "X", "name": "é" * 5000, "ts": 1, "dur": -5},
        {"ph": "X", "name": "ok", "ts": 1, "tid": 10**400, "args": {"device": {}}, "cat": "kernel"},
        {"ph": "C", "name": {}, "ts": 1, "args": {str(i): i for i in range(1000)}},
    ]
    (tmp_path / "odd.json").write_text(json.dumps(events))
    run = tdbg.import_run(tmp_path / "odd.json", store=tmp_path / "run")
    assert len(run.spans()) == 2
    assert len(run.samples()) == 16


def test_halves_of_characters_in_names_are_escapes(tmp_path):
    half = "a\ud800"
    span = {"ph": "X", "name": half, "cat": half, "ts": 1, "dur": 2, "tid": half}
    kernel = {"ph": "X", "name": "k", "cat": "kernel", "ts": 3, "dur": 2, "tid": 1, "args": {"device": half}}
    counter = {"ph": "C", "name": half, "ts": 4, "args": {half: 1}}
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [span, kernel, counter]}))
    run = tdbg.import_run(tmp_path / "trace.json", store=tmp_path / "run")
    found, samples = run.spans(), run.samples()
    assert found.name.tolist() == [r"a\ud800", "k"]
    assert (found.phase[0], found.device[1]) == (r"a\ud800", r"gpua\ud800")
    assert (samples.metric[0], samples.device[0]) == (r"a\ud800", r"a\ud800")


def test_events_stream_without_holding_the_file(tmp_path):
    path = tmp_path / "many.json"
    with path.open("w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "note": "ü", "traceEvents": [')
        file.write(
            ",".join(json.dumps({"n": i, "text": "äöü" * 10}, ensure_ascii=False) for i in range(60_000))
        )
        file.write('], "baseTimeNanoseconds": 12}')
    stream = TraceStream(path)
    longest = 0
    for i, event in enumerate(stream.events()):
        assert event == {"n": i, "text": "äöü" * 10}
        longest = max(longest, len(stream._buffer))
    assert i == 59_999
    assert longest < 3 * 2**20 < path.stat().st_size
    assert stream.head == {"schemaVersion": 1, "note": "ü", "baseTimeNanoseconds": 12}
    (tmp_path / "empty").write_text("")
    with pytest.raises(BrokenTraceError):
        list(TraceStream(tmp_path / "empty").events())


@pytest.mark.parametrize(
    ("value", "sentence"), [("9" * 5000, "too many digits"), ("[" * 10_000, "too deeply")]
)
def test_trace_is_kept_up_to_a_value_that_cannot_be_read(tmp_path, value, sentence):
    span = '{"ph": "X", "name": "a", "ts": 1, "dur": 2}'
    (tmp_path / "trace.json").write_text(f'[{span}, {{"ph": "X", "ts": {value}}}]')
    run = tdbg.import_run(tmp_path / "trace.json", store=tmp_path / "run")
    assert len(run.spans()) == 1
    assert sentence in run.info.notes
