"""Stores of smdebug as runs: kinds, statistics, views, rules, lists."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tdbg_lab.errors import ConflictError, NotFoundError, StepNotFoundError
from tdbg_lab.records import Kind, Mode, RunStatus
from tdbg_lab.rules import run_rules
from tdbg_lab.run import Run, list_runs, open_run
from tdbg_lab.stats.reference import summarize_one
from tests.store.smdebug.writing import StoreWriter

PYTORCH = {
    "losses": {"include_regex": ["[Ll]oss_(?!input).*output"]},
    "weights": {"include_regex": ["^(?!gradient).*weight"]},
    "biases": {"include_regex": ["^(?!gradient).*bias"]},
    "gradients": {"include_regex": ["^gradient"]},
}
FRAMEWORKS = {
    "pytorch": (
        PYTORCH,
        {
            "Net_block.conv1.weight": (Kind.WEIGHT, "block.conv1"),
            "Net_block.conv1.bias": (Kind.BIAS, "block.conv1"),
            "gradient/Net_block.conv1.weight": (Kind.GRADIENT, "block.conv1"),
            "gradient/Net_fc.bias": (Kind.GRADIENT, "fc"),
            "block.conv1_output_0": (Kind.ACTIVATION, "block.conv1"),
            "block.conv1_input_0": (Kind.INPUT, "block.conv1"),
            "CrossEntropyLoss_output_0": (Kind.LOSS, "CrossEntropyLoss"),
            "CrossEntropyLoss_input_1": (Kind.INPUT, "CrossEntropyLoss"),
            "Net_bn.running_mean": (Kind.BUFFER, "bn"),
            "scalar/accuracy": (Kind.SCALAR, ""),
        },
    ),
    "mxnet": (
        {**PYTORCH, "losses": {"include_regex": [".*loss._(?!input).*output"]}},
        {
            "conv0_weight": (Kind.WEIGHT, "conv0"),
            "conv0_bias": (Kind.BIAS, "conv0"),
            "gradient/conv0_weight": (Kind.GRADIENT, "conv0"),
            "conv0_relu_output_0": (Kind.ACTIVATION, "conv0_relu"),
            "softmaxcrossentropyloss0_output_0": (Kind.LOSS, "softmaxcrossentropyloss0"),
        },
    ),
    "tensorflow": (
        {
            "losses": {"tensor_names": ["loss"]},
            "metrics": {"tensor_names": ["accuracy"]},
            "weights": {"tensor_names": ["dense/weights/dense/kernel:0"]},
            "biases": {"tensor_names": ["dense/weights/dense/bias:0"]},
            "gradients": {"tensor_names": ["gradients/dense/kernel:0Grad"]},
            "optimizer_variables": {"tensor_names": ["Adam/dense/kernel/m:0"]},
            "layers": {},
        },
        {
            "loss": (Kind.LOSS, ""),
            "accuracy": (Kind.SCALAR, ""),
            "dense/weights/dense/kernel:0": (Kind.WEIGHT, "dense"),
            "dense/weights/dense/bias:0": (Kind.BIAS, "dense"),
            "gradients/dense/kernel:0Grad": (Kind.GRADIENT, "dense"),
            "dense/outputs": (Kind.ACTIVATION, "dense"),
            "dense/inputs": (Kind.INPUT, "dense"),
            "Adam/dense/kernel/m:0": (Kind.OPTIMIZER, "Adam.dense.kernel"),
        },
    ),
    "xgboost": (
        {
            "metrics": {"include_regex": ["^[a-zA-z]+-[a-zA-z0-9]+$"]},
            "losses": {"include_regex": ["^[a-zA-z]+-.+(?<!(auc|map))$".replace("(auc|map)", "auc")]},
            "feature_importance": {"include_regex": ["^feature_importance/.*"]},
            "average_shap": {"include_regex": ["^average_shap/.*[^/bias]$"]},
            "trees": {"include_regex": ["^trees/.*"]},
        },
        {
            "train-rmse": (Kind.LOSS, ""),
            "validation-auc": (Kind.SCALAR, ""),
            "feature_importance/weight/f0": (Kind.SCALAR, "feature_importance.weight"),
            "average_shap/f1": (Kind.SCALAR, "average_shap"),
            "trees/Split": (Kind.CUSTOM, "trees"),
            "labels": (Kind.CUSTOM, ""),
        },
    ),
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_kinds_and_modules_follow_the_names_of_each_hook(tmp_path: Path, framework: str) -> None:
    collections, expected = FRAMEWORKS[framework]
    writer = StoreWriter(tmp_path / "store", collections)
    writer.write(0, dict.fromkeys(expected, np.ones(1, np.float32)))
    run = open_run(writer.path)
    assert run.info.framework == framework
    assert {key.name: (key.kind, key.module) for key in run.tensors()} == expected


def training(path: Path, steps: int = 30) -> tuple[StoreWriter, list[dict[str, np.ndarray]]]:
    """A store of a small training whose gradients vanish in the first layer, evaluated now and then."""
    random = np.random.default_rng(0)
    writer = StoreWriter(path, PYTORCH)
    written, mode_steps = [], {"TRAIN": 0, "EVAL": 0}
    for step in range(steps):
        mode = "EVAL" if step % 5 == 4 else "TRAIN"
        tensors = {"CrossEntropyLoss_output_0": np.float32(2.3 + 0.01 * random.normal())}
        for layer in range(4):
            small = np.float32(1e-9 if layer == 0 else 1)
            tensors[f"Net_fc{layer}.weight"] = random.normal(size=(8, 4)).astype(np.float32)
            if mode == "TRAIN":
                tensors[f"gradient/Net_fc{layer}.weight"] = small * random.normal(size=(8, 4)).astype(
                    np.float32
                )
            tensors[f"fc{layer}_output_0"] = random.normal(size=(16, 8)).astype(np.float32)
        writer.write(step, tensors, mode=mode, mode_step=mode_steps[mode])
        mode_steps[mode] += 1
        written.append(tensors)
    return writer, written


@pytest.fixture
def store(tmp_path: Path) -> tuple[Run, list[dict[str, np.ndarray]]]:
    writer, written = training(tmp_path / "store")
    writer.end()
    return open_run(writer.path), written


def test_run_has_global_steps_of_each_mode(store: tuple[Run, list[dict[str, np.ndarray]]]) -> None:
    run, written = store
    assert run.status is RunStatus.FINISHED
    assert run.modes() == [Mode.TRAIN, Mode.EVAL]
    assert run.steps(mode="eval").tolist() == [4, 9, 14, 19, 24, 29]
    assert run.last_step == 29
    assert run.first_time_ns == 1_600_000_000 * 10**9
    loss = run.scalars("CrossEntropyLoss_output_0", mode="train")
    values = [float(t["CrossEntropyLoss_output_0"]) for step, t in enumerate(written) if step % 5 != 4]
    assert loss.values.tolist() == values
    value = run.tensor("Net_fc1.weight").value(7)
    np.testing.assert_array_equal(value, written[7]["Net_fc1.weight"])
    assert run.raw_steps("Net_fc1.weight", mode="eval") == [4, 9, 14, 19, 24, 29]
    assert len(run.tensor("Net_fc1.weight").values()) == 24


def test_statistics_are_those_of_the_saved_values(store: tuple[Run, list[dict[str, np.ndarray]]]) -> None:
    run, written = store
    for name in ("gradient/Net_fc2.weight", "fc1_output_0"):
        block = run.tensor(name).stats(6)
        axis = 1 if name.startswith("fc1") else None
        expected = summarize_one(written[6][name], axis)
        for column in ("count", "min", "max", "hist_bins", "hist_counts"):
            np.testing.assert_array_equal(getattr(block, column), getattr(expected, column))
        for column in ("mean", "std", "l1", "l2", "channel_mean", "channel_zero_frac"):
            np.testing.assert_allclose(
                getattr(block, column), getattr(expected, column), rtol=1e-6, atol=1e-9
            )
    overview = run.overview(kind="gradient", column="rms", also=("q50",))
    assert overview.values.shape == (4, 24)
    rms = np.sqrt((written[0]["gradient/Net_fc0.weight"].astype(float) ** 2).mean())
    assert overview.values[0, 0] == pytest.approx(rms)
    series = run.tensor("Net_fc0.weight").histograms(n_out=5)
    assert len(series) == 5
    assert series.block.count.sum() == 24 * 32


def test_workers_are_ranks_that_merge(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", PYTORCH, num_workers=2)
    for step in range(3):
        for rank in range(2):
            tensors = {"fc_output_0": np.full((2, 3), rank + step, np.float32)}
            writer.write(step, tensors, worker=f"worker_{rank}")
    run = open_run(writer.path)
    assert run.ranks() == [0, 1]
    tensor = run.tensor("fc_output_0")
    assert tensor.value(1).tolist() == [[1] * 3, [1] * 3, [2] * 3, [2] * 3]
    assert tensor.value(1, rank=1).tolist() == [[2] * 3, [2] * 3]
    assert tensor.stats(1).mean[0] == 1.5
    assert tensor.stats(1, rank=0).mean[0] == 1.0
    assert tensor.stats(1).count[0] == 12


def test_reductions_fill_the_columns_they_tell(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", PYTORCH)
    values = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)
    reductions = {
        "min": values.min(),
        "max": values.max(),
        "mean": values.mean(),
        "variance": values.var(),
        "l2": np.linalg.norm(values),
        "abs_mean": np.abs(values).mean(),
    }
    names = {f"smdebug/reductions/{name}/Net_fc.weight": np.float32(v) for name, v in reductions.items()}
    writer.write(0, names, shapes={"Net_fc.weight": (5, 7)})
    writer.write(1, {"smdebug/reductions/mean/Net_fc.weight": np.float32(4)})
    run = open_run(writer.path)
    block = run.tensor("Net_fc.weight").stats(0)
    expected = summarize_one(values)
    for column in ("count", "min", "max", "mean", "std", "l1", "l2"):
        np.testing.assert_allclose(getattr(block, column), getattr(expected, column), rtol=1e-5)
    frame = run.stats("Net_fc.weight", ["mean", "std", "rms", "q50"])
    assert frame["mean"].tolist()[1] == 4
    assert frame["rms"][0] == pytest.approx(np.sqrt((values**2).mean()), rel=1e-5)
    assert np.isnan(frame["std"][1])
    assert frame["q50"].isna().all()  # there is no histogram
    assert run.raw_names() == []


def test_text_and_broken_values_leave_the_others(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", PYTORCH)
    writer.write(0, {"text": np.array(["a", "b"]), "x": np.arange(40, dtype=np.float32)})
    writer.write(1, {"x": np.arange(40, dtype=np.float32)})
    events = writer.path / "events/000000000001/000000000001_worker_0.tfevents"
    events.write_bytes(events.read_bytes()[:50])
    run = open_run(writer.path)
    assert run.tensor("x").stats(0).mean[0] == 19.5
    assert run.stats("x", "mean")["step"].tolist() == [0]
    assert "not numeric" in str(run.tensor("text").stats(0).reason(0))
    assert any("shorter than its index says" in problem for problem in run.problems)
    assert run.tensor("x").values().keys() == {0}


def test_live_store_is_followed(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", PYTORCH)
    writer.live()
    run = open_run(writer.path)
    assert run.status is RunStatus.RUNNING
    assert run.tensors() == []
    assert run.last_step == -1
    for step in range(3):
        writer.write(step, {"CrossEntropyLoss_output_0": np.float32(step)})
        version = run.version
        assert run.refresh()
        assert run.version > version
        assert run.scalars("CrossEntropyLoss_output_0").values.tolist() == list(range(step + 1))
        assert not run.refresh()
    assert run.tensors()[0].kind is Kind.LOSS
    (writer.path / "claim.smd").unlink()
    writer.end()
    assert run.refresh()
    assert run.status is RunStatus.FINISHED
    assert run.info.status is RunStatus.FINISHED


def test_silent_store_has_ended_or_crashed(tmp_path: Path) -> None:
    """Without a mark of its end, the age of what was written last decides."""
    writer, _ = training(tmp_path / "store", 3)
    assert open_run(writer.path).status is RunStatus.FINISHED
    (writer.path / "claim.smd").touch()
    assert open_run(writer.path).status is RunStatus.CRASHED
    writer.time_s = time.time()
    writer.write(9, {"x": np.float32(0)})
    assert open_run(writer.path).status is RunStatus.RUNNING


def test_every_view_draws_a_store(store: tuple[Run, list[dict[str, np.ndarray]]]) -> None:
    views = pytest.importorskip("tdbg_lab.views")
    run, _ = store
    for name, params in {
        "scalars": {},
        "histogram": {"tensor": "gradient/Net_fc1.weight"},
        "slices": {"tensor": "Net_fc1.weight"},
        "statistics": {"tensors": ["Net_fc1.weight"]},
        "overview": {},
        "distribution": {},
        "timeline": {},
        "rules": {},
    }.items():
        figure = views.call_view(run, name, params)
        assert figure.layout.meta["tdbg"]["view"] == name
    assert len(views.call_view(run, "scalars", {}).data) >= 1


def test_rules_find_vanishing_gradients_in_a_store(tmp_path: Path) -> None:
    writer, _ = training(tmp_path / "store", 45)
    findings = run_rules(writer.path, ["vanishing_gradient"])
    assert [finding.tensor for finding in findings] == ["gradient/Net_fc0.weight"]


def test_stores_are_listed_beside_runs(tmp_path: Path) -> None:
    from tdbg_lab.cli.group import tdbg
    from tdbg_lab.testing import fake_run

    fake_run(tmp_path / "own", steps=3)
    writer, _ = training(tmp_path / "job" / "debug-output", 12)
    found = {summary.info.name: summary for summary in list_runs(tmp_path)}
    assert found.keys() == {open_run(tmp_path / "own").info.name, "job/debug-output"}
    summary = found["job/debug-output"]
    assert summary.last_step == 11
    assert summary.status is RunStatus.FINISHED
    assert summary.info.id == open_run(writer.path).info.id
    shown = CliRunner().invoke(tdbg, ["runs", str(tmp_path)])
    assert "job/debug-output" in shown.output
    assert "pytorch" in shown.output


def test_requests_and_edits_say_what_is_possible(store: tuple[Run, list[dict[str, np.ndarray]]]) -> None:
    run, _ = store
    with pytest.raises(ConflictError, match="takes no requests: stop the training where it runs"):
        run.request_stop()
    run.edit(name="mine", tags=["old"])
    assert run.info.name == "mine"
    assert open_run(run.path).info.tags == ("old",)
    with pytest.raises(NotFoundError, match=r"run\.json is missing"):
        open_run(run.path / "events")


def test_kinds_follow_collections_that_come_late(tmp_path: Path) -> None:
    """smdebug writes its collections after the first step."""
    writer = StoreWriter(tmp_path / "store")
    writer.live()
    writer.write(0, {"CrossEntropyLoss_output_0": np.float32(1)})
    run = open_run(writer.path)
    assert run.tensors(kind="loss") == []
    writer.collections = PYTORCH
    writer.describe("worker_0")
    assert run.refresh()
    assert [key.collections for key in run.tensors(kind="loss")] == [("losses",)]
    assert run.info.framework == "pytorch"


def test_run_of_a_store_that_was_written_anew_begins_anew(tmp_path: Path) -> None:
    writer, _ = training(tmp_path / "store", 6)
    run = open_run(writer.path)
    shutil.rmtree(writer.path)
    StoreWriter(tmp_path / "store", PYTORCH).write(0, {"other": np.arange(3, dtype=np.float32)})
    assert run.refresh()
    assert run.tensor_names() == ["other"]
    assert run.steps().tolist() == [0]
    assert run.tensor("other").stats(0).mean[0] == 1


def test_history_of_one_tensor_reads_only_its_records(tmp_path: Path) -> None:
    """A store may be far larger than memory: statistics of a tensor must not touch the others."""
    writer, _ = training(tmp_path / "store", 20)
    run = open_run(writer.path)
    for events in writer.path.rglob("*.tfevents"):  # break every other record
        data = bytearray(events.read_bytes())
        for name in (b"Net_fc1", b"Net_fc2", b"Net_fc3", b"fc0_output"):
            data = data.replace(name, b"?" * len(name))
        events.write_bytes(bytes(data))
    assert len(run.stats("Net_fc0.weight", ["mean", "q50"])) == 16
    assert run.problems == []


def test_value_in_a_cut_event_file_is_said_to_be_unreadable_not_unsaved(tmp_path):
    shutil.copytree(Path(__file__).parents[2] / "data" / "smdebug" / "pytorch", tmp_path / "run")
    run = open_run(tmp_path / "run")
    name = "CrossEntropyLoss_output_0"
    step = run.raw_steps(name)[0]
    for file in (tmp_path / "run" / "events" / f"{step:012d}").iterdir():
        file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(StepNotFoundError, match=rf"cannot be read at step {step}: .* shorter than its index"):
        open_run(tmp_path / "run").tensor(name).value(step)
    with pytest.raises(StepNotFoundError, match="was not saved at step 4711"):
        run.tensor(name).value(4711)
