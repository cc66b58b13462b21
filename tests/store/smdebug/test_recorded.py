"""Stores that smdebug itself recorded, compared with what its own reader makes of them.

``record.py`` and ``record_others.py`` in ``tests/data/smdebug`` record them and say with which
versions. When TDBG_SMDEBUG_PYTHON names an interpreter that has smdebug, stores are recorded and
read by it anew.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tdbg_lab.errors import StepNotFoundError
from tdbg_lab.records import Kind, Mode, RunStatus
from tdbg_lab.run import open_run
from tdbg_lab.store.smdebug import SmdebugStore
from tests.smdebug.predecessor import PREDECESSOR, needs_predecessor
from tests.store.smdebug.test_run import FRAMEWORKS
from tests.store.smdebug.writing import DTYPES, StoreWriter

DATA = Path(__file__).parents[2] / "data" / "smdebug"
OTHERS = ("xgboost", "mxnet", "tensorflow", "tensorflow_tape", "session", "estimator")
STORES = ("pytorch", "reductions", "shapes", "workers", "dtypes", *OTHERS)
UNREADABLE = {"int8": "|u1"}
"""Types that smdebug's reader takes for others."""


def check(folder: Path, name: str) -> None:
    """Compare every step, worker, value and reduction."""
    said: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    store = SmdebugStore(folder / name)
    assert store.problems == []
    assert store.steps() == said["steps"]
    assert {mode: store.steps(mode) for mode in store.modes()} == said["modes"]
    assert store.collection_workers == said["workers"]
    assert store.ended
    assert store.last_complete_step == said["steps"][-1]
    for collection, members in said["collections"].items():
        found = [tensor for tensor in store.names() if collection in store.collections_of(tensor)]
        assert found == members
    assert sorted(said["tensors"]) == store.names()
    for tensor, steps in said["tensors"].items():
        assert store.tensor_steps(tensor) == sorted(map(int, steps))
        for step, workers in steps.items():
            assert store.tensor_workers(tensor, int(step)) == sorted(workers)
            for worker, facts in workers.items():
                check_value(store, tensor, int(step), worker, facts)


def check_value(store: SmdebugStore, tensor: str, step: int, worker: str, facts: dict[str, Any]) -> None:
    if len(facts["value"]) == 3:
        dtype, shape, data = facts["value"]
        value = store.value(tensor, step, worker)
        assert (list(value.shape), value.tobytes().hex()) == (shape, data)
        assert value.dtype.str == dtype or UNREADABLE[value.dtype.name] == dtype
    elif facts["value"] == ["TensorUnavailableForStep"] and not store.has_value(tensor, step, worker):
        with pytest.raises(StepNotFoundError):
            store.value(tensor, step, worker)
    else:  # its reader does not know the type, or lost the value to the shape; ours has it
        assert store.value(tensor, step, worker).size
    reductions = store.reductions(tensor, step, worker)
    assert {f"{'abs_' if a else ''}{n}" for n, a in reductions} == facts["reductions"].keys()
    for reduction, of_abs in reductions:
        found = store.reduction(tensor, step, reduction, abs=of_abs, worker=worker)
        assert float(found) == facts["reductions"][f"{'abs_' if of_abs else ''}{reduction}"]


@pytest.mark.parametrize("name", STORES)
def test_store_reads_as_smdebug_reads_it(name: str) -> None:
    check(DATA, name)


@needs_predecessor
@pytest.mark.timeout(600)
def test_store_recorded_now_reads_as_smdebug_reads_it(tmp_path: Path) -> None:
    names = ("pytorch", "reductions", "dtypes")
    done = subprocess.run(
        [PREDECESSOR, str(DATA / "record.py"), str(tmp_path), *names],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for name in names:
        check(tmp_path, name)


@needs_predecessor
@pytest.mark.timeout(600)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_written_store_reads_as_smdebug_reads_it(tmp_path: Path, framework: str) -> None:
    """What the tests write for hooks that do not run here is a store to smdebug, too."""
    collections, names = FRAMEWORKS[framework]
    device = "_job-worker_replica-0_task-1_device-GPU-0"
    writer = StoreWriter(tmp_path / "store", collections, num_workers=2)
    for step in range(12):
        mode, mode_step = ("EVAL", step // 4) if step % 4 == 3 else ("TRAIN", step - (step + 1) // 4)
        for worker in ("worker_0", device):
            tensors = {name: np.full((2, 3), step, np.float32) for name in names}
            tensors["smdebug/reductions/abs_mean/reduced"] = np.float32(step)
            writer.write(step, tensors, mode=mode, mode_step=mode_step, worker=worker)
    writer.end()
    done = subprocess.run(
        [PREDECESSOR, str(DATA / "record.py"), "--describe", str(writer.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    check(tmp_path, "store")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_recorded_dtype_comes_back(dtype: str) -> None:
    value = SmdebugStore(DATA / "dtypes").value(dtype, 0)
    expected = (np.arange(6).reshape(2, 3) - 2) * (1 + 2j if dtype.startswith("complex") else 1)
    assert value.dtype == dtype
    np.testing.assert_array_equal(value, expected.astype(dtype))


def test_recorded_text_comes_back() -> None:
    assert SmdebugStore(DATA / "dtypes").value("text", 0).tolist() == ["a", "bé", ""]


def test_recorded_values_survive_saved_shapes() -> None:
    """smdebug's own reader loses them: the shape takes the place of the value."""
    store = SmdebugStore(DATA / "shapes")
    value = store.value("Net_conv.weight", 0)
    assert value.shape == store.shape("Net_conv.weight", 0) == (2, 1, 3, 3)


def test_recorded_training_is_a_run() -> None:
    run = open_run(DATA / "pytorch")
    assert run.info.framework == "pytorch"
    assert run.status is RunStatus.FINISHED
    assert run.modes() == [Mode.TRAIN, Mode.EVAL]
    assert run.steps(mode="eval").tolist() == [3, 4, 8, 9]
    kinds = {key.name: (key.kind, key.module, key.dtype, key.shape) for key in run.tensors()}
    assert kinds["Net_conv.weight"] == (Kind.WEIGHT, "conv", "float32", (2, 1, 3, 3))
    assert kinds["gradient/Net_fc.bias"] == (Kind.GRADIENT, "fc", "float32", (3,))
    assert kinds["relu_output_0"] == (Kind.ACTIVATION, "relu", "float32", (4, 2, 2, 2))
    assert kinds["CrossEntropyLoss_output_0"] == (Kind.LOSS, "CrossEntropyLoss", "float32", ())
    losses = run.scalars("CrossEntropyLoss_output_0").values
    assert losses[-1] < losses[0]
    assert len(run.tensor("relu_output_0").stats(0).channel_mean) == 2
    zeros = (run.tensor("relu_output_0").value(0) == 0).sum()
    assert run.tensor("relu_output_0").stats(0).zero_count[0] == zeros


def test_recorded_reductions_are_statistics() -> None:
    run = open_run(DATA / "reductions")
    raw = SmdebugStore(DATA / "pytorch").value("Net_conv.weight", 0)  # the same seed
    block = run.tensor("Net_conv.weight").stats(0)
    assert block.count[0] == raw.size
    assert block.mean[0] == pytest.approx(raw.mean(), rel=1e-5)
    assert block.l2[0] == pytest.approx(np.linalg.norm(raw), rel=1e-5)
    assert run.raw_names() == ["CrossEntropyLoss_output_0", "scalar/accuracy"]


def test_recorded_boosting_is_a_run() -> None:
    run = open_run(DATA / "xgboost")
    assert run.info.framework == "xgboost"
    assert run.steps().tolist() == [0, 2, 4]
    losses = run.scalars("train-logloss").values
    assert losses[-1] < losses[0]
    assert run.tensor_names(kind=Kind.LOSS) == ["train-logloss", "validation-logloss"]
    for step in run.steps():
        predictions, labels = (run.tensor(name).value(step) for name in ("predictions", "labels"))
        assert predictions.shape == labels.shape == (5,)
    assert run.tensor("full_shap/f0").value(4).shape == (20, 4)
    assert "Leaf" in run.tensor("trees/Feature").value(4).tolist()


def test_recorded_gluon_training_is_a_run() -> None:
    run = open_run(DATA / "mxnet")
    assert run.info.framework == "mxnet"
    assert (run.steps(mode="train").tolist(), run.steps(mode="eval").tolist()) == ([0, 1, 3], [2])
    kinds = {key.name: (key.kind, key.module, key.shape) for key in run.tensors()}
    assert kinds["conv0_weight"] == (Kind.WEIGHT, "conv0", (2, 1, 3, 3))
    assert kinds["gradient/dense0_bias"] == (Kind.GRADIENT, "dense0", (3,))
    assert kinds["conv0_relu_output_0"] == (Kind.ACTIVATION, "conv0_relu", (4, 2, 2, 2))
    of_samples = SmdebugStore(DATA / "mxnet").value("softmaxcrossentropyloss0_output_0", 0)
    loss = run.scalars("softmaxcrossentropyloss0_output_0", mode="train").values
    assert loss[0] == pytest.approx(of_samples.mean())
    assert loss[-1] < loss[0]


def test_recorded_keras_trainings_are_runs() -> None:
    fit, tape = open_run(DATA / "tensorflow"), open_run(DATA / "tensorflow_tape")
    assert fit.info.framework == tape.info.framework == "tensorflow"
    assert fit.modes() == [Mode.TRAIN, Mode.EVAL]
    kinds = {key.name: (key.kind, key.module, key.shape) for key in fit.tensors()}
    assert kinds["dense/weights/dense/kernel:0"] == (Kind.WEIGHT, "dense", (5, 4))
    assert kinds["Adam/learning_rate:0"] == (Kind.OPTIMIZER, "Adam", (1,))
    assert kinds["accuracy"] == (Kind.SCALAR, "", (1,))
    kinds = {key.name: (key.kind, key.module) for key in tape.tensors()}
    assert kinds["weights/dense/kernel:0"] == (Kind.WEIGHT, "dense")
    assert kinds["gradients/dense/biasGrad"] == (Kind.GRADIENT, "dense")
    assert not fit.problems
    assert not tape.problems
    losses = tape.scalars("loss").values
    assert losses[-1] < losses[0]


def test_recorded_trainings_of_tensorflow_1_are_runs() -> None:
    session, estimator = open_run(DATA / "session"), open_run(DATA / "estimator")
    assert session.info.framework == estimator.info.framework == "tensorflow"
    assert session.modes() == estimator.modes() == [Mode.TRAIN, Mode.EVAL]
    assert session.steps(mode="train").tolist() == [0, 2, 4]
    kinds = {key.name: (key.kind, key.module, key.shape) for key in session.tensors()}
    assert kinds == {
        "dense/weight:0": (Kind.WEIGHT, "dense", (5, 3)),
        "dense/bias:0": (Kind.BIAS, "dense", (3,)),
        "dense/output:0": (Kind.ACTIVATION, "dense", (4, 3)),
        "gradients/dense/MatMul_grad/tuple/control_dependency_1:0": (Kind.GRADIENT, "dense", (5, 3)),
        "gradients/dense/add_grad/tuple/control_dependency_1:0": (Kind.GRADIENT, "dense", (3,)),
        "loss:0": (Kind.LOSS, "", (1,)),
    }
    losses = session.scalars("loss:0").values
    assert losses[-1] < losses[0]
    reduced = estimator.stats("dense/kernel:0", ["mean", "max"])
    store = SmdebugStore(DATA / "estimator")
    assert reduced["mean"].tolist() == [store.reduction("dense/kernel:0", step, "mean") for step in (0, 2)]
    assert not session.problems
    assert not estimator.problems
