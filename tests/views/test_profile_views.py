"""Views of a captured profile, on a trace made by hand: every time is known."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from tdbg_lab.profiler.digest import digest_profile
from tdbg_lab.run import open_run
from tdbg_lab.store import create_run
from tdbg_lab.views import call_view, figure_json

if TYPE_CHECKING:
    from pathlib import Path


def span(name, cat, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


TRACE = [
    span("train.py(1): <module>", "python_function", 0, 1000),
    span("ProfilerStep#7", "user_annotation", 100, 800),
    span("aten::conv2d", "cpu_op", 200, 300, **{"Input Dims": [[8, 3]]}),
    span("aten::convolution", "cpu_op", 250, 200),
    span("cudaLaunchKernel", "cuda_runtime", 300, 50, correlation=5),
    span("tdbg_lab/capture/guard.py(50): run", "python_function", 600, 100),
    span("aten::isnan", "cpu_op", 610, 50),
    span("conv_kernel", "kernel", 320, 400, tid=7, device=0, correlation=5),
    span("aten::ones", "cpu_op", 0, 500, tid=2),
    {
        "ph": "i",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "pid": 1,
        "tid": 1,
        "ts": 260,
        "args": {"Bytes": 4096, "Total Allocated": 5000, "Device Id": 0, "Device Type": 1},
    },
]


MODULE = "train.py(1): &lt;module&gt;"


def profiled(path: Path, trace, *, digest: bool = True):
    folder = create_run(path)
    place = folder.path / "rank-00000" / "profile" / "step-000000000007"
    place.mkdir(parents=True)
    (place / "trace.json").write_text(trace if isinstance(trace, str) else json.dumps({"traceEvents": trace}))
    facts = {
        "first_step": 7,
        "last_step": 7,
        "start_ns": 1,
        "duration_ns": 2,
        "problems": ["no Python functions: a <b>reason</b>"],
    }
    (place / "window.json").write_text(json.dumps(facts))
    if digest:
        digest_profile(place)
    return open_run(folder.path)


def test_operators_have_own_total_and_gpu_times(tmp_path):
    run = profiled(tmp_path / "run", TRACE)
    figure = call_view(run, "operators")
    head = [name.strip("</b>") for name in figure.data[0].header["values"]]
    rows = dict(zip(head, figure.data[0].cells["values"], strict=True))
    at = list(rows["Name"]).index("aten::convolution")
    assert [rows[name][at] for name in ("Calls", "Own ms", "Total ms", "GPU ms", "Memory")] == [
        "1", "0.2", "0.2", "0.4", "4 KiB",
    ]  # fmt: skip
    at = list(rows["Name"]).index("aten::conv2d")
    assert [rows[name][at] for name in ("Own ms", "Total ms", "Input shapes")] == ["0.1", "0.3", "[[8, 3]]"]
    assert "aten::isnan" not in rows["Name"]
    assert "Not recorded: no Python functions" in figure.layout.meta["tdbg"]["caption"]
    assert "<b>reason" not in figure_json(figure)
    assert (run.profiles()[0].path / "trace.json.gz").is_file()


def test_kernels_are_listed_by_their_device(tmp_path):
    figure = call_view(profiled(tmp_path / "run", TRACE), "operators", {"show": "kernels"})
    assert [column[0] for column in figure.data[0].cells["values"]] == [
        "conv_kernel",
        "1",
        "100.0%",
        "gpu0",
        "0.4",
    ]


def test_flame_graph_nests_calls_and_adds_up(tmp_path):
    figure = call_view(profiled(tmp_path / "run", TRACE), "flame")
    trace = figure.data[0]
    names = dict(zip(trace.ids, trace.labels, strict=True))
    parents = {names[node]: names.get(up, "") for node, up in zip(trace.ids, trace.parents, strict=True)}
    values = dict(zip(trace.labels, trace["values"], strict=True))
    assert parents["aten::convolution"] == "aten::conv2d"
    assert parents["aten::conv2d"] == MODULE
    assert parents["aten::ones"] == "thread 2"
    assert values["aten::conv2d"] == pytest.approx(0.3)
    assert values["tdbg-lab"] == pytest.approx(0.1)
    assert values["all"] == pytest.approx(1.5)


def test_flame_graph_of_the_gpu_hangs_kernels_below_what_launched_them(tmp_path):
    figure = call_view(profiled(tmp_path / "run", TRACE), "flame", {"tree": "gpu"})
    assert list(figure.data[0].labels) == [
        "all", "gpu0", MODULE, "aten::conv2d", "aten::convolution", "conv_kernel",
    ]  # fmt: skip
    assert set(figure.data[0]["values"]) == {0.4}


def test_torn_trace_is_read_up_to_where_it_breaks(tmp_path):
    text = json.dumps({"traceEvents": TRACE})
    figure = call_view(profiled(tmp_path / "run", text[: text.index("tdbg_lab")]), "operators")
    assert "aten::conv2d" in figure.data[0].cells["values"][0]
    assert "read up to where it breaks" in figure.layout.meta["tdbg"]["caption"]


@pytest.mark.parametrize(
    "digest",
    [
        "{", "[]", '{"operators": 5, "trees": {"cpu": {"name": ["a"], "parent": [0], "total": ["x"]}}}',
        '{"operators": [{"name": {"a": 1}, "self_us": null}], "trees": [], "problems": 5}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("view", ["operators", "flame"])
def test_broken_digest_gives_a_word_not_an_error(tmp_path, view, digest):
    run = profiled(tmp_path / "run", TRACE)
    (run.profiles()[0].path / "digest.json").write_text(digest)
    assert len(call_view(run, view).layout.meta["tdbg"]["caption"]) > 10


def test_digest_that_cannot_be_opened_does_not_tell_its_path(tmp_path):
    run = profiled(tmp_path / "run", TRACE)
    digest = run.profiles()[0].path / "digest.json"
    digest.rename(tmp_path / "elsewhere.json")
    digest.symlink_to(tmp_path / "elsewhere.json")
    caption = call_view(run, "operators").layout.meta["tdbg"]["caption"]
    assert "The profile cannot be read." in caption
    assert str(tmp_path) not in caption


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"profile": 4}, "There is no profile 4. The run has 1 profile"),
        ({"rank": 3}, "Rank 3 has no profile."),
    ],
)
def test_profile_that_is_not_there_is_named(tmp_path, params, words):
    run = profiled(tmp_path / "run", TRACE)
    for view in ("operators", "flame"):
        assert call_view(run, view, params).layout.meta["tdbg"]["caption"].startswith(words)


@pytest.mark.parametrize("view", ["operators", "flame"])
def test_range_chooses_the_last_profile_that_reaches_into_it(tmp_path, view):
    run = profiled(tmp_path / "run", TRACE)
    at = (1 - run.info.created_ns) / 1e9
    near = call_view(run, view, {"range": [at - 1, at + 1]}).layout.meta["tdbg"]["caption"]
    assert near == call_view(run, view).layout.meta["tdbg"]["caption"]
    far = call_view(run, view, {"range": [at + 1, at + 2]}).layout.meta["tdbg"]["caption"]
    assert far.startswith("Nothing was profiled on demand in this range.")
    assert (
        call_view(run, view, {"range": [at + 1, None], "profile": 1}).layout.meta["tdbg"]["caption"] == near
    )


@pytest.mark.parametrize("view", ["operators", "flame"])
def test_last_profile_with_something_to_draw_is_the_default(tmp_path, view):
    run = profiled(tmp_path / "run", TRACE)
    first = run.profiles()[0].path
    later = first.with_name("step-000000000009")
    later.mkdir()
    facts = json.loads((first / "window.json").read_text()) | {"first_step": 9, "last_step": 9}
    (later / "window.json").write_text(json.dumps(facts))
    (later / "python.calls.json").write_text("{}")
    digest_profile(later)
    assert len(run.profiles()) == 2
    assert call_view(run, view).data, "cProfile's counts alone are not drawn"
    assert not call_view(run, view, {"profile": 2}).data


def test_profile_that_is_not_ready_says_so(tmp_path):
    run = profiled(tmp_path / "run", TRACE, digest=False)
    assert "is being prepared" in call_view(run, "flame").layout.meta["tdbg"]["caption"]


def test_packed_trace_is_the_trace(tmp_path):
    run = profiled(tmp_path / "run", TRACE)
    with gzip.open(run.profiles()[0].path / "trace.json.gz") as file:
        assert json.load(file) == {"traceEvents": TRACE}


def test_trace_that_is_too_large_is_not_kept_but_what_was_in_it_is_shown(tmp_path, monkeypatch):
    monkeypatch.setattr("tdbg_lab.profiler.digest._MAX_TRACE_BYTES", 100)
    run = profiled(tmp_path / "run", TRACE)
    assert not list(run.profiles()[0].path.glob("trace.json*"))
    figure = call_view(run, "operators")
    assert "aten::conv2d" in figure.data[0].cells["values"][0]
    assert "MiB was not kept: profile fewer steps" in figure.layout.meta["tdbg"]["caption"]


def test_call_trees_that_are_too_large_leave_the_operators(tmp_path, monkeypatch):
    whole = profiled(tmp_path / "whole", TRACE)
    size = (whole.profiles()[0].path / "digest.json").stat().st_size
    monkeypatch.setattr("tdbg_lab.profiler.digest.MAX_DIGEST_BYTES", size - 1)
    run = profiled(tmp_path / "run", TRACE)
    figure = call_view(run, "operators")
    assert "aten::conv2d" in figure.data[0].cells["values"][0]
    assert (
        "the call trees are too large to be drawn" in call_view(run, "flame").layout.meta["tdbg"]["caption"]
    )
