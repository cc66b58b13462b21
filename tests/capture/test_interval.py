"""How far apart steps are saved where only the share of time is said that saving may take."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from capture_training import Net, batch
from torch import nn

from tdbg_lab.capture import cost, guard
from tdbg_lab.capture.interval import AutoInterval
from tdbg_lab.capture.pytorch import hook
from tdbg_lab.capture.pytorch.updates import UpdateProbe
from tdbg_lab.config import CaptureConfig
from tdbg_lab.errors import ConfigError

US = 1_000


def trained(interval, steps, *, bare_us, saving_us, unsaved_us=0, slower_us=0):
    """The distances chosen over so many steps, of which a saved one is slower by more than capture takes."""
    chosen = []
    for step in range(steps):
        saved = step % interval.every == 0
        capture = unsaved_us + saving_us * saved
        took = bare_us + capture + slower_us * saved
        if interval.add(took * US, capture * US, saved=saved):
            chosen.append(interval.every)
    return chosen


def share(interval, bare_us, saving_us):
    return saving_us / interval.every / bare_us


@pytest.mark.parametrize(
    ("bare_us", "saving_us", "every"),
    [(1000, 1500, 32), (100_000, 6000, 2), (100_000, 12_000, 4), (20, 500, 512)],
)
def test_the_shortest_distance_is_chosen_that_the_budget_allows(bare_us, saving_us, every):
    interval = AutoInterval(0.05)
    trained(interval, 4000, bare_us=bare_us, saving_us=saving_us)
    assert interval.every == every
    assert share(interval, bare_us, saving_us) <= 0.05
    assert every == 2 or share(interval, bare_us, saving_us) > 0.025


def test_what_steps_cost_that_are_not_saved_does_not_count():
    interval = AutoInterval(0.05)
    trained(interval, 400, bare_us=1000, saving_us=300, unsaved_us=200)
    assert interval.every == 8


def test_what_a_saved_step_takes_longer_outside_of_capture_counts():
    """Of a compiled model it runs eagerly."""
    interval = AutoInterval(0.05)
    trained(interval, 400, bare_us=1000, saving_us=100, slower_us=1000)
    assert interval.every == 32


def test_several_steps_of_one_call_take_their_time_together():
    """A call of 8 steps of 1 ms each, of which the first is saved."""
    interval = AutoInterval(0.05)
    for step in range(0, 4000, 8):
        saved = step % interval.every == 0
        took = (8000 + 3000 * saved) * US
        interval.add(took, 3000 * US * saved, saved=saved, steps=8)
    assert interval.every == 64


def test_where_every_step_is_saved_the_distance_has_an_end():
    """A collection may say so."""
    interval = AutoInterval(0.05)
    for _ in range(200):
        interval.add(2000 * US, 1000 * US, saved=True)
    assert interval.every == 4096


def test_the_budget_is_the_share():
    interval = AutoInterval(0.01)
    trained(interval, 4000, bare_us=1000, saving_us=300)
    assert share(interval, 1000, 300) <= 0.01


def test_hiccups_do_not_count():
    interval = AutoInterval(0.05)
    trained(interval, 100, bare_us=1000, saving_us=60)
    assert interval.every == 2
    interval.add(900_000 * US, 800_000 * US, saved=True)
    interval.add(900_000 * US, 0, saved=False)
    assert trained(interval, 100, bare_us=1000, saving_us=60) == []


def test_the_distance_follows_a_training_that_becomes_slower_and_never_swings():
    interval = AutoInterval(0.05)
    assert trained(interval, 600, bare_us=1000, saving_us=1000)[-1] == 32
    assert trained(interval, 600, bare_us=1100, saving_us=800) == []  # 16 would do, for now
    assert trained(interval, 600, bare_us=100_000, saving_us=1000)[-1] == 2


def test_nothing_is_dearer_than_the_longest_distance():
    interval = AutoInterval(1e-9)
    trained(interval, 20_000, bare_us=1, saving_us=1000)
    assert interval.every == 4096


@pytest.fixture
def now_ns(monkeypatch):
    """The time, which passes only as the test says."""
    now = [10**9]
    for module in (cost, guard, hook):
        monkeypatch.setattr(module, "perf_counter_ns", lambda: now[0])
    return now


def steps(net, optimizer, now_ns, n):
    criterion = nn.CrossEntropyLoss()
    for step in range(n):
        optimizer.zero_grad()
        x, y = batch(step)
        loss = criterion(net(x), y)
        now_ns[0] += 1000 * US
        loss.backward()
        optimizer.step()


@pytest.fixture
def saving_takes_4_ms(monkeypatch, now_ns):
    own = UpdateProbe.after

    def slow(probe, *args):
        now_ns[0] += 4000 * US
        return own(probe, *args)

    monkeypatch.setattr(UpdateProbe, "after", slow)


@pytest.mark.usefixtures("saving_takes_4_ms")
def test_a_training_is_saved_as_often_as_the_budget_allows(attach, now_ns):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    handle = attach(net, optimizer=optimizer, save_every="auto", config={"budget": 0.07})
    assert handle.save_every == 2
    steps(net, optimizer, now_ns, 300)
    assert handle.save_every == 64
    assert "saving every 64" in handle.status()
    handle.detach()
    run = handle.run
    saved = run.steps(tensor="gradient/head.weight").tolist()
    assert saved == [0, 2, 4, 6, 8, 64, 128, 192, 256]
    assert run.scalars("tdbg/save_every").steps.tolist() == [8]
    assert run.scalars("tdbg/save_every").values.tolist() == [64.0]
    assert len(run.scalars("loss/objective").values) == 300


@pytest.mark.usefixtures("saving_takes_4_ms")
def test_a_collection_that_says_when_is_saved_then(attach, now_ns):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    collections = {"gradients": {"save": 5}, "weights": {"save": {"start": 20}}}
    handle = attach(net, optimizer=optimizer, save_every="auto", collections=collections)
    steps(net, optimizer, now_ns, 41)
    handle.detach()
    assert handle.run.steps(tensor="gradient/head.weight").tolist() == list(range(0, 41, 5))
    assert handle.save_every > 2
    weights = handle.run.steps(tensor="head.weight").tolist()
    assert weights[0] == 20
    assert len(weights) < 10


def test_evaluations_are_saved_with_a_chosen_distance(attach, now_ns, saving_takes_4_ms):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    handle = attach(net, optimizer=optimizer, save_every="auto")
    for epoch in range(10):
        net.train()
        steps(net, optimizer, now_ns, 16)
        net.eval()
        with torch.no_grad():
            net(batch(epoch)[0])
    handle.detach()
    assert handle.save_every == 128
    assert handle.run.steps(tensor="activation/head", mode="eval").tolist() == [16, 144]


@pytest.mark.parametrize("wrong", ["often", 0, -3, 2.5, True, "7", np.arange(3)])
def test_a_wrong_distance_is_told_in_a_sentence(wrong):
    with pytest.raises(ConfigError, match=r'expected a whole number of steps, at least 1, or "auto"\.$'):
        CaptureConfig.build(save_every=wrong)


@pytest.mark.parametrize("wrong", [0, 1.5, "5%"])
def test_a_wrong_budget_is_told_in_a_sentence(wrong):
    with pytest.raises(ConfigError, match=r"^budget is "):
        CaptureConfig.build({"save_every": "auto", "budget": wrong})
