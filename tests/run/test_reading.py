"""The reading API: every form on disk, merged over ranks and micro-steps, thinned, and by name and time."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from store.rows import KEYS, arrays, rows

from tdbg_lab.errors import ConfigError, NotFoundError, StepNotFoundError
from tdbg_lab.records import Kind, Mode, RunStatus, StatsRows, TensorKey
from tdbg_lab.run import Run, open_run
from tdbg_lab.stats import quantile
from tdbg_lab.store import RankWriter, SystemWriter, create_run
from tdbg_lab.testing import block_of, fake_run


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
    with pytest.raises(StepNotFoundError, match=r'Only its statistics are kept: .*"values": "both"'):
        run.tensor("loss").value(0)


def test_a_series_says_how_much_it_holds(run):
    series = run.scalars("loss")
    first, last = series.steps[0], series.steps[-1]
    said = f"<Series: {len(series)} points, steps {first} to {last}, the last {series.values[-1]:.6g}>"
    assert repr(series) == said
    assert repr(replace(series, steps=series.steps[:0])) == "<Series: no points>"


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


def test_reading_needs_no_heavy_package():
    code = (
        "import sys, tdbg_lab.run.opening, tdbg_lab.store, tdbg_lab.testing;"
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


class Store:
    """An object store that is looked at."""

    problems = ()
    looks = 0

    def pull(self):
        self.looks += 1
        return True


def test_run_on_an_object_store_that_is_opened_again_looks_there_too(tmp_path):
    store = Store()
    run = Run(fake_run(tmp_path / "run", steps=1), mirror=store)
    again = run.reopen()
    before = store.looks
    again.refresh()
    assert store.looks == before + 1
