"""Layers have hooks of ours only while something of a layer is due."""

from __future__ import annotations

import pytest
import torch
from capture_training import Net, batch, train
from torch import nn


def hooks_of(model):
    return [len(one._forward_hooks) + len(one._forward_pre_hooks) for one in model.children()]


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net()


@pytest.fixture
def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.01)


def test_layers_have_no_hooks_in_steps_that_are_not_saved(attach, net, sgd):
    seen = []
    net.register_forward_pre_hook(lambda *_: seen.append(sum(hooks_of(net))))  # before ours
    handle = attach(net, optimizer=sgd, save_every=3)
    inside = []
    net.register_forward_pre_hook(lambda *_: inside.append(sum(hooks_of(net))))  # after ours
    train(net, sgd, 7)
    assert inside == [5, 0, 0, 5, 0, 0, 5]
    assert seen[1] == 0, "the step after a saved one begins without them: it may be compiled"
    assert handle.run.steps(tensor="activation/conv").tolist() == [0, 3, 6]
    handle.detach()
    assert sum(hooks_of(net)) == 0


def test_layers_keep_their_hooks_while_every_step_is_saved(attach, net, sgd):
    attach(net, optimizer=sgd, save_every=1)
    train(net, sgd, 3)
    assert hooks_of(net) == [1] * 5


@pytest.mark.parametrize("doubles", ["before", "after"])
def test_hooks_of_the_program_keep_their_place_beside_ours(attach, net, sgd, doubles):
    double = lambda _module, _args, output: output * 2  # noqa: E731 - a hook that changes what is seen
    if doubles == "before":
        net.head.register_forward_hook(double)
    handle = attach(net, optimizer=sgd, save_every=2)
    if doubles == "after":
        net.head.register_forward_hook(double)
    outputs = []
    net.register_forward_hook(lambda _module, _args, output: outputs.append(output.detach().clone()))
    train(net, sgd, 5)
    handle.detach()
    head = handle.run.tensor("activation/head")
    for step in (0, 2, 4):
        whole = outputs[step] if doubles == "before" else outputs[step] / 2
        assert float(head.stats(step).l2[0]) == pytest.approx(float(whole.norm()), rel=1e-6)


def test_hook_that_is_removed_within_its_own_call_changes_nothing(attach, net, sgd):
    handle = attach(net, optimizer=sgd, save_every=2)
    once = net.conv.register_forward_hook(lambda *_: once.remove())
    train(net, sgd, 3)
    assert handle.run.steps(tensor="activation/conv").tolist() == [0, 2]


def test_evaluation_is_seen_between_steps_that_are_not_saved(attach, net, sgd):
    handle = attach(net, optimizer=sgd, save_every=2)
    train(net, sgd, 2)
    net.eval()
    with torch.no_grad():
        net(batch(9)[0])
    net.train()
    train(net, sgd, 2)
    assert handle.run.steps(tensor="activation/conv", mode="eval").tolist() == [2]
    assert handle.run.steps(tensor="activation/conv").tolist() == [0, 2]


def test_model_that_is_one_layer_is_seen_again(attach):
    model = nn.Linear(4, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=sgd, save_every=2)
    for _ in range(4):
        model(torch.ones(3, 4)).sum().backward()
        sgd.step()
    assert handle.run.steps(tensor="activation/Linear").tolist() == [0, 2]
