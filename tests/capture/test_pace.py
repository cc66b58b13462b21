"""Checks look at a healthy loop now and then only, and still see in time what goes wrong."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tdbg_lab import open_run
from tdbg_lab.capture.pytorch.checks.batches import BatchWatch
from tdbg_lab.capture.pytorch.checks.gradients import GradientWatch
from tdbg_lab.capture.pytorch.checks.pace import Pace
from tdbg_lab.capture.pytorch.checks.weights import WeightWatch

PHASES = (40, 41, 42)
"""Steps at which something goes wrong: one of three is looked at."""


class Two(nn.Module):
    """Two layers, of which the first may be left out of the graph."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 3)
        self.cut = False

    def forward(self, x):
        x = self.first(x)
        return self.second(x.detach() if self.cut else x)


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Two()


@pytest.fixture
def adam(net):
    return torch.optim.Adam(net.parameters(), lr=0.01)


def train(net, optimizer, steps, *, before=None, zero=lambda _step: True, makes=lambda _step: True):
    for step in range(steps):
        if before is not None:
            before(step)
        random = torch.Generator().manual_seed(step)
        x, y = torch.randn(16, 8, generator=random), torch.randint(0, 3, (16,), generator=random)
        if zero(step):
            optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        if makes(step):
            optimizer.step()


def facts(handle, name):
    handle.detach()
    run = open_run(handle.run_path)
    if f"check/{name}" not in run.tensor_names(kind="check"):
        return {}
    series = run.scalars(f"check/{name}")
    return dict(zip(series.steps.tolist(), series.values.tolist(), strict=True))


def first(found, least):
    """First step at which a fact was as much."""
    return min((step for step, value in found.items() if value >= least), default=10**9)


def test_first_steps_are_all_looked_at_then_one_in_three():
    pace = Pace()
    looked = []
    for _ in range(30):
        announced = pace.ahead
        looked.append(pace.looking)
        pace.next_step()
        assert pace.looking is announced
    assert [step for step in range(30) if looked[step]] == [*range(16), 18, 21, 24, 27]


def test_after_something_odd_all_steps_are_looked_at_for_a_while():
    pace = Pace()
    for _ in range(40):
        pace.next_step()
    pace.wake()
    looked = []
    for _ in range(20):
        pace.next_step()
        looked.append(pace.looking)
    assert all(looked[:16])
    assert not all(looked[16:])


@pytest.mark.parametrize("start", PHASES)
def test_missing_zero_grad_is_certain_within_four_steps(attach, net, adam, start):
    handle = attach(net, optimizer=adam, save_every=1000)
    train(net, adam, 50, zero=lambda step: step < start)
    assert start + 2 <= first(facts(handle, "stale_gradients"), 3) <= start + 4


@pytest.mark.parametrize("start", PHASES)
def test_lost_gradient_is_certain_within_five_steps(attach, net, adam, start):
    handle = attach(net, optimizer=adam, save_every=1000)
    train(net, adam, 50, before=lambda step: setattr(net, "cut", step >= start))
    assert start + 3 <= first(facts(handle, "without_gradient/first.weight"), 4) <= start + 5


@pytest.mark.parametrize("start", PHASES)
def test_exchanged_layer_is_told_within_four_steps(attach, net, adam, start):
    handle = attach(net, optimizer=adam, save_every=1000)

    def exchange(step):
        if step == start:
            net.second = nn.Linear(8, 3)

    train(net, adam, 50, before=exchange)
    assert start + 2 <= first(facts(handle, "without_optimizer/second.weight"), 3) <= start + 4


@pytest.mark.parametrize("start", PHASES)
@pytest.mark.parametrize("kind", ["replaced", "set_back"])
def test_weights_set_anew_are_told_at_once(attach, net, adam, start, kind):
    handle = attach(net, optimizer=adam, save_every=1000)
    old = {name: value.clone() for name, value in net.state_dict().items()}

    def change(step):
        if step == start and kind == "replaced":
            net.first.reset_parameters()
        elif step == start:
            net.load_state_dict(old)

    train(net, adam, 50, before=change)
    told = facts(handle, f"{kind}/first.weight")
    assert first(told, 1e-6) == start
    assert told[start + 1] == 0.0


@pytest.mark.parametrize("start", PHASES)
def test_skipped_steps_are_told_within_two(attach, net, adam, start):
    handle = attach(net, optimizer=adam, save_every=1000)
    train(net, adam, 60, makes=lambda step: step < start or step % 2)
    assert first(facts(handle, "discarded_gradients"), 1) <= start + 2


@pytest.mark.parametrize("start", PHASES)
def test_loop_that_stops_to_step_is_told_though_no_step_comes(attach, net, adam, start):
    handle = attach(net, optimizer=adam, save_every=1000)
    train(net, adam, start + 8, makes=lambda step: step < start)
    assert max(facts(handle, "discarded_gradients").values()) >= 4


def test_layer_that_takes_turns_is_not_taken_for_cut_off(attach, net, adam):
    handle = attach(net, optimizer=adam, save_every=1000)
    train(net, adam, 70, before=lambda step: setattr(net, "cut", step % 3 == 0))
    assert max(facts(handle, "without_gradient/first.weight").values(), default=0.0) <= 2


def test_optimizer_whose_changes_vary_is_not_taken_for_somebody_else(attach, net):
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    plain = sgd.step

    def lookahead(*args, **kwargs):
        result = plain(*args, **kwargs)
        lookahead.steps += 1
        if lookahead.steps % 5 == 0:
            with torch.no_grad():
                for value in net.parameters():
                    value.mul_(0.999)
        return result

    lookahead.steps, sgd.step = 0, lookahead
    handle = attach(net, optimizer=sgd, save_every=1000)
    train(net, sgd, 80)
    assert facts(handle, "replaced/first.weight") == {}
    assert facts(handle, "set_back/first.weight") == {}


def test_healthy_loop_says_nothing_odd(attach, net, adam):
    handle = attach(net, optimizer=adam, save_every=7)
    train(net, adam, 60)
    assert set(facts(handle, "stale_gradients").values()) == {0.0}
    assert set(facts(handle, "discarded_gradients").values()) == {0.0}
    names = open_run(handle.run_path).tensor_names(kind="check")
    assert not [name for name in names if "without" in name or "replaced" in name]
    assert len(facts(handle, "batch")) == 60


def rows(attach, every_step):
    """All numbers of a training with evaluations, an accumulated batch and a loss, by name and step."""
    torch.manual_seed(0)
    net, loss = Two(), nn.CrossEntropyLoss()
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    with pytest.MonkeyPatch.context() as patched:
        if every_step:
            patched.setattr(Pace, "next_step", lambda _pace: None)
        handle = attach(net, optimizer=sgd, loss=loss, save_every=1000)
        for step in range(50):
            x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
            for _ in range(2 if step == 31 else 1):
                loss(net(x), y).backward()
            sgd.step()
            sgd.zero_grad()
            if step % 10 == 1:
                net.eval()
                with torch.no_grad():
                    loss(net(x), y)
                net.train()
        handle.detach()
    run = open_run(handle.run_path)
    return {
        (name, mode): (series.steps.tolist(), series.values.tolist())
        for name in [*run.tensor_names(kind="loss"), "check/batch"]
        for mode in ("train", "eval")
        for series in [run.scalars(name, mode=mode)]
    }


def test_steps_that_rest_leave_the_same_losses_and_digests(attach):
    rested = rows(attach, every_step=False)
    assert rested == rows(attach, every_step=True)
    assert rested["check/batch", "train"][0] == list(range(50))
    assert len(rested["loss/CrossEntropyLoss", "eval"][0]) == 5


@pytest.mark.parametrize(
    "place",
    [
        (WeightWatch, "rest", "check/weights"),
        (GradientWatch, "after_step", "check/gradients"),
        (BatchWatch, "before_step", "check/batch"),
    ],
    ids=lambda place: place[1],
)
def test_failure_in_a_step_that_rests_turns_one_check_off(attach, monkeypatch, net, adam, place):
    def faulty(*_args, **_kwargs):
        raise RuntimeError("injected")

    handle = attach(net, optimizer=adam, save_every=1000, strict=False)
    train(net, adam, 30, before=lambda step: step != 19 or monkeypatch.setattr(*place[:2], faulty))
    assert [(one.probe, one.step) for one in handle.problems] == [(place[2], 19)]
    handle.detach()
    assert handle._engine.step == 30
