"""Trials over runs that grow, runs of several workers, runs of `attach`, and stores of the predecessor."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import tdbg_lab  # noqa: E402
import tdbg_lab.smdebug.pytorch as smd  # noqa: E402
from tdbg_lab.records import Mode  # noqa: E402
from tdbg_lab.smdebug.analysis.utils import no_refresh  # noqa: E402
from tdbg_lab.smdebug.core.access_layer.utils import has_training_ended  # noqa: E402
from tdbg_lab.smdebug.core.tensor import StepState  # noqa: E402
from tdbg_lab.smdebug.exceptions import (  # noqa: E402
    InvalidWorker,
    MissingCollectionFiles,
    NoMoreData,
    ShapeUnavailableForStep,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from tdbg_lab.smdebug.trials import LocalTrial, create_trial, waiting  # noqa: E402
from tdbg_lab.smdebug.trials.rows import reduced  # noqa: E402
from tdbg_lab.stats import summarize  # noqa: E402

modes = smd.modes


@pytest.fixture
def growing(net, tmp_path):
    """A hook that saves every second step, and a function that takes one step."""
    hook = smd.Hook(
        tmp_path / "run",
        save_config=smd.SaveConfig(save_interval=2),
        include_collections=["weights", "gradients"],
    )
    hook.register_module(net)
    criterion = nn.CrossEntropyLoss()
    hook.register_loss(criterion)

    def step(mode=modes.TRAIN):
        hook.set_mode(mode)
        criterion(net(torch.ones(2, 4)), torch.tensor([0, 1])).backward()

    yield hook, step
    hook.close()


def test_step_is_there_when_the_next_one_begins(growing, tmp_path):
    hook, step = growing
    step()
    step()
    trial = create_trial(tmp_path / "run")
    trial.wait_for_steps([0])  # raw values are written beside the training
    assert trial.steps() == [0]
    assert trial.has_passed_step(0) is StepState.AVAILABLE
    assert trial.has_passed_step(1) is StepState.NOT_YET_AVAILABLE
    step()  # step 2, open
    assert trial.has_passed_step(2) is StepState.NOT_YET_AVAILABLE
    loss = trial.tensor("CrossEntropyLoss_output_0")
    with pytest.raises(StepNotYetAvailable):
        loss.value(2)
    step()
    hook._recording._recorder.flush_waiting()
    trial.wait_for_steps([2])
    assert trial.has_passed_step(1) is StepState.UNAVAILABLE
    assert trial.has_passed_step(2) is StepState.AVAILABLE
    assert not trial.loaded_all_steps
    hook.close()
    assert trial.has_passed_step(4) is StepState.UNAVAILABLE
    assert trial.loaded_all_steps
    with pytest.raises(StepUnavailable, match="Step 1 of mode GLOBAL was not saved"):
        loss.value(1)


def test_trial_without_refresh_answers_from_what_it_has_seen(growing, tmp_path):
    hook, step = growing
    step()
    step()
    trial = create_trial(tmp_path / "run")
    trial.wait_for_steps([0])  # raw values are written beside the training
    with no_refresh(trial):
        assert trial.steps() == [0]
        step()
        hook.close()
        assert trial.steps() == [0]
    assert trial.steps() == [0, 2]


def test_wait_for_steps_returns_when_they_come(growing, tmp_path):
    hook, step = growing
    step()
    step()
    trial = create_trial(tmp_path / "run")
    done = threading.Event()
    waiting = threading.Thread(target=lambda: (trial.wait_for_steps([0, 2]), done.set()), daemon=True)
    waiting.start()
    step()
    hook.close()
    assert done.wait(60)
    with pytest.raises(NoMoreData, match="the last step saved is 2"):
        trial.wait_for_steps([100])
    with pytest.raises(StepUnavailable):
        trial.wait_for_steps([1])


def test_wait_for_steps_does_not_wait_for_raw_values_that_were_left_out(growing, tmp_path):
    hook, step = growing
    for _ in range(4):
        step()
    create_trial(tmp_path / "run").wait_for_steps([0])
    raw = tmp_path / "run" / "rank-00000" / "raw"
    while not (raw / "step-000000000002.safetensors").exists():
        time.sleep(0.01)
    (
        raw / "step-000000000000.safetensors"
    ).unlink()  # as when it is not written because too much waits for the disk
    trial = create_trial(tmp_path / "run")
    done = threading.Event()
    threading.Thread(target=lambda: (trial.wait_for_steps([0]), done.set()), daemon=True).start()
    assert done.wait(20)
    hook.close()


def test_create_trial_waits_for_a_run_and_says_so(growing, tmp_path, monkeypatch):
    hook, step = growing
    found = []
    told = []
    monkeypatch.setattr(waiting, "_SAY_AFTER_S", 0.15)
    monkeypatch.setattr(waiting._log, "warning", lambda *words: told.append(words[-1]))
    thread = threading.Thread(target=lambda: found.append(create_trial(tmp_path / "rum")), daemon=True)
    thread.start()
    thread.join(0.6)
    assert told == [f"a run at {tmp_path / 'rum'}"], "once, of a name that may be wrong"
    step()
    hook.close()
    (tmp_path / "run").rename(tmp_path / "rum")
    thread.join(60)
    assert found[0].steps() == [0]
    assert has_training_ended(str(tmp_path / "rum"))


def test_training_that_saved_nothing_is_told(tmp_path):
    (tmp_path / "training_job_end.ts").touch()
    with pytest.raises(MissingCollectionFiles):
        create_trial(tmp_path)


def test_modes_count_their_own_steps(growing, tmp_path):
    hook, step = growing
    for mode in [modes.TRAIN] * 3 + [modes.EVAL] * 3 + [modes.TRAIN] * 2:
        step(mode)
    hook.close()
    trial = create_trial(tmp_path / "run")
    assert trial.steps() == [0, 2, 3, 5, 7]
    assert trial.steps(modes.TRAIN) == [0, 2, 4]
    assert trial.steps(modes.EVAL) == [0, 2]
    assert [trial.mode(step) for step in (2, 3, 4)] == [modes.TRAIN, modes.EVAL, None]
    assert [trial.mode_step(step) for step in (5, 7)] == [2, 4]
    assert trial.global_step(modes.EVAL, 2) == 5
    assert trial.modes() == [modes.TRAIN, modes.EVAL]
    assert trial.tensor("gradient/Net_fc1.weight").steps() == [0, 2, 7]
    assert trial.tensor_names(mode=modes.EVAL) == [
        "CrossEntropyLoss_output_0",
        "Net_fc1.weight",
        "Net_fc2.weight",
    ]
    assert trial.tensor_names(mode=modes.PREDICT) == trial.tensor_names(step=1) == []
    assert trial.tensor_names(step=7, mode=modes.PREDICT) == []


def test_unset_mode_is_global_and_goes_by_the_model_in_the_run(net, train, tmp_path):
    hook = smd.Hook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=1), save_all=True)
    hook.register_module(net)
    net(torch.ones(1, 4))
    net.eval()
    net(torch.ones(1, 4))
    hook.close()
    trial = create_trial(tmp_path / "run")
    assert (trial.steps(), trial.modes(), trial.mode(1)) == ([0, 1], [], modes.GLOBAL)
    assert tdbg_lab.open_run(tmp_path / "run").modes() == [Mode.TRAIN, Mode.EVAL]


def test_reductions_that_were_not_saved_follow_from_statistics_where_exact(net, train, tmp_path):
    config = smd.ReductionConfig(reductions=["mean"])
    hook = smd.Hook(tmp_path / "run", include_collections=["weights"], reduction_config=config)
    hook.register_module(net)
    weight = net.fc1.weight.detach().numpy().astype(np.float64)
    train(net, nn.CrossEntropyLoss(), 1)
    hook.close()
    tensor = create_trial(tmp_path / "run").tensor("Net_fc1.weight")
    assert list(tensor.reduction_values(0)) == [("mean", False)]
    expected = {
        "min": weight.min(),
        "max": weight.max(),
        "std": weight.std(),
        "variance": weight.var(),
        "sum": weight.sum(),
        "l1": np.abs(weight).sum(),
        "l2": np.sqrt((weight**2).sum()),
    }
    for name, value in expected.items():
        assert float(tensor.reduction_value(0, name)) == pytest.approx(value, rel=1e-5), name
    for name, value in {"mean": np.abs(weight).mean(), "max": np.abs(weight).max()}.items():
        assert float(tensor.reduction_value(0, name, abs=True)) == pytest.approx(value, rel=1e-5), name
    for name, absolute in (("prod", False), ("std", True), ("min", True)):
        with pytest.raises(TensorUnavailableForStep, match=r"Net_fc1\.weight .*ask for reduction_value"):
            tensor.reduction_value(0, name, abs=absolute)
    with pytest.raises(ShapeUnavailableForStep):
        tensor.shape(0)
    with pytest.raises(TensorUnavailableForStep):
        tensor.value(0)
    with pytest.raises(TensorUnavailableForStep):
        tensor.values()
    with pytest.raises(SMDebugValueError, match="There is no reduction 'median'"):
        tensor.reduction_value(0, "median")


@pytest.mark.parametrize(
    "values",
    [[1.0, np.inf, -2.0], [np.inf, -np.inf], [np.nan, 1.0], [-np.inf], [0.0, -3.0, 2.0], [4.0], [2.0, 5.0]],
)
@pytest.mark.parametrize("absolute", [False, True])
def test_reduction_from_statistics_is_that_of_numpy(values, absolute):
    from tdbg_lab.smdebug.core.reductions import ALLOWED_REDUCTIONS, get_numpy_reduction
    from tdbg_lab.store.table import scalar_values  # noqa: F401 - the columns are those of a run

    block = summarize([np.array(values)])
    names = ("count", "nan_count", "pos_inf_count", "neg_inf_count", "zero_count")
    row = {name: float(getattr(block, name)[0]) for name in (*names, "min", "max", "mean", "std", "l1", "l2")}
    for name in (*ALLOWED_REDUCTIONS, "l1", "l2"):
        found = reduced(row, name, absolute=absolute, ddof=0)
        with np.errstate(all="ignore"):
            expected = get_numpy_reduction(name, np.array(values), abs=absolute)
        assert found is None or found == pytest.approx(expected, rel=1e-6, nan_ok=True), name


def test_range_of_steps_limits_everything(growing, tmp_path):
    hook, step = growing
    for _ in range(7):
        step()
    hook.close()
    trial = create_trial(tmp_path / "run", name="mine", range_steps=(2, 6))
    assert trial.name == "mine"
    assert trial.steps() == trial.tensor("Net_fc1.weight").steps() == [2, 4]
    assert trial.has_passed_step(0) is StepState.UNAVAILABLE
    assert trial.tensor_names(step=6) == []
    assert create_trial(tmp_path / "run", range_steps=(None, 3)).steps() == [0, 2]
    with pytest.raises(SMDebugValueError, match="the first step must come before the end"):
        create_trial(tmp_path / "run", range_steps=(5, 2))


def test_unknown_names_and_workers_are_told(growing, tmp_path):
    hook, step = growing
    step()
    hook.close()
    trial = create_trial(tmp_path / "run")
    with pytest.raises(TensorUnavailable, match="Tensor nothing was not saved"):
        trial.tensor("nothing")
    with pytest.raises(InvalidWorker, match="worker_9"):
        trial.tensor("Net_fc1.weight").value(0, worker="worker_9")
    with pytest.raises(SMDebugValueError, match="regex or collection, not both"):
        trial.tensor_names(regex="a", collection="b")
    with pytest.raises(SMDebugValueError, match="not a regular expression"):
        trial.tensor_names(regex="(")
    assert trial.collection("new").tensor_names == set()
    assert isinstance(trial, LocalTrial)


def test_all_workers_must_have_saved_a_step(tmp_path, monkeypatch):
    torch.manual_seed(0)
    hooks, models = [], []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "2")
        model = nn.Linear(2, 1)
        hook = smd.Hook(
            tmp_path / "run",
            include_workers="all",
            include_collections=["weights"],
            save_config=smd.SaveConfig(save_interval=1),
        )
        hook.register_module(model)
        hooks.append(hook)
        models.append(model)
        model(torch.ones(1, 2))
    for rank, steps in ((0, 3), (1, 2)):
        monkeypatch.setenv("RANK", str(rank))
        for _ in range(steps):
            models[rank](torch.ones(1, 2))
        hooks[rank]._recording._recorder.flush_waiting()
    trial = create_trial(tmp_path / "run")
    assert trial.workers() == ["worker_0", "worker_1"]
    assert trial.steps() == [0, 1]
    assert trial.steps(show_incomplete_steps=True) == [0, 1, 2]
    assert trial.has_passed_step(2) is StepState.NOT_YET_AVAILABLE
    assert trial.last_complete_step == 1
    weight = trial.tensor("Linear_weight")
    assert weight.workers(0) == ["worker_0", "worker_1"]
    for rank in range(2):
        value = weight.value(1, worker=f"worker_{rank}")
        np.testing.assert_array_equal(value, models[rank].weight.detach().numpy())
    for rank in (1, 0):
        monkeypatch.setenv("RANK", str(rank))
        hooks[rank].close()


def test_trial_over_a_run_of_attach_numbers_passes_between_steps(net, train, tmp_path):
    criterion = nn.CrossEntropyLoss()
    with tdbg_lab.attach(
        net, loss=criterion, store=tmp_path / "run", save_every=1, profiler=False, rules="none"
    ) as handle:
        train(net, criterion, 2)
        with handle.mode("eval"), torch.no_grad():
            criterion(net(torch.ones(2, 4)), torch.tensor([0, 1]))
        train(net, criterion, 1)
    trial = create_trial(tmp_path / "run")
    assert [(trial.mode(step), trial.mode_step(step)) for step in trial.steps()] == [
        (modes.TRAIN, 0),
        (modes.TRAIN, 1),
        (modes.EVAL, 2),
        (modes.TRAIN, 2),
    ]
    assert trial.tensor("loss/CrossEntropyLoss").steps() == [0, 1, 2, 3]
    assert trial.tensor("loss/CrossEntropyLoss").value(0).dtype == np.float32
    assert "fc1.weight" in trial.tensor_names(collection="weights")
    gradient = trial.tensor("gradient/fc1.weight")
    assert float(gradient.reduction_value(0, "mean", abs=True)) > 0


def test_foreign_plan_in_run_json_is_no_obstacle(growing, tmp_path):
    hook, step = growing
    step()
    hook.close()
    path = tmp_path / "run" / "run.json"
    value = json.loads(path.read_text())
    value["capture"]["smdebug"] = {"collections": {"a": 3}, "included": 4, "num_workers": "many"}
    path.write_text(json.dumps(value))
    trial = create_trial(tmp_path / "run")
    assert trial.steps() == [0]
    assert trial.tensor("Net_fc1.weight").steps() == [0]
