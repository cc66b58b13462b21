"""An interrupt from the keyboard, at any moment of a step: it reaches the loop, and capture goes on."""

from __future__ import annotations

import random
import sys

import pytest
import torch
from capture_training import Net, batch, train
from torch import nn
from torch.overrides import _get_current_function_mode, _pop_mode


class InterruptAt:
    """Interrupts the n-th time that a function is called or returns, whoever's it is."""

    def __init__(self, n):
        self.left = n

    def __call__(self, _frame, event, _argument):
        self.left -= event in {"call", "return"}
        if self.left < 0:
            sys.setprofile(None)
            raise KeyboardInterrupt


def test_capture_goes_on_after_interrupts_at_any_moment(attach, caplog):
    torch.manual_seed(0)
    net, criterion, moments = Net(), nn.CrossEntropyLoss(), random.Random(0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    handle = attach(net, optimizer=optimizer, loss=criterion, strict=False)
    train(net, optimizer, 3, loss=criterion)
    caught = 0
    for _ in range(400):
        sys.setprofile(InterruptAt(moments.randrange(3000)))
        try:
            train(net, optimizer, 1, loss=criterion)
        except KeyboardInterrupt:
            caught += 1
        finally:
            sys.setprofile(None)
            torch.set_grad_enabled(True)  # the optimizers of PyTorch leave it off, too
    assert caught > 200
    assert handle.attached
    first = handle.step
    train(net, optimizer, 20, loss=criterion)
    last = handle.step
    handle.detach()
    assert last == first + 20
    assert _get_current_function_mode() is None
    assert "is off from now on" not in caplog.text
    for name in ("loss/CrossEntropyLoss", *(key.name for key in handle.run.tensors(kind="weight"))):
        assert set(range(first, last)) <= set(handle.run.tensor(name).steps()), name


def test_capture_goes_on_where_an_interrupt_took_its_look_at_functions_away(attach):
    """PyTorch takes a mode off its stack while it is at work, and an interrupt may leave it there."""
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    handle = attach(net, optimizer=optimizer, strict=False)

    def take_away(*_):
        _pop_mode()

    hook = next(net.children()).register_forward_hook(take_away)
    net(batch(0)[0])
    hook.remove()
    train(net, optimizer, 3)
    assert handle.step == 3
    assert not handle._engine.guard.problems


def test_interrupt_within_capture_leaves_gradients_on(attach):
    handle = attach(Net(), strict=False)

    def interrupted():
        torch.set_grad_enabled(False)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        handle._engine.guard.run("probe", interrupted)
    assert torch.is_grad_enabled()
