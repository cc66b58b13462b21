"""Training with capture is, bit for bit, training without it."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import re

import pytest
import torch
from capture_training import Net, batch, train
from torch import nn
from torch.jit import script
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw-fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "rmsprop-foreach": lambda p: torch.optim.RMSprop(p, lr=0.01, foreach=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
}


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 6, batch_first=True, num_layers=2, dropout=0.2)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        y, _ = self.lstm(x[:, 0])
        return self.head(y[:, -1])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.layer(x[:, 0]).mean(1))


MODELS = {"conv": Net, "lstm": Recurrent, "transformer": Transformer}


def state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def run(make_model, make_optimizer, steps=12, **attach):
    torch.manual_seed(7)
    model = make_model()
    optimizer = make_optimizer(model.parameters())
    handle = attach.pop("attach", None)
    handle = handle(model, optimizer=optimizer, **attach) if handle else None
    losses = train(model, optimizer, steps)
    rng = torch.get_rng_state()
    if handle is not None:
        handle.detach()
    return state(model), losses, rng


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_weights_are_bitwise_the_same_with_everything_captured(attach, model, optimizer):
    everything = [
        "default",
        "inputs",
        "buffers",
        {"name": "raw", "include": ".", "values": "both", "sample_rows": 3},
    ]
    bare = run(MODELS[model], OPTIMIZERS[optimizer])
    seen = run(MODELS[model], OPTIMIZERS[optimizer], attach=attach, collections=everything)
    assert bare[1] == seen[1]
    assert torch.equal(bare[2], seen[2]), "the random number generator was touched"
    for name, value in bare[0].items():
        assert torch.equal(value, seen[0][name]), name


def hook_counts(model, *optimizers):
    counts = [
        len(module.__dict__[name])
        for module in model.modules()
        for name in module.__dict__
        if name.endswith("_hooks") and isinstance(module.__dict__[name], dict)
    ]
    for optimizer in optimizers:
        counts += [len(optimizer._optimizer_step_pre_hooks), len(optimizer._optimizer_step_post_hooks)]
    return [*counts, len(_global_optimizer_pre_hooks), len(_global_optimizer_post_hooks)]


@pytest.mark.parametrize("given", [True, False], ids=["optimizer given", "optimizer found"])
def test_all_hooks_are_gone_after_detach(attach, given):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = hook_counts(model, optimizer)
    handle = attach(model, optimizer=optimizer if given else None, collections=["default", "inputs"])
    train(model, optimizer, 2)
    assert hook_counts(model, optimizer) != before
    handle.detach()
    assert hook_counts(model, optimizer) == before
    assert not handle.attached
    handle.detach()


def test_no_cycle_keeps_model_or_handle_alive(attach):
    import weakref

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    train(model, optimizer, 2)
    engine = weakref.ref(handle._engine)
    dead = weakref.ref(model), weakref.ref(handle)
    gc.collect()
    gc.disable()
    try:
        handle.detach()
        del model, optimizer, handle
        assert [one() for one in dead] == [None, None]
        assert engine() is None
    finally:
        gc.enable()


def test_run_is_finished_when_model_dies_without_detach(attach):
    from tdbg_lab import open_run

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = attach(model, optimizer=optimizer).run_path  # nobody keeps the handle
    train(model, optimizer, 2)
    assert str(open_run(path).status) == "running"
    del model, optimizer
    gc.collect()
    run = open_run(path)
    assert str(run.status) == "finished"
    assert run.last_step == 1


def test_copies_and_pickles_of_a_model_carry_no_capture(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    twin = copy.deepcopy(model)
    thawed = pickle.loads(pickle.dumps(model))
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    for one in (twin, thawed, loaded):
        one(batch()[0])
    assert b"tdbg" not in pickle.dumps(model)  # it loads where we are not installed
    assert b"tdbg" not in pickle.dumps(twin)
    train(model, optimizer, 1)
    handle.detach()
    names = handle.run.tensor_names(kind="activation")
    assert names == [f"activation/{part}" for part in ("conv", "norm", "relu", "drop", "head")]
    assert handle.run.tensor("activation/conv").stats(0).count[0] == 8 * 4 * 6 * 6


def test_a_model_and_a_copy_of_it_can_be_scripted_as_without_capture(attach):
    model = Net().eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    x = batch()[0]
    twin = copy.deepcopy(model)
    for one in (model, twin):
        assert torch.equal(torch.jit.script(one)(x), model(x))
    Numbers = list[int]

    @torch.jit.script
    class Pair:
        def __init__(self, numbers: Numbers):
            self.numbers = numbers

    assert Pair([1, 2]).numbers == [1, 2]
    assert torch.equal(script(model)(x), model(x))  # a name that was imported before anybody listened
    train(model.train(), optimizer, 2)
    handle.detach()
    assert handle.run.tensor("activation/conv").steps(mode="train").tolist() == [0, 1]
    assert torch.equal(torch.jit.script(twin)(x), twin(x))
    assert torch.jit.script(model).conv is not None


def test_a_trace_in_mid_training_is_as_without_capture(attach):
    """What is read of a tensor would be written down in the trace."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = batch()[0]
    bare = str(torch.jit.trace(model.eval(), x).inlined_graph)
    handle = attach(model.train(), optimizer=optimizer)
    train(model, optimizer, 2)
    traced = str(torch.jit.trace(model.eval(), x).inlined_graph)
    train(model.train(), optimizer, 2)
    handle.detach()
    assert _without_numbers(traced) == _without_numbers(bare)
    assert handle.run.tensor("activation/conv").steps(mode="train").tolist() == [0, 1, 2, 3]


def _without_numbers(graph: str) -> str:
    return re.sub(r"(___torch_mangle_)?\d+|\w+\.py:.*", "", graph)


def test_user_hooks_stay_after_detach(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    calls = []
    model.conv.register_forward_hook(lambda *_: calls.append("forward"))
    optimizer.register_step_post_hook(lambda *_: calls.append("step"))
    attach(model, optimizer=optimizer).detach()
    train(model, optimizer, 1)
    assert calls == ["forward", "step"]
