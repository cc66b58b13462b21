"""Whether a program gathers the data that it trains on, as one that learns by acting."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tdbg_lab.capture.pytorch.checks import gathering
from tests.capture.test_checks import batch, facts


@pytest.fixture
def actor():
    """A net that takes single rows, and its optimizer."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    return net, torch.optim.SGD(net.parameters(), lr=0.1)


def shown(net, *rows):
    with torch.no_grad():
        return [net(one) for one in rows]


def gather(net, sgd, *, rounds=4, epochs=3):
    """Episodes of an environment, each of which is trained on for some epochs."""
    for _ in range(rounds):
        seen = torch.randn(40, 8)
        shown(net, *seen.split(1))
        for _ in range(epochs):
            sgd.zero_grad()
            net(seen).square().mean().backward()
            sgd.step()


def test_rows_that_were_shown_and_then_trained_on_are_gathered(attach, actor):
    net, sgd = actor
    handle = attach(net, optimizer=sgd)
    gather(net, sgd)
    assert facts(handle, "gathers")[3] == 3


def test_rows_whose_targets_come_of_the_step_before_are_gathered(attach, actor):
    """Several environments act with gradients; what follows on the last state is told without."""
    net, sgd = actor
    handle = attach(net, optimizer=sgd)
    state = torch.randn(16, 8)
    for _ in range(30):
        sgd.zero_grad()
        now = net(state)
        state = torch.randn(16, 8)
        (now - shown(net, state)[0]).square().mean().backward()
        sgd.step()
    assert max(facts(handle, "gathers").values()) == 3


def test_one_that_has_acted_long_enough_is_looked_at_no_longer(attach, actor, monkeypatch):
    net, sgd = actor
    handle = attach(net, optimizer=sgd)
    states, digested = torch.randn(300, 8), []
    monkeypatch.setattr(
        gathering, "_digests", lambda rows, real=gathering._digests: digested.append(0) or real(rows)
    )
    for step in range(32, 200):
        shown(net, *states[step : step + 1])
        if step == 150:
            assert digested
            digested.clear()
        sgd.zero_grad()
        net(states[step - 31 : step + 1]).square().mean().backward()  # from a buffer of the last states
        sgd.step()
    assert not digested
    assert facts(handle, "gathers")[167] == 3


def test_episodes_of_single_rows_are_gathered(attach, actor):
    net, sgd = actor
    handle = attach(net, optimizer=sgd)
    for step in range(8):
        sgd.zero_grad()
        sum(net(torch.randn(1, 8)).square().mean() for _ in range(3 + 5 * step % 7)).backward()
        sgd.step()
    assert max(facts(handle, "gathers").values()) == 3


def evaluates(net, sgd, held, *, x, rounds=6):
    for _ in range(rounds):
        for rows in x.split(32):
            sgd.zero_grad()
            net(rows).square().mean().backward()
            sgd.step()
        shown(net, *held)


@pytest.mark.parametrize("rows", [1, 4])
def test_evaluation_of_few_rows_at_a_time_gathers_nothing(attach, actor, rows):
    net, sgd = actor
    handle = attach(net, optimizer=sgd)
    evaluates(net, sgd, torch.randn(40, 8).split(rows), x=torch.randn(128, 8))
    assert not any(facts(handle, "gathers").values())


def test_evaluation_of_training_rows_gathers_nothing(attach, actor):
    net, sgd = actor
    handle = attach(net, optimizer=sgd)
    x = torch.randn(128, 8)
    evaluates(net, sgd, x.split(1), x=x)
    found = facts(handle, "gathers")
    assert not found or found[max(found)] == 0


def test_batches_that_are_told_their_own_targets_gather_nothing(attach, actor):
    net, sgd = actor
    handle = attach(net, optimizer=sgd)
    for step in range(30):
        x, _ = batch(step)
        sgd.zero_grad()
        (net(x) - shown(net, x)[0]).square().mean().backward()
        sgd.step()
    assert not any(facts(handle, "gathers").values())


def test_batches_taken_row_by_row_gather_nothing(attach, actor):
    net, sgd = actor
    handle = attach(net, optimizer=sgd)
    for step in range(12):
        sgd.zero_grad()
        for _ in range(4 if step % 5 else 2):
            net(torch.randn(1, 8)).square().mean().backward()
        sgd.step()
    assert not any(facts(handle, "gathers").values())
