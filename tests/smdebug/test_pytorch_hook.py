"""The PyTorch hook: what it saves when, what it raises, and that training never notices it."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import tdbg_lab.smdebug.pytorch as smd  # noqa: E402
from tdbg_lab.errors import TrainingStopped  # noqa: E402
from tdbg_lab.records import Kind, RunStatus  # noqa: E402
from tdbg_lab.run import open_run  # noqa: E402
from tdbg_lab.smdebug.exceptions import (  # noqa: E402
    InvalidCollectionConfiguration,
    SMDebugError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)


@pytest.fixture
def hooked(net, tmp_path):
    def make(**kwargs):
        kwargs.setdefault("save_config", smd.SaveConfig(save_interval=2))
        hook = smd.Hook(tmp_path / "run", **kwargs)
        hook.register_module(net)
        criterion = nn.CrossEntropyLoss()
        hook.register_loss(criterion)
        return hook, criterion

    return make


def test_hook_saves_only_losses_by_default(hooked, net, train, tmp_path):
    hook, criterion = hooked()
    train(net, criterion, 5)
    hook.close()
    trial = smd.create_trial(tmp_path / "run")
    assert trial.tensor_names() == ["CrossEntropyLoss_output_0"]
    assert trial.steps() == [0, 2, 4]


def test_weights_are_those_before_the_step_and_gradients_those_of_it(hooked, net, train, tmp_path):
    hook, criterion = hooked(include_collections=["weights", "gradients"])
    before = net.fc1.weight.detach().numpy().copy()
    train(net, criterion, 1)
    hook.close()
    trial = smd.create_trial(tmp_path / "run")
    np.testing.assert_array_equal(trial.tensor("Net_fc1.weight").value(0), before)
    gradient = trial.tensor("gradient/Net_fc1.weight").value(0)
    np.testing.assert_array_equal(gradient, net.fc1.weight.grad.numpy())


def test_training_is_bitwise_the_same_with_a_hook(hooked, net, train):
    plain = copy.deepcopy(net)
    train(plain, nn.CrossEntropyLoss(), 6)
    hook, criterion = hooked(save_all=True)
    train(net, criterion, 6)
    hook.close()
    for name, value in plain.state_dict().items():
        assert torch.equal(value, net.state_dict()[name]), name


def test_run_of_a_hook_is_a_run_like_any_other(hooked, net, train, tmp_path):
    hook, criterion = hooked(save_all=True)
    train(net, criterion, 3)
    hook.close()
    run = open_run(tmp_path / "run")
    assert run.status is RunStatus.FINISHED
    assert run.info.framework == "pytorch"
    kinds = {key.name: key.kind for key in run.tensors()}
    assert kinds["Net_fc1.weight"] is Kind.WEIGHT
    assert kinds["Net_fc1.bias"] is Kind.BIAS
    assert kinds["gradient/Net_fc1.weight"] is Kind.GRADIENT
    assert kinds["relu_output_0"] is Kind.ACTIVATION
    assert kinds["fc2_input_0"] is Kind.INPUT
    assert kinds["CrossEntropyLoss_output_0"] is Kind.LOSS
    assert run.tensors(module="fc1", kind="gradient")
    assert run.scalars("CrossEntropyLoss_output_0").steps.tolist() == [0, 2]


def test_include_regex_goes_to_the_default_collection(hooked, net, train, tmp_path):
    hook, criterion = hooked(include_regex=["relu_output"])
    assert hook.get_collection("default").include_regex == ["relu_output"]
    train(net, criterion, 1)
    hook.close()
    assert smd.create_trial(tmp_path / "run").tensor_names(collection="default") == ["relu_output_0"]


def test_collection_has_its_own_schedule(hooked, net, train, tmp_path):
    hook, criterion = hooked(include_collections=["weights"])
    hook.get_collection("weights").save_config = smd.SaveConfig(save_interval=3)
    train(net, criterion, 7)
    hook.close()
    trial = smd.create_trial(tmp_path / "run")
    assert trial.tensor("Net_fc1.weight").steps() == [0, 3, 6]
    assert trial.tensor("CrossEntropyLoss_output_0").steps() == [0, 2, 4, 6]


def test_module_called_twice_goes_on_counting(tmp_path):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3)

        def forward(self, x):
            return self.a(self.a(x))

    model = Twice()
    hook = smd.Hook(tmp_path / "run", save_all=True)
    hook.register_module(model)
    model(torch.ones(2, 3))
    hook.close()
    names = smd.create_trial(tmp_path / "run").tensor_names(regex="^a_")
    assert names == ["a_input_0", "a_input_1", "a_output_0", "a_output_1"]


def test_mappings_and_keyword_arguments_are_saved(tmp_path):
    class Keyed(nn.Module):
        def forward(self, x, *, mask=None):
            return {"logits": x * mask, "hidden": (x, mask)}

    model = Keyed()
    hook = smd.Hook(tmp_path / "run", save_all=True)
    hook.register_module(model)
    model(torch.ones(2), mask=torch.zeros(2))
    hook.close()
    names = smd.create_trial(tmp_path / "run").tensor_names()
    assert names == ["Keyed_input_0", "Keyed_input_1", "Keyed_output_0", "Keyed_output_1", "Keyed_output_2"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int8, torch.int16, torch.bool])
def test_every_dtype_comes_back(tmp_path, dtype):
    class Same(nn.Module):
        def forward(self, x):
            return x

    model = Same()
    hook = smd.Hook(tmp_path / "run", save_all=True)
    hook.register_module(model)
    value = torch.tensor([-1, 0, 2]).to(dtype)
    model(value)
    hook.close()
    found = smd.create_trial(tmp_path / "run").tensor("Same_output_0").value(0)
    assert found.astype(float).tolist() == value.to(torch.float64).tolist()


def test_values_and_shape_are_saved_together(hooked, net, train, tmp_path):
    hook, criterion = hooked(
        include_collections=["weights"],
        reduction_config=smd.ReductionConfig(save_raw_tensor=True, save_shape=True),
    )
    train(net, criterion, 1)
    hook.close()
    tensor = smd.create_trial(tmp_path / "run").tensor("Net_fc1.weight")
    assert tensor.value(0).shape == tensor.shape(0) == (5, 4)


def test_saved_reductions_are_those_of_torch(hooked, net, train, tmp_path):
    names = ["min", "max", "mean", "std", "variance", "sum", "prod"]
    config = smd.ReductionConfig(
        reductions=names, abs_reductions=names, norms=["l1", "l2"], abs_norms=["l1", "l2"]
    )
    hook, criterion = hooked(include_collections=["weights"], reduction_config=config)
    weight = net.fc1.weight.detach().double().clone()
    train(net, criterion, 1)
    hook.close()
    found = smd.create_trial(tmp_path / "run").tensor("Net_fc1.weight").reduction_values(0)
    assert len(found) == 18
    for (name, absolute), value in found.items():
        of = weight.abs() if absolute else weight
        expected = {
            "variance": of.var,
            "l1": lambda of=of: of.abs().sum(),
            "l2": lambda of=of: of.square().sum().sqrt(),
        }.get(name) or getattr(of, name)
        assert float(value) == pytest.approx(float(expected()), rel=1e-5), (name, absolute)


def test_custom_tensors_and_scalars_go_with_the_next_saved_step(hooked, net, train, tmp_path):
    hook, criterion = hooked()

    def after(step, _loss):
        hook.save_tensor("mine", torch.full((2,), float(step)), ["a", "b"])
        hook.save_scalar("step", step)
        hook.save_scalar("half", torch.tensor(step / 2))

    train(net, criterion, 6, after=after)
    hook.close()  # after a step that is not saved: only numbers are written
    trial = smd.create_trial(tmp_path / "run")
    assert {step: value.tolist() for step, value in trial.tensor("mine").values().items()} == {
        0: [0.0, 0.0],
        2: [2.0, 2.0],
        4: [4.0, 4.0],
    }
    assert trial.tensor_names(collection="a") == trial.tensor_names(collection="b") == ["mine"]
    assert trial.tensor("scalar/step").value(4).tolist() == [4]
    assert trial.tensor("scalar/step").steps() == [0, 2, 4, 5]
    assert trial.tensor("scalar/half").value(2).shape == ()
    assert trial.tensor("scalar/half").value(2) == 1.0


def test_record_tensor_value_saves_the_value_of_a_loss_function(net, train, tmp_path):
    hook = smd.Hook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=1))
    hook.register_module(net)
    seen = []

    def criterion(output, target):
        loss = nn.functional.cross_entropy(output, target)
        hook.record_tensor_value(tensor_name="loss", tensor_value=loss)
        seen.append(loss.item())
        return loss

    train(net, criterion, 3)
    hook.close()
    found = smd.create_trial(tmp_path / "run").tensor("loss_output_0").values()
    assert [value.item() for value in found.values()] == seen


def test_json_file_makes_the_hook(tmp_path, monkeypatch):
    config = {
        "LocalPath": str(tmp_path / "Run"),
        "HookParameters": {
            "include_regex": "fc,act",
            "save_interval": "2",
            "eval.save_interval": "3",
            "save_steps": "1",
            "reductions": "mean,abs_max",
            "save_raw_tensor": "true",
            "include_workers": "all",
        },
        "CollectionConfigurations": [
            {
                "CollectionName": "weights",
                "CollectionParameters": {"save_interval": "1", "train.end_step": "4"},
            },
            {
                "CollectionName": "Mine",
                "CollectionParameters": {"include_regex": "R1,r2", "reductions": "min"},
            },
        ],
    }
    path = tmp_path / "hook.json"
    path.write_text(json.dumps(config))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(path))
    (tmp_path / "tensorboard.json").write_text(json.dumps({"LocalPath": str(tmp_path / "Board")}))
    monkeypatch.setenv("TENSORBOARD_CONFIG_FILE_PATH", str(tmp_path / "tensorboard.json"))
    hook = smd.get_hook(create_if_not_exists=True)
    assert hook is smd.get_hook()
    assert hook.out_dir == str(tmp_path / "Run")
    assert hook.tensorboard_dir == str(tmp_path / "Board")
    assert hook.include_workers == "all"
    assert hook.reduction_config.abs_reductions == ["max"]
    assert hook.reduction_config.save_raw_tensor
    assert set(hook.include_collections) == {"losses", "weights", "Mine", "default"}
    assert hook.get_collection("Mine").include_regex == ["R1", "r2"]
    assert hook.save_config.get_save_config(smd.modes.EVAL).save_interval == 3
    train_steps = hook.get_collection("weights").save_config.get_save_config(smd.modes.TRAIN)
    assert (train_steps.save_interval, train_steps.save_steps, train_steps.end_step) == (1, [1], 4)
    assert hook.get_collection("weights").save_config.get_save_config(smd.modes.EVAL).save_interval == 1


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ('{"CollectionConfigurations": [{"Nope": 1}]}', "has no CollectionName"),
        ("{", "is not valid JSON"),
        ("[]", "is not an object in JSON"),
        ('{"HookParameters": 3}', "HookParameters is 3 (int); expected an object."),
        ('{"HookParameters": {"save_all": "perhaps"}}', "save_all is 'perhaps' (str); expected true"),
        ('{"HookParameters": {"save_steps": "a,b"}}', "save_steps is 'a,b' (str); expected steps"),
        ('{"LocalPath": "run", "HookParameters": {"include_workers": "two"}}', "include_workers is 'two'"),
    ],
)
def test_wrong_json_is_told_in_one_sentence(tmp_path, config, sentence):
    path = tmp_path / "hook.json"
    path.write_text(config)
    with pytest.raises(SMDebugValueError) as raised:
        smd.Hook.create_from_json_file(str(path))
    assert sentence in str(raised.value)


def test_use_smdebug_switches_the_hook_of_the_environment_off(tmp_path, monkeypatch):
    path = tmp_path / "hook.json"
    path.write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(path))
    monkeypatch.setenv("USE_SMDEBUG", "0")
    assert smd.get_hook(create_if_not_exists=True) is None


def test_empty_collection_is_told_at_the_first_step(hooked, net):
    hooked(include_collections=["mine"])
    with pytest.raises(InvalidCollectionConfiguration, match="Collection mine chooses no tensor"):
        net(torch.ones(1, 4))


def test_compiled_model_has_the_names_and_layers_of_the_model(net, train, tmp_path):
    ran = []

    def backend(graph, _inputs):
        return lambda *values: (ran.append(True), graph(*values))[1]

    hook = smd.Hook(
        tmp_path / "run",
        save_config=smd.SaveConfig(save_interval=3),
        include_collections=["weights", "gradients"],
        include_regex=["relu_output"],
    )
    compiled = torch.compile(net, backend=backend)
    hook.register_module(compiled)
    train(compiled, nn.CrossEntropyLoss(), 6)
    hook.close()
    assert len(ran) == 4, "steps that are not saved stay compiled"
    trial = smd.create_trial(tmp_path / "run")
    assert trial.steps() == [0, 3]
    assert trial.tensor("relu_output_0").value(3).shape == (6, 5)
    weights = ["Net_fc1.weight", "Net_fc2.weight"]
    assert trial.tensor_names(collection="weights") == weights
    assert set(trial.tensor_names(collection="gradients")) > {f"gradient/{name}" for name in weights}


def test_model_that_only_compiled_code_calls_is_told(hooked, net, train, caplog):
    hook, criterion = hooked()
    train(torch.compile(net, backend="eager"), criterion, 3)
    hook.close()
    assert "Register what torch.compile returns" in caplog.text


def test_finished_directory_is_not_written_again(hooked, net, train, tmp_path):
    hook, criterion = hooked()
    train(net, criterion, 1)
    hook.close()
    with pytest.raises(SMDebugRuntimeError, match="holds an earlier run"):
        smd.Hook(tmp_path / "run")
    smd.Hook(tmp_path / "other")  # the failure leaves nothing behind that harms the next


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda hook: smd.Hook(), SMDebugRuntimeError),
        (lambda hook: hook.register_module(3), SMDebugError),
        (lambda hook: hook.register_module(nn.Linear(2, 2)), SMDebugRuntimeError),
        (lambda hook: hook.register_loss(nn.functional.mse_loss), SMDebugError),
        (lambda hook: hook.set_mode("train"), SMDebugValueError),
        (lambda hook: hook.save_scalar("a", np.ones(3)), SMDebugTypeError),
        (lambda hook: hook.add_collection("x"), SMDebugTypeError),
        (lambda hook: hook.get_collection("x", create=False), SMDebugError),
    ],
)
def test_wrong_call_is_told(hooked, wrong, error):
    hook, _ = hooked()
    with pytest.raises(error):
        wrong(hook)


def test_registering_a_module_twice_is_once(hooked, net, train, tmp_path):
    hook, criterion = hooked(save_all=True)
    hook.register_module(net)
    train(net, criterion, 1)
    hook.close()
    assert smd.create_trial(tmp_path / "run").tensor_names(regex="^fc1_output") == ["fc1_output_0"]


def test_frozen_parameters_are_no_obstacle(hooked, net, train, tmp_path):
    net.fc1.weight.requires_grad = False
    hook, criterion = hooked(save_all=True)
    train(net, criterion, 1)
    hook.close()
    trial = smd.create_trial(tmp_path / "run")
    assert trial.has_tensor("Net_fc1.weight")
    assert not trial.has_tensor("gradient/Net_fc1.weight")


def test_copied_and_pickled_model_takes_no_hook_along(hooked, net, train, tmp_path):
    hook, criterion = hooked(save_all=True)
    twin = copy.deepcopy(net)
    train(net, criterion, 1)
    pickle.loads(pickle.dumps(net.fc1.state_dict()))
    assert b"tdbg" not in pickle.dumps(net.fc1)
    twin(torch.ones(1, 4))
    assert torch.jit.script(net.fc1)(torch.ones(1, 4)).shape == net.fc1(torch.ones(1, 4)).shape
    hook.close()
    assert smd.create_trial(tmp_path / "run").steps() == [0]


def test_dry_run_writes_nothing(hooked, net, train, tmp_path):
    hook, criterion = hooked(dry_run=True, save_all=True)
    train(net, criterion, 2)
    hook.close()
    assert not (tmp_path / "run").exists()


def test_switch_turns_every_hook_off(hooked, net, train, tmp_path, monkeypatch):
    monkeypatch.setenv("TDBG_DISABLED", "1")
    hook, criterion = hooked(save_all=True)
    train(net, criterion, 2)
    hook.close()
    assert not (tmp_path / "run").exists()


def test_directory_that_cannot_be_made_does_not_stop_training(net, train, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    hook = smd.Hook(tmp_path / "file" / "run", save_all=True)
    hook.register_module(net)
    train(net, nn.CrossEntropyLoss(), 2)
    hook.close()
    assert "is off from now on; training goes on" in caplog.text


def test_closed_hook_is_gone_from_the_model(hooked, net, train, tmp_path):
    hook, criterion = hooked()
    train(net, criterion, 1)
    hook.close()
    hook.close()
    train(net, criterion, 3)
    assert smd.create_trial(tmp_path / "run").steps() == [0]
    assert not net._forward_hooks
    assert not net._forward_pre_hooks


def test_stop_request_ends_training_before_the_next_step(hooked, net, train, tmp_path):
    hook, criterion = hooked()

    def after(step, _loss):
        if step == 1:
            open_run(tmp_path / "run").request_stop("enough")
            hook._recording._control._next_s = 0.0  # requests are looked for every 0.2 s

    with pytest.raises(TrainingStopped, match="enough"):
        train(net, criterion, 50, after=after)
    run = open_run(tmp_path / "run")
    assert run.status is RunStatus.STOPPED
    assert run.last_step == 0


def test_event_files_for_tensorboard_are_written_when_the_hook_is_closed(net, train, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    hook = smd.Hook(
        tmp_path / "run",
        export_tensorboard=True,
        include_collections=["weights"],
        save_config=smd.SaveConfig(save_interval=2),
    )
    criterion = nn.CrossEntropyLoss()
    hook.register_module(net)
    hook.register_loss(criterion)
    train(net, criterion, 5)
    hook.close()
    assert hook.tensorboard_dir == str(tmp_path / "run" / "tensorboard")
    (folder,) = {path.parent for path in Path(hook.tensorboard_dir).rglob("*tfevents*")}
    found = accumulator.EventAccumulator(str(folder)).Reload()
    tags = found.Tags()
    assert [one.step for one in found.Scalars("CrossEntropyLoss_output_0")] == [0, 2, 4]
    assert "Net_fc1.weight" in tags["histograms"]
    assert smd.create_trial(tmp_path / "run").steps() == [0, 2, 4]


def test_event_files_that_cannot_be_written_disturb_nobody(net, train, tmp_path):
    (tmp_path / "taken").write_text("a file")
    hook = smd.Hook(tmp_path / "run", tensorboard_dir=tmp_path / "taken")
    hook.register_module(net)
    train(net, nn.CrossEntropyLoss(), 2)
    hook.close()
    assert "is a file" in hook._guard.problems["tensorboard"].message
    assert smd.create_trial(tmp_path / "run").steps() == []
