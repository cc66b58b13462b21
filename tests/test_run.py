"""The reading API: live and sealed, growing, merged over ranks and micro-steps, and never raising."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from store.rows import KEYS, arrays, rows

from tdbg_lab.errors import ConfigError, NotFoundError, StepNotFoundError
from tdbg_lab.records import Kind, Mode, RunStatus, StatsRows, TensorKey
from tdbg_lab.run import Run, list_runs, open_run
from tdbg_lab.stats import quantile
from tdbg_lab.store import RankWriter, SystemWriter, create_run
from tdbg_lab.store.layout import read_json, write_json
from tdbg_lab.testing import FakeTraining, block_of, fake_run


@pytest.fixture(params=["live", "sealed", "mixed"])
def run(request, tmp_path) -> Run:
    """Steps 0 to 39 of three tensors, in every form they can have on disk."""
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path, seal=request.param != "live")
    for step in range(40):
        writer.append(rows(step))
        if step % 10 == 0:
            writer.append(rows(step, mode=Mode.EVAL, seed=1000 + step))
        if request.param == "mixed" and step == 24:
            writer.close()
            writer = RankWriter(path)
    if request.param == "sealed":
        writer.close()
    return open_run(path)


def test_history_is_what_was_written(run):
    frame = run.tensor("a.weight").history(["mean", "std", "min", "max", "l1", "l2", "count"])
    assert frame["step"].tolist() == list(range(40))
    for step in (0, 24, 25, 39):
        value = arrays(step)[0]
        row = frame.iloc[step]
        expected = [value.mean(), value.std(), value.min(), value.max(), np.abs(value).sum(), 6]
        np.testing.assert_allclose(row[["mean", "std", "min", "max", "l1", "count"]].astype(float), expected)


def test_history_of_one_mode_and_of_some_steps(run):
    tensor = run.tensor("a.weight")
    assert tensor.history("mean", mode="eval")["step"].tolist() == [0, 10, 20, 30]
    assert tensor.history("mean", steps=(5, 7))["step"].tolist() == [5, 6, 7]
    assert tensor.history("mean", steps=(None, 1))["step"].tolist() == [0, 1]
    assert tensor.history("mean", steps=(38, None))["step"].tolist() == [38, 39]
    assert tensor.steps("eval").tolist() == [0, 10, 20, 30]


def test_scalars_keep_their_values(run):
    series = run.scalars("loss")
    assert series.steps.tolist() == list(range(40))
    assert series.values.tolist() == [float(step) for step in range(40)]
    assert (np.diff(series.time_ns) >= 0).all()
    assert run.scalars("loss", mode="eval").values.tolist() == [1000.0, 1010.0, 1020.0, 1030.0]


def test_block_of_a_step_is_the_one_that_was_written(run):
    for step in (0, 39):
        written = block_of(arrays(step), [None, 1, None])
        for row, key in enumerate(KEYS):
            read = run.tensor(key.name).stats(step)
            assert read.count.tolist() == written.count[row : row + 1].tolist()
            bins = slice(written.hist_offsets[row], written.hist_offsets[row + 1])
            assert read.hist_bins.tolist() == written.hist_bins[bins].tolist()
            assert read.hist_counts.tolist() == written.hist_counts[bins].tolist()
            channels = slice(written.channel_offsets[row], written.channel_offsets[row + 1])
            assert read.channel_mean.tolist() == written.channel_mean[channels].tolist()
    with pytest.raises(StepNotFoundError, match="step 99"):
        run.tensor("loss").stats(99)


def test_histograms_merge_adjacent_steps_and_keep_first_and_last(run):
    tensor = run.tensor("a.weight")
    full = tensor.histograms()
    assert full.steps.tolist() == list(range(40))
    few = tensor.histograms(n_out=8)
    assert len(few) == 8
    assert (few.steps[0], few.steps[-1]) == (0, 39)
    assert few.block.count[[0, -1]].tolist() == [6, 6]
    assert few.block.count.sum() == full.block.count.sum() == 240
    assert few.block.hist_counts.sum() == full.block.hist_counts.sum()
    assert len(tensor.histograms(steps=(3, 5))) == 3


def test_quantiles_are_those_of_the_histogram(run):
    frame = run.stats("a.weight", ["q05", "q50", "q99_9"])
    expected = quantile(run.tensor("a.weight").histograms().block, [0.05, 0.5, 0.999])
    np.testing.assert_array_equal(frame[["q05", "q50", "q99_9"]].to_numpy(), expected)


def test_stats_of_several_tensors_by_tensor_and_step(run):
    frame = run.stats(["loss", "a.weight"], ["value", "zero_frac", "time_ns"], steps=(0, 2))
    assert frame["tensor"].tolist() == ["a.weight"] * 3 + ["loss"] * 3
    assert frame["step"].tolist() == [0, 1, 2] * 2
    assert frame["zero_frac"].tolist()[3:] == [1.0, 0.0, 0.0]


def test_overview_is_a_matrix_in_the_order_of_appearance(run):
    found = run.overview(kind=[Kind.WEIGHT, "activation", "loss"], column="mean")
    assert found.names == ("a.weight", "activation/b", "loss")
    assert found.values.shape == (3, 40)
    np.testing.assert_allclose(found.values[2], np.arange(40.0))
    np.testing.assert_allclose(found.values[0, 7], arrays(7)[0].mean())
    few = run.overview(kind="loss", column="mean", n_out=5)
    assert few.steps.tolist() == [0, 10, 20, 29, 39]
    assert run.overview(kind="loss", column="mean", mode="eval").steps.tolist() == [0, 10, 20, 30]
    assert run.overview(kind="gradient", column="mean").values.shape == (0, 0)


def test_names_are_found_by_kind_expression_collection_module_mode_and_step(run):
    assert run.tensor_names() == ["a.weight", "activation/b", "loss"]
    assert run.tensor_names(kind="weight") == ["a.weight"]
    assert run.tensor_names(kind=[Kind.LOSS, "weight"]) == ["a.weight", "loss"]
    assert run.tensor_names(regex="^a") == ["a.weight", "activation/b"]
    assert run.tensor_names(collection="default") == ["a.weight"]
    assert [key.name for key in run.tensors(module="b")] == ["activation/b"]
    assert run.tensors(mode="predict") == []
    assert run.tensor_names(step=39) == ["a.weight", "activation/b", "loss"]
    assert run.tensor_names(step=99) == []
    assert run.tensors()[0] == KEYS[0]


def test_steps_modes_and_times(run):
    assert run.modes() == [Mode.TRAIN, Mode.EVAL]
    assert run.steps().tolist() == list(range(40))
    assert run.steps(mode="eval").tolist() == [0, 10, 20, 30]
    assert run.last_step == 39
    steps, times = run.step_times()
    assert steps.tolist() == list(range(40))
    assert run.first_time_ns <= times[0] <= times[-1] <= run.last_time_ns


def test_wrong_questions_are_answered_with_a_clear_error(run):
    with pytest.raises(NotFoundError, match="no tensor 'x'"):
        run.tensor("x")
    with pytest.raises(NotFoundError, match="no tensor 'x'"):
        run.scalars("x")
    with pytest.raises(ConfigError, match="no column 'size'"):
        run.stats("loss", "size")
    with pytest.raises(ConfigError, match="regular expression"):
        run.tensors(regex="(")
    with pytest.raises(ConfigError, match="kind"):
        run.tensors(kind="odd")
    with pytest.raises(ConfigError, match="mode"):
        run.steps(mode="odd")


def test_changing_an_answer_does_not_change_the_next(run):
    series = run.scalars("loss")
    series.values[:] = -1
    frame = run.stats("loss", "mean")
    frame.loc[:, "mean"] = -1
    assert run.scalars("loss").values.tolist() == [float(step) for step in range(40)]
    assert run.stats("loss", "mean")["mean"].tolist() == [float(step) for step in range(40)]


def test_run_reads_what_is_new_when_refreshed(tmp_path):
    path = create_run(tmp_path / "run").path
    run = open_run(path)
    assert run.last_step == -1
    writer = RankWriter(path)
    for step in range(300):  # over a rotation and its sealing
        writer.append(rows(step))
        assert run.refresh(), step
        assert run.last_step == step
    assert not run.refresh() or run.refresh() in {True, False}
    writer.close()
    run.refresh()
    version = run.version
    assert not run.refresh()
    assert run.version == version
    assert run.scalars("loss").values.tolist() == [float(step) for step in range(300)]
    assert run.problems == []


def test_sealing_changes_no_answer(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    for step in range(20):
        writer.append(rows(step))
    run = open_run(path)
    before = run.to_pandas(), run.tensor("activation/b").stats(7), run.tensor("a.weight").histograms().block
    writer.close()
    run.refresh()
    after = run.to_pandas(), run.tensor("activation/b").stats(7), run.tensor("a.weight").histograms().block
    assert before[0].equals(after[0])
    for old, new in zip(before[1:], after[1:], strict=True):
        for name in ("count", "mean", "hist_bins", "hist_counts", "channel_mean", "channel_zero_frac"):
            np.testing.assert_array_equal(getattr(old, name), getattr(new, name))


@pytest.mark.parametrize("seal", [True, False])
def test_ranks_and_micro_steps_merge_into_what_one_pass_gives(tmp_path, seal):
    path = create_run(tmp_path / "run", world_size=2).path
    random = np.random.default_rng(0)
    values = random.normal(3, 1, (4, 2, 2, 50))  # step, rank, micro-step, elements
    values[1, 0, 0, 3] = np.nan
    values[2, :, :, :] = np.inf
    key = (TensorKey("x", Kind.ACTIVATION),)
    for rank in range(2):
        writer = RankWriter(path, rank, seal=seal)
        for step in range(4):
            for micro in range(2):
                block = block_of([values[step, rank, micro].reshape(10, 5)], [1])
                writer.append(StatsRows(step, Mode.TRAIN, micro, step, key, block))
        writer.close()
    run = open_run(path)
    assert run.ranks() == [0, 1]
    whole = block_of([values[step].reshape(-1, 5) for step in range(4)], [1] * 4)
    frame = run.stats("x", ["count", "nan_count", "inf_count", "mean", "std", "min", "max", "l2", "q50"])
    assert frame["step"].tolist() == [0, 1, 2, 3]
    assert frame["count"].tolist() == [200] * 4
    assert frame["nan_count"].tolist() == [0, 1, 0, 0]
    assert frame["inf_count"].tolist() == [0, 0, 200, 0]
    for column in ("mean", "std", "min", "max", "l2"):
        np.testing.assert_allclose(frame[column], getattr(whole, column), rtol=1e-12)
    for step in range(4):
        block = run.tensor("x").stats(step)
        part = slice(whole.hist_offsets[step], whole.hist_offsets[step + 1])
        assert block.hist_bins.tolist() == whole.hist_bins[part].tolist()
        assert block.hist_counts.tolist() == whole.hist_counts[part].tolist()
        assert len(block.channel_mean) == 5
    one = run.stats("x", "count", rank=1)
    assert one["count"].tolist() == [100] * 4
    matrix = run.overview(kind="activation", column="mean").values
    np.testing.assert_allclose(matrix[0], whole.mean, rtol=1e-12)
    assert run.steps(tensor="x").tolist() == [0, 1, 2, 3]


def test_mode_without_train_is_taken_when_it_is_the_only_one(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    writer.append(rows(0))
    only = (TensorKey("accuracy", Kind.SCALAR),)
    writer.append(StatsRows(5, Mode.EVAL, 0, 1, only, block_of([np.array(0.5)])))
    run = open_run(path)
    assert run.scalars("accuracy").values.tolist() == [0.5]
    assert run.tensor("accuracy").history("value")["mode"].tolist() == ["eval"]
    assert run.tensor("loss").steps().tolist() == [0]


def test_tensor_that_appears_late_and_changes_shape(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    for step in range(4):
        keys = [TensorKey("x", Kind.CUSTOM, shape=(step,))]
        values = [np.arange(step + 1.0)]
        if step >= 2:
            keys.insert(0, TensorKey("a", Kind.CUSTOM))
            values.insert(0, np.array(1.0))
        writer.append(StatsRows(step, Mode.TRAIN, 0, step, tuple(keys), block_of(values)))
    live = open_run(path)
    writer.close()
    for run in (live, open_run(path)):
        assert run.tensor_names() == ["x", "a"]
        assert run.tensor("x").key.shape == (3,)
        assert run.steps(tensor="a").tolist() == [2, 3]
        assert run.tensor_names(step=1) == ["x"]
        values = run.overview(kind="custom", column="count").values
        assert np.isnan(values[1]).tolist() == [True, True, False, False]


def test_empty_run_answers_empty(tmp_path):
    run = open_run(create_run(tmp_path / "run").path)
    assert run.status == RunStatus.RUNNING
    assert (run.ranks(), run.modes(), run.tensors(), run.findings(), run.rule_states()) == (
        [],
        [],
        [],
        [],
        [],
    )
    assert (run.last_step, run.first_time_ns, run.last_time_ns, run.last_write_ns) == (-1, None, None, 0)
    assert run.steps().tolist() == []
    assert run.to_pandas().empty
    assert run.spans().empty
    assert run.samples().empty
    assert run.overview(kind=None, column="mean").values.shape == (0, 0)
    assert run.raw_steps("x") == []
    assert "running" in repr(run)


def test_spans_and_samples_come_by_time_and_filtered(tmp_path):
    path = fake_run(tmp_path / "run", steps=30)
    run = open_run(path)
    spans = run.spans()
    assert len(spans) == 120
    assert spans["start_ns"].is_monotonic_increasing
    assert set(run.spans(phases=["forward"])["name"]) == {"forward"}
    middle = int(spans["start_ns"].iloc[60])
    assert len(run.spans(start_ns=middle)) == 60
    assert len(run.spans(end_ns=middle - 1)) == 60
    samples = run.samples(metrics=["cpu"], devices=["cpu0", "cpu1"])
    assert len(samples) == 60
    assert set(samples.columns) == {"time_ns", "metric", "device", "value", "rank"}
    SystemWriter(path, 1).append(5, ["cpu"], ["cpu"], [7.0])
    run.refresh()
    assert run.samples(end_ns=5).to_dict("records") == [
        {"time_ns": 5, "metric": "cpu", "device": "cpu", "value": 7.0, "rank": 1}
    ]


def test_status_of_a_process_that_is_gone_is_crashed(tmp_path):
    code = "import sys; from tdbg_lab.store import create_run; create_run(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], check=True)
    assert open_run(tmp_path / "run").status == RunStatus.CRASHED
    assert list_runs(tmp_path)[0].status == RunStatus.CRASHED


def test_status_of_a_pid_that_was_used_again_is_crashed(tmp_path):
    path = fake_run(tmp_path / "run", steps=1, status="crashed")
    value = read_json(path / "run.json")
    assert value["pid"] == os.getpid()
    assert open_run(path).status == RunStatus.CRASHED


def test_status_on_another_host_is_crashed_after_long_silence(tmp_path):
    path = fake_run(tmp_path / "run", steps=2, status="running")
    value = read_json(path / "run.json")
    long_ago = time.time_ns() - 10**12
    write_json(path / "run.json", {**value, "host": "elsewhere", "created_ns": long_ago})
    assert open_run(path).status == RunStatus.RUNNING
    for file in (path / "rank-00000").glob("*.parquet"):
        os.utime(file, ns=(long_ago, long_ago))
    assert open_run(path).status == RunStatus.CRASHED


def test_open_run_of_nothing_is_not_found(tmp_path):
    with pytest.raises(NotFoundError, match="no run at nowhere"):
        open_run(tmp_path / "nowhere")


def test_list_runs_finds_runs_below_the_newest_first(tmp_path):
    for name in ("a", "group/b", "group/deep/c", ".hidden/d", "node_modules/e"):
        create_run(tmp_path / name).set_status("finished", last_step=3)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "file").write_text("x")
    found = list_runs(tmp_path)
    assert [summary.info.name for summary in found] == ["c", "b", "a"]
    assert [summary.last_step for summary in found] == [3, 3, 3]
    assert len(list_runs(tmp_path, limit=2)) == 2
    assert list_runs(tmp_path / "nowhere") == []
    assert list_runs(tmp_path / "a")[0].info.name == "a"


def test_list_runs_knows_the_last_step_of_a_sealed_crashed_run(tmp_path):
    fake_run(tmp_path / "run", steps=7, status="crashed")
    (summary,) = list_runs(tmp_path)
    assert (summary.last_step, summary.status) == (6, RunStatus.CRASHED)


def test_list_runs_takes_a_thousand_quickly(tmp_path):
    path = create_run(tmp_path / "run").path
    value = read_json(path / "run.json")
    for number in range(1000):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        (folder / "run.json").write_text(
            json.dumps({**value, "status": "finished", "ended_ns": 5, "last_step": 1})
        )
    begin = time.process_time()
    assert len(list_runs(tmp_path)) == 1001
    assert time.process_time() - begin < 2


GARBAGE = {
    "stats-000005.arrows": b"garbage " * 50,
    "stats-000002.parquet": b"PAR1" + b"garbage" * 50 + b"PAR1",
    "stats-000003.parquet": b"",
    "stats-000004.arrows": b"",
    "spans-000005.parquet": b"PAR1" * 9,
    "system-000005.arrows": b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    "stats-99999999999.arrows": b"x",
    "notes.txt": b"x",
}


def test_garbage_in_a_run_is_left_out_with_a_reason(tmp_path):
    path = fake_run(tmp_path / "run", steps=5)
    rank = path / "rank-00000"
    for name, data in GARBAGE.items():
        (rank / name).write_bytes(data)
    (path / "rank-00007").write_bytes(b"a file, not a directory")
    (path / "rank-00008").symlink_to(rank)
    (rank / "stats-000010.parquet").symlink_to(rank / "stats-000001.parquet")
    (rank / "stats-000011.arrows").mkdir()
    run = open_run(path)
    assert run.last_step == 4
    assert run.ranks() == [0]
    assert len(run.problems) == 5
    assert all(str(tmp_path) not in problem for problem in run.problems)
    assert not run.refresh()
    assert len(run.spans()) == 20


def test_sealed_segment_with_a_lying_index_is_left_out(tmp_path):
    import base64

    import pyarrow.parquet as pq

    path = fake_run(tmp_path / "run", steps=5, findings=False)
    good = path / "rank-00000" / "stats-000001.parquet"
    file = pq.ParquetFile(good)
    table, metadata = file.read(), dict(file.metadata.metadata)
    lies = {
        b"tdbg.runs": [base64.b64encode(np.array([[0, 0, 0, 10**9, 1]], "<i4")), b"x", b""],
        b"tdbg.keys": [b"", b"[]", b"{}", b"[" * 100_000, b'[["a", "weight", "", "", [], [], 0]]', b"[[5]]"],
        b"tdbg.steps": [b"", base64.b64encode(b"x" * 24), b"!"],
        b"tdbg": [b"", b"{}", b'{"format": 1}', b'{"format": 7, "uid": "x"}'],
    }
    for key, values in lies.items():
        for value in values:
            with pq.ParquetWriter(good, table.schema) as writer:
                writer.write_table(table)
                writer.add_key_value_metadata({**metadata, key: bytes(value)})
            run = open_run(path)
            assert run.steps().tolist() == [], (key, value)
            assert len(run.problems) == 1


def test_sealed_segment_with_broken_pages_does_not_raise(tmp_path):
    path = fake_run(tmp_path / "run", steps=5, findings=False)
    good = path / "rank-00000" / "stats-000001.parquet"
    data = bytearray(good.read_bytes())
    data[4 : len(data) // 3] = os.urandom(len(data) // 3 - 4)
    good.write_bytes(data)
    run = open_run(path)
    assert run.last_step == 4  # the index is whole
    run.to_pandas()
    run.overview(kind=None, column="q50")
    run.tensor("layer0.weight").histograms()
    assert run.problems


def test_another_run_in_the_same_place_is_read_anew(tmp_path):
    path = fake_run(tmp_path / "run", steps=5, layers=2)
    run = open_run(path)
    shutil.rmtree(path)
    fake_run(path, steps=3, layers=1, name="other")
    assert run.refresh()
    assert run.info.name == "other"
    assert run.last_step == 2
    assert "layer1.weight" not in run.tensor_names()


def test_threads_read_while_the_run_grows(tmp_path):
    training = FakeTraining(tmp_path / "run", layers=1)
    training.step()
    run = open_run(training.path)
    errors: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                run.refresh()
                steps = run.scalars("loss/CrossEntropyLoss").steps
                assert steps.tolist() == list(range(len(steps)))
                run.overview(kind="weight", column="q50")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        training.step()
    training.end()
    done.set()
    for thread in threads:
        thread.join()
    assert errors == []
    run.refresh()
    assert run.last_step == 60


def test_fake_run_has_everything(tmp_path):
    path = fake_run(tmp_path / "run", steps=20, layers=2, modes=("train", "eval"))
    run = open_run(path)
    absent = {Kind.BUFFER, Kind.INPUT, Kind.CUSTOM, Kind.CHECK}
    assert {key.kind for key in run.tensors()} == set(Kind) - absent
    assert run.modes() == [Mode.TRAIN, Mode.EVAL]
    assert len(run.tensor("activation/layer0").stats(0).channel_mean) == 16
    assert run.tensor("latent").value(10).shape == (64, 8)
    assert run.tensor("latent").labels(10).shape == (64,)
    assert len(run.findings()) == 1
    assert len(run.rule_states()) == 2
    assert run.status == RunStatus.FINISHED
    assert run.problems == []
    with pytest.raises(ValueError, match="odd"):
        fake_run(tmp_path / "x", steps=1, status="odd")


def test_fake_run_is_the_same_for_the_same_seed(tmp_path):
    one, other = (open_run(fake_run(tmp_path / name, steps=3)) for name in "ab")
    assert one.to_pandas().equals(other.to_pandas())
    assert replace(one.info, id="", name="", created_ns=0, ended_ns=0) == replace(
        other.info, id="", name="", created_ns=0, ended_ns=0
    )


def test_reading_needs_no_heavy_package():
    code = (
        "import sys, tdbg_lab.run, tdbg_lab.store, tdbg_lab.testing;"
        "heavy = {'torch', 'tornado', 'IPython', 'plotly', 'numba', 'pandas'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_thinning_keeps_ends_and_what_is_not_finite(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    key = (TensorKey("x", Kind.LOSS),)
    bad = {0: np.nan, 333: np.nan, 334: np.inf, 777: np.nan}
    for step in range(1000):
        value = np.array([bad.get(step, 1.0)])
        writer.append(StatsRows(step, Mode.TRAIN, 0, step, key, block_of([value])))
    run = open_run(path)
    found = run.overview(kind="loss", column="value", n_out=50)
    assert len(found.steps) == 50
    assert found.steps[[0, -1]].tolist() == [0, 999]
    assert np.flatnonzero(~np.isfinite(found.values[0])).size >= 3
    assert {0, 777} < set(found.steps.tolist())
    assert {333, 334} & set(found.steps.tolist())
    assert (np.diff(found.steps) > 0).all()
    again = run.overview(kind="loss", column="value", n_out=50)
    np.testing.assert_array_equal(found.steps, again.steps)


def test_refresh_lists_a_directory_only_when_it_changed(tmp_path, monkeypatch):
    from tdbg_lab.store import state

    path = create_run(tmp_path / "run").path
    writer = RankWriter(path, seal=False)
    writer.append(rows(0))
    os.utime(writer.path, ns=(10**18, 10**18))
    run = open_run(path)
    monkeypatch.setattr(state, "list_segments", lambda _: pytest.fail("listed though nothing changed"))
    assert not run.refresh()
    writer.append(rows(1))
    assert run.refresh()
    assert run.last_step == 1
    monkeypatch.undo()
    writer.close()
    RankWriter(path, seal=False).append(rows(2))
    assert run.refresh()
    assert run.last_step == 2


def test_segment_sealed_between_listing_and_reading_keeps_its_rows(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    writer.append(rows(0))
    os.utime(writer.path, ns=(10**18, 10**18))
    run = open_run(path)
    writer.close()
    os.utime(writer.path, ns=(10**18, 10**18))  # as if the listing had been made before
    run.refresh()
    assert run.steps().tolist() == [0]
    run.refresh()
    assert run.steps().tolist() == [0]
    assert run.problems == []


def test_sealed_segment_that_was_replaced_is_read_anew(tmp_path):
    path = create_run(tmp_path / "run").path
    for step in (0, 5):
        writer = RankWriter(path)
        writer.append(rows(step))
        writer.close()
        if step == 0:
            run = open_run(path)
            assert run.steps().tolist() == [0]
            shutil.rmtree(writer.path)
    assert run.refresh()
    assert run.steps().tolist() == [5]


def test_closed_segment_that_waits_for_sealing_does_not_keep_its_lists(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path, seal=False)
    for step in range(260):
        writer.append(rows(step))
    run = open_run(path)
    first, second = run._reader.state._stats(None)
    assert not first._batches
    assert len(second._batches) == 4
    assert run.tensor("a.weight").histograms().block.count.sum() == 260 * 6
    RankWriter(path).close()  # seals both behind the reader's back
    assert run.tensor("a.weight").histograms().block.count.sum() == 260 * 6
    assert run.problems == []
    assert run.steps().tolist() == list(range(260))


def test_problem_with_a_file_does_not_tell_its_path(tmp_path, monkeypatch):
    from tdbg_lab.store import parquet

    path = fake_run(tmp_path / "run", steps=3)
    run = open_run(path)

    def fail(file):
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(parquet, "open_regular", fail)
    assert run.stats("layer0.weight", "mean").empty
    assert run.problems == ["stats-000001.parquet: Permission denied"]
