"""Optimizers of fastai, which are none of PyTorch's: the real ones where it is installed, else alike."""

import copy
import gc
import pickle
import sys
import types
import weakref
from collections import defaultdict

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab

MODULE = "fastai.optimizer"


class Optimizer:
    """What fastai's has of itself: lists of parameters, settings beside them, and a step of its own."""

    def __init__(self, params, *, lr, mom=0.9, wd=0.01):
        self.param_lists, self.state = [list(params)], defaultdict(dict)
        self.hypers = [{"lr": lr, "mom": mom, "wd": wd}]

    def zero_grad(self):
        for params in self.param_lists:
            for value in params:
                value.grad = None

    def step(self):
        for params, hyper in zip(self.param_lists, self.hypers, strict=True):
            for value in params:
                value.data.mul_(1 - hyper["lr"] * hyper["wd"]).add_(value.grad, alpha=-hyper["lr"])


@pytest.fixture
def sgd(monkeypatch):
    """Makes an optimizer of fastai's."""
    try:
        from fastai.optimizer import SGD
    except Exception:  # it may be installed, and not what it stands on
        module = types.ModuleType(MODULE)
        module.Optimizer = type("Optimizer", (Optimizer,), dict(vars(Optimizer)))
        monkeypatch.setitem(sys.modules, MODULE, module)
        return module.Optimizer
    return SGD


def train(make, *, steps=6, passes=1, watch=None):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = make(list(net.parameters()), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    x, y = torch.randn(32, 4), torch.randint(0, 2, (32,))
    handle = None if watch is None else watch(net, optimizer)
    for step in range(steps):
        optimizer.hypers[0]["lr"] = 0.1 / (step + 1)
        for _ in range(passes):
            criterion(net(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    return net, optimizer, handle


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("passes", [1, 3])
def test_steps_are_the_optimizers(sgd, tmp_path, given, passes):
    bare, _, _ = train(sgd, passes=passes)

    def watch(net, optimizer):
        return tdbg_lab.attach(
            net,
            optimizer=optimizer if given else None,
            store=tmp_path / "run",
            save_every=1,
            profiler=False,
            strict=True,
        )

    net, optimizer, handle = train(sgd, passes=passes, watch=watch)
    handle.detach()
    assert not handle.problems
    run = tdbg_lab.open_run(tmp_path / "run")
    assert run.steps().tolist() == list(range(6))
    np.testing.assert_allclose(run.scalars("optimizer/lr/0").values, 0.1 / np.arange(1, 7))
    assert len(run.scalars("optimizer/grad_norm").values) == 6
    assert (run.scalars("optimizer/update_ratio/0.weight").values > 0).all()
    for one, other in zip(net.parameters(), bare.parameters(), strict=True):
        assert torch.equal(one, other)
    assert "tdbg" not in repr(sorted(vars(optimizer)))
    assert sys.modules[MODULE].Optimizer.step.__module__ in {MODULE, __name__}
    assert not hasattr(sys.modules[MODULE].Optimizer.step, "_tdbg_lab_listeners")


class Lookahead:
    """Has another optimizer make its steps, as fastai's does, and all that the other has."""

    def __init__(self, inner):
        self.opt = inner

    def __getattr__(self, name):
        return getattr(self.__dict__["opt"], name)

    def step(self):
        self.opt.step()


@pytest.mark.parametrize("given", [True, False])
def test_optimizer_around_another_is_one_with_it(sgd, tmp_path, given):
    kind = type("Lookahead", (Lookahead, sys.modules[MODULE].Optimizer), {})
    path = tmp_path / "run"

    def watch(net, optimizer):
        return tdbg_lab.attach(
            net, optimizer=optimizer if given else None, store=path, save_every=1, profiler=False, strict=True
        )

    _, _, handle = train(lambda params, lr: kind(sgd(params, lr=lr)), watch=watch)
    handle.detach()
    run = tdbg_lab.open_run(path)
    assert run.steps().tolist() == list(range(6))
    np.testing.assert_allclose(run.scalars("optimizer/lr/0").values, 0.1 / np.arange(1, 7))


def test_optimizer_around_another_is_found_as_one(sgd, watched):
    kind = type("Lookahead", (Lookahead, sys.modules[MODULE].Optimizer), {})
    (run,) = watched(lambda: train(lambda params, lr: kind(sgd(params, lr=lr))))
    assert run.steps().tolist() == list(range(6))
    np.testing.assert_allclose(run.scalars("optimizer/lr/0").values, 0.1 / np.arange(1, 7))


def test_training_that_nobody_attached_to_is_found(sgd, watched):
    (run,) = watched(lambda: train(sgd, passes=2))
    assert run.steps().tolist() == list(range(6))
    np.testing.assert_allclose(run.scalars("optimizer/lr/0").values, 0.1 / np.arange(1, 7))


def test_optimizer_is_not_kept_alive_and_is_what_it_was(sgd, tmp_path):
    net = nn.Linear(2, 2)
    optimizer = sgd(list(net.parameters()), lr=0.1)
    with tdbg_lab.attach(net, optimizer=optimizer, store=tmp_path / "run", profiler=False):
        net(torch.randn(4, 2)).sum().backward()
        optimizer.step()
        copy.deepcopy(optimizer).zero_grad()
        pickle.dumps(vars(optimizer)["hypers"])
    weak = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    assert weak() is None


def test_optimizer_that_is_made_after_attaching_is_awaited(sgd, tmp_path):
    """As a `Learner` makes its own when it begins to fit: batches before its first step are of that step."""
    net, x, y = nn.Linear(4, 2), torch.randn(8, 4), torch.randint(0, 2, (8,))
    with tdbg_lab.attach(net, store=tmp_path / "run", save_every=1, profiler=False, strict=True) as handle:
        optimizer = sgd(list(net.parameters()), lr=0.1)
        for _ in range(2):
            for _ in range(3):
                nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        assert handle.run.steps().tolist() == [0, 1]


def test_loss_is_the_module_within(sgd, monkeypatch):
    from tdbg_lab.capture.pytorch.libraries import as_pytorch

    if "fastai.losses" in sys.modules:
        from fastai.losses import CrossEntropyLossFlat as Loss
    else:
        losses = types.ModuleType("fastai.losses")
        losses.BaseLoss = Loss = type("BaseLoss", (), {"func": nn.CrossEntropyLoss()})
        monkeypatch.setitem(sys.modules, "fastai.losses", losses)
    assert isinstance(as_pytorch(Loss()), nn.CrossEntropyLoss)


def test_learning_rate_that_is_asked_for_reaches_it(sgd):
    from tdbg_lab.capture.pytorch.libraries import as_pytorch

    optimizer = sgd([nn.Parameter(torch.zeros(2))], lr=0.1)
    shown = as_pytorch(optimizer)
    shown.param_groups[0]["lr"] = 0.5
    assert optimizer.hypers[0]["lr"] == 0.5
    assert shown.param_groups[0]["lr"] == 0.5
    assert as_pytorch(optimizer) is shown
