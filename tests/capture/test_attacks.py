"""Training on inputs that were changed to mislead the model, which is in eval mode while they are."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.capture.test_checks import batch, facts


@pytest.fixture
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))


def mislead(net, x, y, *, by_backward):
    """One step along the sign of the gradient (Goodfellow et al., 2015, equation in section 4)."""
    x = x.clone().requires_grad_()
    loss = F.cross_entropy(net(x), y)
    if by_backward:
        loss.backward()
        gradient = x.grad
    else:
        (gradient,) = torch.autograd.grad(loss, x)
    return (x + 0.1 * gradient.sign()).detach()


@pytest.mark.parametrize("by_backward", [True, False])
def test_steps_of_training_on_attacks_are_counted(attach, net, by_backward):
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    handle = attach(net, optimizer=sgd)
    for step in range(9):
        x, y = batch(step)
        net.eval()
        x = mislead(net, x, y, by_backward=by_backward)
        net.train()
        sgd.zero_grad()
        F.cross_entropy(net(x), y).backward()
        sgd.step()
    found = facts(handle, "attacks")
    assert [found[step] for step in (0, 1, 2, 3, 7, 8)] == [1, 2, 2, 4, 8, 8]


def test_an_evaluation_with_gradients_is_no_attack(attach, net):
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    handle = attach(net, optimizer=sgd)
    for step in range(4):
        x, y = batch(step)
        net.eval()
        net(x)
        net.train()
        sgd.zero_grad()
        F.cross_entropy(net(x), y).backward()
        sgd.step()
    assert facts(handle, "attacks") == {}
