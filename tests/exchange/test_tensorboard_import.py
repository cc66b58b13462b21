"""Event files as runs: written by TensorBoard's own writers, by ours, and broken ones."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.exchange.tensorboard import importing
from tdbg_lab.exchange.tensorboard.checksum import masked_crc
from tdbg_lab.exchange.tensorboard.events import scalar_event
from tdbg_lab.exchange.tensorboard.records import write_record
from tdbg_lab.exchange.tensorboard.wire import length_delimited, varint
from tdbg_lab.records import Mode

TENSORFLOW = """
import sys
import numpy as np
import tensorflow as tf
folder = sys.argv[1]
values = np.load(folder + "/values.npy")
writer = tf.summary.create_file_writer(folder + "/logs")
with writer.as_default():
    for step in range(3):
        tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
        tf.summary.scalar("double", tf.constant(0.1, tf.float64), step=step)
        tf.summary.histogram("weights", values, step=step)
        tf.summary.histogram("same", np.full(7, 2.5, "float32"), step=step)
writer.close()
"""
"""In a process of its own: TensorFlow and Triton bring each their LLVM."""
QUANTILES = ["q05", "q25", "q50", "q75", "q95"]


@pytest.fixture
def values():
    random = np.random.default_rng(3)
    return random.normal(size=4000) * np.where(random.random(4000) < 0.5, 1e-3, 10.0)


@pytest.fixture
def torch_logs(tmp_path, values):
    board = pytest.importorskip("torch.utils.tensorboard")
    pytest.importorskip("tensorboard")
    for mode in ("train", "validation"):
        writer = board.SummaryWriter(tmp_path / "logs" / mode)
        for step in range(5):
            writer.add_scalar("loss", 1.0 / (step + 1), step)
            writer.add_scalar("new", step * 2.0, step, new_style=True)
            writer.add_histogram("weights", values * (step + 1), step)
            writer.add_text("note", "hello", step)
        writer.close()
    return tmp_path / "logs"


def test_scalars_and_histograms_of_torch_become_a_run(torch_logs, tmp_path, values):
    run = tdbg.import_run(torch_logs, store=tmp_path / "run")
    assert run.status == "finished"
    assert run.modes() == [Mode.TRAIN, Mode.EVAL]
    assert run.info.framework == "tensorboard"
    for mode in ("train", "eval"):
        np.testing.assert_allclose(run.scalars("loss", mode=mode).values, 1 / np.arange(1, 6), rtol=1e-6)
        np.testing.assert_allclose(run.scalars("new", mode=mode).values, np.arange(5) * 2.0)
    assert [key.kind for key in run.tensors(regex="^loss$")] == ["loss"]
    assert run.tensor_names(regex="note") == []
    history = run.tensor("weights").history(["count", "min", "max", "mean", "std", "l2", *QUANTILES])
    assert history.step.tolist() == list(range(5))
    for row in history.itertuples():
        scaled = values * (row.step + 1)
        assert row.count == len(values)
        assert row.min == pytest.approx(scaled.min())
        assert row.max == pytest.approx(scaled.max())
        assert row.mean == pytest.approx(scaled.mean(), abs=1e-9)
        assert row.std == pytest.approx(scaled.std())
        for name in QUANTILES:  # a bucket of torch is 10 % wide, a bin of ours is 25 %
            exact = np.quantile(scaled, float(name[1:]) / 100)
            assert getattr(row, name) == pytest.approx(exact, rel=0.4, abs=1e-3)
    assert run.info.created_ns <= run.first_time_ns <= run.info.ended_ns


def test_numbers_and_histograms_of_tensorflow_become_a_run(tmp_path, values):
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs TensorFlow")
    np.save(tmp_path / "values.npy", values.astype("float32"))
    subprocess.run([sys.executable, "-c", TENSORFLOW, tmp_path], check=True, capture_output=True)
    run = tdbg.import_run(tmp_path / "logs", store=tmp_path / "run")
    np.testing.assert_allclose(run.scalars("loss").values, [1, 0.5, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(run.scalars("double").values, 0.1, rtol=1e-6)
    history = run.tensor("weights").history(["count", "min", "max", "q50", "q95", "std"])
    width = (values.max() - values.min()) / 30  # TensorFlow has 30 buckets of equal width
    assert history["count"].tolist() == [4000] * 3
    np.testing.assert_allclose(history["min"], values.min(), rtol=1e-5)
    np.testing.assert_allclose(history["q95"], np.quantile(values, 0.95), atol=width + 0.125 * 15)
    np.testing.assert_allclose(history["std"], values.std(), rtol=0.05)
    same = run.tensor("same").history(["count", "min", "max", "q50"])
    assert same["count"].tolist() == [7] * 3
    assert same["min"].tolist() == pytest.approx([2.5] * 3)


def test_export_and_import_give_the_same_statistics(run, tmp_path):
    tdbg.export(run, to="tensorboard", path=tmp_path / "logs")
    again = tdbg.import_run(tmp_path / "logs", store=tmp_path / "again")
    columns = ["count", "zero_frac", "min", "max", "mean", "std", "l2"]
    mine, theirs = (one.tensor("latent").history(columns) for one in (run, again))
    np.testing.assert_allclose(mine[columns], theirs[columns], rtol=1e-6)
    first, second = (one.tensor("latent").stats(4) for one in (run, again))
    np.testing.assert_array_equal(first.hist_bins, second.hist_bins)
    off = np.abs(first.hist_counts - second.hist_counts)
    assert off.sum() <= 0.02 * first.count[0]  # the outermost bins end at the smallest and largest value
    np.testing.assert_allclose(run.scalars("loss").values, again.scalars("loss").values, rtol=1e-6)
    assert again.scalars("accuracy", mode="eval").values.tolist() == [0.5]


def test_values_that_repeat_a_step_are_left_out_and_counted(tmp_path):
    board = pytest.importorskip("torch.utils.tensorboard")
    for start in (0, 3):
        writer = board.SummaryWriter(tmp_path / "logs", filename_suffix=str(start))
        for step in range(start, start + 5):
            writer.add_scalar("loss", float(start), step)
        writer.close()
    run = tdbg.import_run(tmp_path / "logs", store=tmp_path / "run")
    assert run.scalars("loss").values.tolist() == [0.0] * 5 + [3.0] * 3
    assert "2 values were left out: their tag had a value at their step before" in run.info.notes


def test_broken_file_is_kept_up_to_where_it_breaks(torch_logs, tmp_path):
    (file,) = (torch_logs / "train").iterdir()
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2] + b"garbage!" + data[len(data) // 2 :])
    run = tdbg.import_run(torch_logs / "train", store=tmp_path / "run")
    assert 0 < len(run.scalars("loss")) < 5
    assert "was read up to" in run.info.notes


def test_torn_file_is_read_without_a_word(torch_logs, tmp_path):
    (file,) = (torch_logs / "train").iterdir()
    file.write_bytes(file.read_bytes()[:-3])
    run = tdbg.import_run(file, source="tensorboard", store=tmp_path / "run")
    assert len(run.scalars("loss")) == 5
    assert "broken" not in run.info.notes


@pytest.mark.parametrize("seed", range(20))
def test_changed_bytes_never_break_the_import(torch_logs, tmp_path, seed):
    random = np.random.default_rng(seed)
    (file,) = (torch_logs / "train").iterdir()
    data = bytearray(file.read_bytes()[:40_000])
    for at in random.integers(40, len(data), 6):
        data[at] = random.integers(256)
    file.write_bytes(bytes(data))
    try:
        tdbg.import_run(torch_logs / "train", store=tmp_path / "run")
    except ConfigError as error:
        assert "holds no scalar" in str(error)  # noqa: PT017 - most seeds raise nothing


@pytest.mark.parametrize(
    ("name", "data", "error", "sentence"),
    [
        ("events.out.tfevents.1", b"", ConfigError, "holds no scalar and no histogram"),
        ("events.out.tfevents.1", b"no records at all", ConfigError, "does not fit its checksum"),
        (
            "notes.txt",
            b"hello",
            NotFoundError,
            r"no file that can be imported; their names look like \*tfevents\*",
        ),
    ],
)
def test_files_without_anything_are_one_sentence(tmp_path, name, data, error, sentence):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / name).write_bytes(data)
    with pytest.raises(error, match=sentence):
        tdbg.import_run(tmp_path / "logs", store=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_tags_beyond_what_a_run_holds_are_left_out_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "MAX_TENSORS", 2)
    with (tmp_path / "events.out.tfevents.1").open("wb") as file:
        for step in range(3):
            for tag in ("a", "b", "c"):
                write_record(file, scalar_event(tag, step, 10**9, 1.0))
    run = tdbg.import_run(tmp_path, store=tmp_path / "run")
    assert run.tensor_names() == ["a", "b"]
    assert "3 values were left out: a run holds no more than 2 tags." in run.info.notes


def test_tensor_whose_shape_is_larger_than_any_is_left_out(tmp_path):
    sizes = b"".join(length_delimited(2, varint(1, 2**63)) for _ in range(20))
    tensor = varint(1, 1) + length_delimited(2, sizes)
    value = length_delimited(1, b"huge") + length_delimited(8, tensor)
    with (tmp_path / "events.out.tfevents.1").open("wb") as file:
        write_record(file, varint(2, 0) + length_delimited(5, length_delimited(1, value)))
        write_record(file, scalar_event("loss", 1, 10**9, 1.0))
    assert tdbg.import_run(tmp_path, store=tmp_path / "run").tensor_names() == ["loss"]


def test_nothing_there_is_one_sentence(tmp_path):
    with pytest.raises(NotFoundError, match="There is nothing at"):
        tdbg.import_run(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="There is no source 'wandb'; choose from tensorboard, trace"):
        tdbg.import_run(tmp_path, source="wandb")


def test_checksum_is_that_of_the_format():
    assert masked_crc(b"0x12345678") == 0x062DC0B3
