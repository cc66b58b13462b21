"""Runs in other formats, read back with the tools that know them."""

from __future__ import annotations

import json
import os
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from safetensors import SafetensorError

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError, ConflictError, NotFoundError, StoreError
from tdbg_lab.exchange import EXPORTS
from tdbg_lab.stats.bins import RELATIVE_ERROR


def test_tables_hold_a_row_for_each_tensor_mode_and_step(run, tmp_path):
    tdbg.export(run, to="csv", path=tmp_path / "run.csv")
    tdbg.export(run, to="parquet", path=tmp_path / "run.parquet")
    text, binary = pd.read_csv(tmp_path / "run.csv"), pd.read_parquet(tmp_path / "run.parquet")
    for frame in (text, binary):
        expected = run.to_pandas()
        assert len(frame) == len(expected) > 20
        loss = frame[(frame.tensor == "loss") & (frame["mode"] == "train")]
        np.testing.assert_allclose(loss.value, 1 / np.arange(1, 7))
        assert loss.kind.unique().tolist() == ["scalar"]
        latent = frame[frame.tensor == "latent"]
        assert latent.value.isna().all()
        np.testing.assert_allclose(latent["std"], run.tensor("latent").history("std")["std"])
        assert frame[frame.tensor == "accuracy"]["mode"].tolist() == ["eval"]


def test_tables_can_be_of_some_tensors_only(run, tmp_path):
    path = tdbg.export(run, to="csv", path=tmp_path / "run.csv", regex="^(loss|accuracy)$", mode="train")
    assert set(pd.read_csv(path).tensor) == {"loss"}


@pytest.mark.parametrize("kind", ["csv", "parquet", "tensorboard"])
def test_choice_of_nothing_is_told_and_writes_nothing(run, tmp_path, kind):
    path = tmp_path / "out"
    with pytest.raises(NotFoundError, match="holds no tensor of mode train whose name matches 'accuracy'"):
        tdbg.export(run, to=kind, path=path, regex="accuracy", mode="train")
    assert not path.exists()


def test_empty_run_is_a_table_with_columns(tmp_path):
    with tdbg.attach(store=tmp_path / "empty", profiler=False):
        pass
    for kind in ("csv", "parquet"):
        path = tdbg.export(tmp_path / "empty", to=kind, path=tmp_path / f"out.{kind}")
        frame = pd.read_csv(path) if kind == "csv" else pd.read_parquet(path)
        assert len(frame) == 0
        assert {"tensor", "step", "mean"} <= set(frame.columns)


def test_number_of_several_batches_is_one_number(tmp_path):
    """As the loss of an evaluation, or of several ranks: its number is the mean."""
    with tdbg.attach(store=tmp_path / "run", save_every=1, profiler=False) as handle:
        for _ in range(3):
            handle.log(loss=1.0)
            handle.advance()
        with handle.mode("eval"):
            handle.log(loss=0.25)
            handle.log(loss=0.75)
    path = tdbg.export(tmp_path / "run", to="csv", path=tmp_path / "run.csv", regex="^loss$", mode="eval")
    frame = pd.read_csv(path)
    assert frame[["count", "value"]].to_numpy().tolist() == [[2, 0.5]]
    tdbg.export(tmp_path / "run", to="tensorboard", path=tmp_path / "logs")
    again = tdbg.import_run(tmp_path / "logs", store=tmp_path / "again")
    assert again.tensor("loss").history("count", mode="eval")["count"].tolist() == [1]
    np.testing.assert_array_equal(again.scalars("loss", mode="eval").values, [0.5])


def test_tensorboard_reads_the_same_numbers(run, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    tdbg.export(run, to="tensorboard", path=tmp_path / "logs")
    read = accumulator.EventAccumulator(str(tmp_path / "logs" / "train"), {"scalars": 0, "histograms": 0})
    read.Reload()
    loss = read.Scalars("loss")
    assert [one.step for one in loss] == list(range(6))
    np.testing.assert_allclose([one.value for one in loss], run.scalars("loss").values, rtol=1e-6)
    assert np.isnan(read.Scalars("odd")[3].value)
    series = run.scalars("loss")
    np.testing.assert_allclose([one.wall_time for one in loss], series.time_ns / 1e9, atol=1e-5)
    evaluated = accumulator.EventAccumulator(str(tmp_path / "logs" / "eval"))
    evaluated.Reload()
    assert [one.value for one in evaluated.Scalars("accuracy")] == [0.5]


def test_tensorboard_reads_the_same_histograms(run, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    tdbg.export(run, to="tensorboard", path=tmp_path / "logs")
    read = accumulator.EventAccumulator(str(tmp_path / "logs" / "train"), {"histograms": 0})
    read.Reload()
    events = read.Histograms("latent")
    assert [event.step for event in events] == list(range(6))
    for event in events:
        values = run.tensor("latent").value(event.step)
        histogram = event.histogram_value
        limits, counts = np.array(histogram.bucket_limit), np.array(histogram.bucket)
        assert histogram.num == counts.sum() == values.size
        assert (np.diff(limits) > 0).all()
        assert histogram.min == pytest.approx(values.min())
        assert histogram.sum == pytest.approx(values.sum())
        assert histogram.sum_squares == pytest.approx((values**2).sum())
        below = np.array([(values <= limit).sum() for limit in limits])
        np.testing.assert_array_equal(np.cumsum(counts), below)  # no value of the data is an edge of a bin
        assert counts[limits == 0.0].tolist() == [40.0]
        widths = np.diff(limits)[counts[1:] > 0] / np.abs(limits[1:])[counts[1:] > 0].clip(1e-30)
        assert np.quantile(widths, 0.9) <= 2 * RELATIVE_ERROR + 0.01


def test_trace_is_json_with_spans_counters_and_findings(run, tmp_path):
    path = tdbg.export(run, to="chrome", path=tmp_path / "run.json")
    trace = json.loads(path.read_text())
    base = trace["baseTimeNanoseconds"]
    events = trace["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    frame = run.spans()
    assert len(spans) == len(frame) > 0
    np.testing.assert_allclose(
        sorted(base + event["ts"] * 1000 for event in spans), sorted(frame.start_ns), atol=1000
    )
    counters = [event for event in events if event["ph"] == "C"]
    assert len(counters) == len(run.samples())
    assert {"cpu": 50.0} in [event["args"] for event in counters]
    (finding,) = [event for event in events if event["ph"] == "i"]
    assert finding["name"] == "dead_relu: All is dead."
    assert finding["args"]["advice"] == "Wake it."
    names = [event["args"]["name"] for event in events if event["ph"] == "M"]
    assert f"{run.info.name} rank 0" in names


def test_raw_values_are_safetensors(run, tmp_path):
    from safetensors.numpy import load_file

    folder = tdbg.export(run, to="safetensors", path=tmp_path / "raw")
    assert len(list(folder.iterdir())) == len(run.raw_steps("latent")) == 6
    found = load_file(folder / "step-000000000003.safetensors")
    np.testing.assert_array_equal(found["latent"], run.tensor("latent").value(3))
    np.testing.assert_array_equal(found["latent/labels"], run.tensor("latent").labels(3))


def test_run_without_raw_values_says_what_saves_them(tmp_path):
    with tdbg.attach(store=tmp_path / "empty", profiler=False):
        pass
    with pytest.raises(
        NotFoundError, match="No raw values of run empty match; collections with values='raw'"
    ):
        tdbg.export(tmp_path / "empty", to="safetensors", path=tmp_path / "raw")
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize("kind", list(EXPORTS))
def test_nothing_is_overwritten_unless_it_is_said(run, tmp_path, kind):
    path = tmp_path / "out"
    tdbg.export(run, to=kind, path=path)
    before = {p: p.read_bytes() for p in [path, *path.rglob("*")] if p.is_file()}
    with pytest.raises(ConflictError, match="choose another path, or say force"):
        tdbg.export(run, to=kind, path=path)
    assert before == {p: p.read_bytes() for p in [path, *path.rglob("*")] if p.is_file()}
    if path.is_dir():
        (path / "mine").write_text("mine")
    tdbg.export(run, to=kind, path=path, force=True)
    assert not path.is_dir() or (path / "mine").read_text() == "mine"
    assert not list(tmp_path.rglob("*.tmp"))


def test_progress_ends_with_all(run, tmp_path):
    shares: list[float] = []
    for kind in EXPORTS:
        tdbg.export(run, to=kind, path=tmp_path / kind, progress=shares.append)
        assert shares[-1] == pytest.approx(1.0)
        assert all(0 <= share <= 1 for share in shares)


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"to": "excel"}, ConfigError, "There is no format 'excel'; choose from csv, parquet, tensorboard"),
        ({"to": "csv", "mode": "test"}, ConfigError, "mode is 'test'; expected 'train', 'eval' or 'predict'"),
        ({"to": "csv", "regex": "("}, ConfigError, "regular expression"),
        ({"to": "safetensors", "regex": "("}, ConfigError, "regular expression"),
        ({"to": "csv", "path": "."}, ConflictError, "is a directory; give the name of a file"),
    ],
)
def test_bad_requests_are_one_sentence(run, tmp_path, arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        tdbg.export(run, **{"path": tmp_path / "out", **arguments})


def test_place_that_cannot_be_written_is_said(run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises((StoreError, ConflictError), match="file"):
        tdbg.export(run, to="csv", path=tmp_path / "file" / "out.csv")


@pytest.mark.parametrize("kind", sorted(EXPORTS))
def test_path_that_no_file_system_takes_is_one_sentence(run, tmp_path, kind):
    with pytest.raises(StoreError, match=r"^Cannot write .*too long"):
        tdbg.export(run, to=kind, path=tmp_path / ("x" * 300))
    with pytest.raises(ConfigError, match="NUL"):
        tdbg.export(run, to=kind, path="a\0b")


@pytest.mark.parametrize("kind", ["csv", "parquet", "chrome"])
def test_pipe_is_never_replaced_by_a_file(run, tmp_path, kind):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConflictError, match="a device or a pipe"):
        tdbg.export(run, to=kind, path=tmp_path / "pipe", force=True)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("kind", sorted(EXPORTS))
def test_disk_that_is_full_is_one_sentence(run, tmp_path, monkeypatch, kind):
    full = OSError(28, "No space left on device")
    monkeypatch.setattr("tdbg_lab.exchange.target.replace_file", Mock(side_effect=full))
    with pytest.raises(StoreError, match=r"^Cannot write .*No space left on device"):
        tdbg.export(run, to=kind, path=tmp_path / "out")


def test_raw_values_that_cannot_be_written_are_one_sentence(run, tmp_path, monkeypatch):
    full = SafetensorError("I/O error: No space left on device")
    monkeypatch.setattr("safetensors.numpy.save_file", Mock(side_effect=full))
    with pytest.raises(StoreError, match=r"^Cannot write .*No space left on device"):
        tdbg.export(run, to="safetensors", path=tmp_path / "out")
