"""Profiles of Python code and of data loading, of the predecessor's recordings and of our runs."""

from __future__ import annotations

import marshal
import pstats
from pathlib import Path

import pytest

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.smdebug.exceptions import (
    SMDebugTypeError,
    SMDebugValueError,
)
from tdbg_lab.smdebug.profiler.analysis.python_profile_analysis import (
    PyinstrumentAnalysis,
    PythonProfileAnalysis,
    cProfileAnalysis,
)
from tdbg_lab.smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame
from tdbg_lab.smdebug.profiler.analysis.utils.python_profile_analysis_utils import Metrics, StepPhase
from tdbg_lab.smdebug.profiler.analysis.utils.pytorch_dataloader_analysis import PT_dataloader_analysis
from tdbg_lab.smdebug.profiler.python_profile_utils import PythonProfileModes, str_to_python_profile_mode
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.store.smdebug.calls import read_calls

torch = pytest.importorskip("torch")

RECORDED = Path(__file__).parents[1] / "data" / "smdebug" / "python_profiles"
CALLS = RECORDED / "framework" / "pytorch" / "cprofile"
START = 1_700_000_000 * 10**9


def test_calls_are_read_as_pstats_reads_them():
    paths = list(CALLS.rglob("python_stats"))
    assert len(paths) == 2
    for path in paths:
        assert read_calls(path) == pstats.Stats(str(path)).stats


def test_calls_that_are_broken_or_hold_code_are_refused(tmp_path):
    whole = next(CALLS.rglob("python_stats")).read_bytes()
    path = tmp_path / "python_stats"
    code = compile("1", "x", "eval")
    for broken in (b"", whole[:-100], b"[" + whole, marshal.dumps({("f", 1, "g"): code}), marshal.dumps([1])):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"python_stats is no profile|it (?:is|holds)"):
            read_calls(path)


@pytest.mark.parametrize("folder", [RECORDED, CALLS])
def test_recordings_of_the_predecessor_are_found_by_step_time_and_phase(folder):
    analysis = cProfileAnalysis(folder)
    listed = analysis.list_profile_stats()
    assert set(listed["profiler_name"]) == {"cprofile"}
    assert set(listed["framework"]) == {"pytorch"}
    assert set(listed["start_mode"]) == {"train"}
    (node,) = analysis.list_available_node_ids()
    assert node.endswith("-vm")
    forward = analysis.fetch_profile_stats_by_step(1, 1, end_phase=StepPhase.FORWARD_PASS_END)
    both = analysis.fetch_profile_stats_by_step(1, 2, node_id=node)
    assert 0 < len(forward.function_stats_list) < len(both.function_stats_list)
    assert both.ps.total_calls > forward.ps.total_calls
    assert analysis.fetch_profile_stats_by_step(7) is None
    assert analysis.fetch_pre_step_zero_profile_stats() is None
    assert analysis.fetch_post_hook_close_profile_stats() is None
    first = float(listed["start_time_since_epoch_in_micros"].min()) / 1e6
    assert analysis.fetch_profile_stats_by_time(first, first + 0.01, node_id=node) is not None
    assert analysis.fetch_profile_stats_by_time(0, 1) is None
    train = PythonProfileModes.TRAIN
    assert list(analysis.fetch_profile_stats_by_training_phase()) == [(train, train)]
    assert list(analysis.fetch_profile_stats_by_job_phase()) == ["training_loop"]


def test_functions_are_printed_and_listed_by_a_metric(capsys):
    stats = cProfileAnalysis(RECORDED).fetch_profile_stats_by_step(1, 2)
    stats.print_top_n_functions(Metrics.CUMULATIVE_TIME, n=3)
    assert "Ordered by: cumulative time" in capsys.readouterr().out
    frame = stats.get_function_stats()
    assert {"function name", "total time", "cumulative time"} <= set(frame.columns)
    assert frame["cumulative time"].max() > 0
    with pytest.raises(SMDebugTypeError, match="takes a Metrics"):
        stats.print_top_n_functions("time")


def test_profiles_on_demand_of_a_run_are_found(tmp_path):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = tdbg.attach(model, optimizer=optimizer, store=tmp_path / "run", rules="none", profiler=False)
    handle.run.request_profile(steps=2, operators=False, python="calls")
    for _ in range(200):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
        if handle.run.profiles():
            break
    handle.detach()
    analysis = cProfileAnalysis(handle.run_path)
    listed = analysis.list_profile_stats()
    assert list(listed["node_id"]) == ["0-algo-1"]
    first, last = int(listed["start_step"][0]), int(listed["end_step"][0])
    stats = analysis.fetch_profile_stats_by_step(first, last)
    assert any("linear" in one.function_name for one in stats.function_stats_list)
    assert PyinstrumentAnalysis(handle.run_path).fetch_profile_stats_by_step(first, last) is None


def test_pyinstrument_recordings_have_their_page_and_their_numbers(tmp_path):
    pyinstrument = pytest.importorskip("pyinstrument")
    renderers = pytest.importorskip("pyinstrument.renderers")
    folder = tmp_path / "pytorch" / "pyinstrument" / "1-vm" / "train-0-stepstart-5_train-0-stepend-9"
    folder.mkdir(parents=True)
    with pyinstrument.Profiler() as profiler:
        sum(range(1000))
    (folder / "python_stats.json").write_text(profiler.output(renderers.JSONRenderer()))
    (folder / "python_stats.html").write_text("<html></html>")
    (folder.parent / "odd").mkdir()
    (folder.parent / "odd" / "python_stats.json").write_text("{}")
    (found,) = PyinstrumentAnalysis(tmp_path / "pytorch" / "pyinstrument").fetch_profile_stats_by_step(0)
    assert found.html_file_path == str(folder / "python_stats.html")
    assert "duration" in found.json_stats


def test_mistakes_get_one_sentence(tmp_path):
    with pytest.raises(NotFoundError, match=r"There is no folder .*give a run"):
        PythonProfileAnalysis(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="'bucket/x' is not a place for runs; expected a folder, s3://"):
        PythonProfileAnalysis(tmp_path, "bucket/x")
    with pytest.raises(SMDebugValueError, match="'late' is no mode of a profile; expected train, eval"):
        str_to_python_profile_mode("late")
    assert not len(PythonProfileAnalysis(tmp_path).list_profile_stats())


@pytest.fixture
def loading(tmp_path):
    """Six batches, 10 ms apart: waits of 1 ms, and one of 5 ms that delays what follows by 40 ms."""
    folder = create_run(tmp_path / "run")
    writer = RankWriter(folder.path)
    begin = START
    for step in range(6):
        wait = 5_000_000 if step == 3 else 1_000_000
        writer.append_spans(["data", "forward"], ["data", "forward"], [begin] * 2, [wait] * 2, [step] * 2)
        begin += 50_000_000 if step == 3 else 10_000_000
    writer.close()
    folder.set_status("finished")
    return folder.path


def test_data_loading_of_a_run_tells_what_took_long(loading, capsys):
    analysis = PT_dataloader_analysis(PandasFrame(loading))
    waits = analysis.analyze_dataloader_getnext()
    assert waits["duration_us"].tolist() == [5000]
    assert "Batches that were waited for: 6; median 1000 us" in capsys.readouterr().out
    assert analysis.analyze_batchtime()["BatchTime_in_seconds"].tolist() == [0.05]
    assert analysis.analyze_dataloaderWorkers() is None
    assert analysis.analyze_dataloaderIter_initialization() is None
    assert "Worker processes: none was recorded." in capsys.readouterr().out


def test_intervals_are_found_by_times(loading):
    frame = PandasFrame(loading)
    us = START // 1000
    at = frame.get_framework_metrics_by_timesteps([us + 500, us + 10_500], ["forward"])
    assert at["step"].tolist() == [0, 1]
    during = frame.get_framework_metrics_by_begin_and_end_timesteps([us + 9_000], [us + 21_000], ["data"])
    assert during["step"].tolist() == [1, 2]
    with pytest.raises(SMDebugValueError, match="There are 1 times to begin and 2 to end"):
        frame.get_framework_metrics_by_begin_and_end_timesteps([1], [1, 2])
