"""Activation functions called as functions: seen under the module that calls them, results unchanged."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from capture_training import batch, train
from torch import nn
from torch.nn import functional as F
from torch.overrides import _get_current_function_mode


class Functions(nn.Module):
    def __init__(self, act=F.relu):
        super().__init__()
        self.first, self.last, self.act = nn.Linear(64, 8), nn.Linear(8, 3), act

    def forward(self, x):
        return self.last(self.act(self.first(x.flatten(1))))


class Modules(Functions):
    def __init__(self):
        super().__init__(nn.ReLU())


RECTIFIERS = {
    "F.relu": F.relu,
    "F.relu in place": lambda x: F.relu(x, inplace=True),
    "F.relu_": F.relu_,
    "torch.relu": torch.relu,
    "x.relu": lambda x: x.relu(),
    "x.relu_": lambda x: x.relu_(),
    "x.clamp": lambda x: x.clamp(min=0),
    "torch.clamp": lambda x: torch.clamp(x, 0.0),
    "x.clamp_min": lambda x: x.clamp_min(0),
}


def trained(make, attach=None, **more):
    torch.manual_seed(5)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, **more) if attach else None
    losses = train(model, optimizer, 6)
    if handle:
        handle.detach()
    return losses, {n: v.clone() for n, v in model.state_dict().items()}, handle


@pytest.mark.parametrize("form", RECTIFIERS)
def test_a_rectifier_called_as_a_function_has_the_statistics_of_the_module(attach, tmp_path, form):
    seen = trained(lambda: Functions(RECTIFIERS[form]), attach, save_every=2)[2].run
    module = trained(Modules, attach, save_every=2, store=tmp_path / "module")[2].run
    columns = ["mean", "std", "l2", "zero_frac", "max", "q50"]
    (key,) = seen.tensors(regex="relu_0")
    (other,) = module.tensors(regex="^activation/act$")
    assert key.name == "activation/relu_0"
    assert "relu" in key.collections
    assert key.shape == other.shape
    ours, theirs = seen.stats(key.name, columns)[columns], module.stats(other.name, columns)[columns]
    assert np.allclose(ours, theirs, rtol=1e-6, atol=0)  # sums depend on where a tensor begins in memory
    rows = [run.tensor(name).stats(2) for run, name in ((seen, key.name), (module, other.name))]
    assert np.array_equal(rows[0].channel_zero_frac, rows[1].channel_zero_frac)


def test_training_is_the_same_to_the_bit(attach):
    bare, seen = trained(Functions), trained(Functions, attach)
    assert bare[0] == seen[0]
    assert all(torch.equal(value, seen[1][name]) for name, value in bare[1].items())
    assert _get_current_function_mode() is None


class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.layer, self.head = (
            Functions(F.gelu),
            nn.TransformerEncoderLayer(3, 1, 4),
            nn.Linear(3, 3),
        )

    def forward(self, x):
        x = F.softmax(torch.tanh(self.body(x)).sigmoid(), dim=1)
        x = F.relu(F.relu(x) - 0.3)
        return F.log_softmax(self.head(self.layer(x)), dim=1).clamp(-5, 5)


def test_each_function_is_named_by_its_caller_and_counted(attach):
    names = set(trained(Many, attach)[2].run.tensor_names(kind="activation"))
    expected = {"body.gelu_0", "tanh_0", "sigmoid_0", "softmax_0", "relu_0", "relu_1", "layer.relu_0"}
    assert {f"activation/{one}" for one in (*expected, "log_softmax_0")} <= names
    assert not any("softmax_1" in one or "clamp" in one for one in names)


def test_a_module_that_is_an_activation_is_seen_once(attach):
    names = trained(Modules, attach)[2].run.tensor_names(kind="activation")
    assert sorted(names) == [
        "activation/Modules",
        "activation/act",
        "activation/first",
        "activation/last",
    ] or (sorted(names) == ["activation/act", "activation/first", "activation/last"])


class MyRelu(nn.Module):
    def forward(self, x):
        return F.relu(x)


class Layer(nn.Module):
    """Without parts of its own, as a layer written by hand."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 64) * 0.1)

    def forward(self, x):
        return torch.tanh(x.flatten(1) @ self.weight.T) * 2


def test_a_layer_written_by_hand_shows_what_is_inside(attach):
    names = trained(lambda: nn.Sequential(Layer(), MyRelu()), attach)[2].run.tensor_names(kind="activation")
    assert sorted(names) == ["activation/0", "activation/0.tanh_0", "activation/1"]


def test_functions_are_looked_at_only_within_root_forwards_of_saved_steps(attach):
    active = []

    def act(x):
        active.append(_get_current_function_mode() is not None)
        return F.relu(x)

    trained(lambda: Functions(act), attach, save_every=3)
    assert active == [True, False, False, True, False, False]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_stays_active_after_a_forward_that_is_interrupted(attach, error):
    def act(x):
        if fails:
            raise error
        return F.relu(x)

    fails = True
    model = Functions(act)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    with pytest.raises(error):
        model(batch()[0])
    fails = False
    train(model, optimizer, 2)
    assert _get_current_function_mode() is None
    fails = True
    with pytest.raises(error):
        model(batch()[0])
    handle.detach()
    assert _get_current_function_mode() is None


def test_functions_can_be_left_out(attach):
    handle = trained(Functions, attach, config={"functional": False})[2]
    assert handle.run.tensor_names(regex="relu") == []


def test_raw_values_of_a_function_are_kept_when_wanted(attach):
    raw = [{"name": "acts", "kinds": "activation", "include": "relu", "values": "both"}]
    run = trained(Functions, attach, collections=raw)[2].run
    value = run.tensor("activation/relu_0").value(1)
    assert value.shape == (8, 8)
    assert value.min() == 0


def test_functions_are_looked_for_where_none_was_seen(attach):
    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            x = self.layer(x)
            return F.relu(x) if self.calls > 17 else x

    model = Late()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    handle = attach(model, optimizer=optimizer, save_every=1)
    for _ in range(24):
        model(torch.randn(8, 4)).sum().backward()
        optimizer.step()
    handle.detach()
    steps = handle.run.tensor("activation/relu_0").steps().tolist()
    assert steps == list(range(19, 24))  # after 16 steps without any, every fourth is looked at
