"""What the time of a step is spent on, by what a program does in it."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn

from tdbg_lab.capture.pytorch import first_part


class Clock:
    """Moments in a loop, by name."""

    def __init__(self):
        self.moments = []

    def __call__(self, name):
        time.sleep(0.002)
        self.moments.append((name, time.time_ns()))
        time.sleep(0.002)

    def phases(self, run):
        """Phases of the moments of each name, in their order."""
        spans, found = run.spans(), {}
        for name, moment in self.moments:
            around = spans[(spans.start_ns <= moment) & (moment < spans.start_ns + spans.duration_ns)]
            innermost = around.sort_values("duration_ns").phase
            found.setdefault(name, []).append(innermost.iloc[0] if len(innermost) else None)
        return found


@pytest.fixture
def moment():
    return Clock()


class Policy(nn.Module):
    """Asked for an action as a whole, and trained by its parts."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x))

    def evaluate(self, x):
        return self.head(self.body(x))


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Policy()


@pytest.fixture
def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.01)


def run_of(attach, net, sgd, loop, **options):
    handle = attach(net, optimizer=sgd, profiler=True, **options)
    for _ in range(4):
        loop()
    handle.detach()
    assert not handle.problems
    return handle.run


def test_what_comes_before_the_backward_is_part_of_the_forward(attach, net, sgd, moment):
    def loop():
        loss = net(torch.randn(8, 4)).square().mean()
        moment("loss")
        loss.backward()
        sgd.step()

    run = run_of(attach, net, sgd, loop)
    assert moment.phases(run) == {"loss": ["forward"] * 4}


def test_what_comes_between_two_forwards_is_neither(attach, net, sgd, moment):
    """A policy acts with gradients, and the environment takes its time."""

    def loop():
        values = []
        for _ in range(3):
            values.append(net(torch.randn(1, 4)))
            moment("environment")
        torch.cat(values).square().mean().backward()
        sgd.step()

    run = run_of(attach, net, sgd, loop)
    assert moment.phases(run) == {"environment": ["other", "other", "forward"] * 4}


def test_data_between_a_backward_and_the_next_forward_are_data(attach, net, sgd, moment):
    """Gradients of several batches are gathered before a step."""

    def loop():
        for _ in range(3):
            moment("data")
            net(torch.randn(8, 4)).square().mean().backward()
        sgd.step()

    run = run_of(attach, net, sgd, loop)
    assert moment.phases(run)["data"][1:] == ["data"] * 11


def test_the_same_batch_again_is_not_waited_for(attach, net, sgd, moment):
    """Weights are moved towards where the loss is worst before the gradients that count (SAM)."""

    def loop():
        x = torch.randn(8, 4)
        net(x).square().mean().backward()
        moment("ascent")
        net(x).square().mean().backward()
        sgd.step()

    run = run_of(attach, net, sgd, loop)
    assert moment.phases(run) == {"ascent": ["other"] * 4}


def test_a_backward_of_which_nobody_is_told_is_one(attach, net, sgd, moment):
    def loop():
        loss = net(torch.randn(8, 4)).square().mean()
        moment("loss")
        for one, gradient in zip(
            net.parameters(), torch.autograd.grad(loss, [*net.parameters()]), strict=True
        ):
            one.grad = gradient
        sgd.step()

    run = run_of(attach, net, sgd, loop)
    assert moment.phases(run) == {"loss": ["backward"] * 4}


def test_what_an_optimizer_does_between_two_calls_of_its_closure_is_no_data(attach, net, moment):
    lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=3)
    x = torch.randn(8, 4)

    def closure():
        lbfgs.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        moment("closure")
        return loss

    run = run_of(attach, net, lbfgs, lambda: lbfgs.step(closure))
    assert "data" not in moment.phases(run)["closure"]


@pytest.mark.parametrize("save_every", [1, 2])
def test_a_model_that_acts_as_a_whole_and_learns_by_its_parts(
    attach, net, sgd, moment, save_every, monkeypatch
):
    """Its steps are those of training, with their forward, whatever was asked of it before."""
    monkeypatch.setattr(first_part, "has_compiled", lambda: False)  # other tests have

    def loop():
        net.eval()
        with torch.no_grad():
            for _ in range(3):
                net(torch.randn(1, 4))
                moment("environment")
        net.train()
        values = net.evaluate(torch.randn(8, 4))
        moment("loss")
        values.square().mean().backward()
        sgd.step()

    run = run_of(attach, net, sgd, loop, save_every=save_every)
    assert run.steps(tensor="loss/objective", mode="train").tolist() == [0, 1, 2, 3]
    assert not len(run.steps(tensor="loss/objective", mode="eval"))
    known = list(range(2, 4, save_every))  # the first step may have begun before we came
    assert run.steps(tensor="activation/head", mode="train").tolist() == known
    phases = moment.phases(run)
    assert phases["loss"][2:] == ["forward"] * 2
    assert phases["environment"][1:] == ["data"] * 11


def test_a_backward_through_an_evaluation_belongs_to_it(attach, net, sgd, moment):
    """An attack on a model in eval mode asks for gradients, and trains nothing."""

    def loop():
        net.train()
        net(torch.randn(8, 4)).square().mean().backward()
        sgd.step()
        net.eval()
        x = torch.randn(8, 4, requires_grad=True)
        net(x).square().mean().backward()

    run = run_of(attach, net, sgd, loop)
    assert run.steps(tensor="loss/objective", mode="eval").tolist() == [1, 2, 3, 4]
    assert run.steps(tensor="loss/objective", mode="train").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_layer_is_listened_to_where_nothing_is_compiled(attach, net, sgd, compiled, monkeypatch):
    monkeypatch.setattr(first_part, "has_compiled", lambda: compiled)
    handle = attach(net, optimizer=sgd)
    for _ in range(3):
        net.evaluate(torch.randn(8, 4)).square().mean().backward()
        sgd.step()
    assert len(net.body[0]._forward_pre_hooks) == (0 if compiled else 1)
    handle.detach()
    assert not any(layer._forward_pre_hooks or layer._forward_hooks for layer in net.modules())


def test_a_loop_that_nothing_is_seen_of_waits_for_no_data(attach, moment):
    """All of it counted as waiting: rules found a loop of JAX or NumPy starved, however well it was fed."""
    handle = attach(None, profiler=True, save_every=2)
    for _ in range(4):
        with handle.phase("data"):
            moment("load")
        moment("compute")
        handle.advance()
    handle.detach()
    run = handle.run
    phases = moment.phases(run)
    assert phases["load"] == ["data"] * 4
    assert phases["compute"][1:] == ["step"] * 3
    assert set(run.spans().phase) == {"data", "step", "capture"}
