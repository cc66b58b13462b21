"""What a device measures while training goes on is what would have been measured at once.

Tensors of the CPU stand for those of a GPU here: they go the same way, and arrive when the test says so.
`test_gpu_training.py` trains on a real one.
"""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch
from capture_training import Net, batch, train
from torch import nn

from tdbg_lab import open_run
from tdbg_lab.capture.late import LateDesk
from tdbg_lab.capture.pytorch import measuring
from tdbg_lab.records import Kind
from tests.gpu import Gate
from tests.threads import no_more_threads


@pytest.fixture
def pretend(monkeypatch):
    """All tensors lie on a GPU from now on."""

    def begin():
        monkeypatch.setattr(measuring, "on_gpu", lambda _: True)
        monkeypatch.setattr("tdbg_lab.capture.pytorch.updates.on_gpu", lambda _: True)
        monkeypatch.setattr("tdbg_lab.capture.pytorch.updates._address", lambda _: 0)
        monkeypatch.setattr("tdbg_lab.capture.pytorch.losses.single_number", lambda _: False)

    return begin


class Embedding(nn.Module):
    """Flatten hands on what it got; the loss is a module that is found."""

    def __init__(self):
        super().__init__()
        self.flatten, self.head, self.loss = nn.Flatten(), nn.Linear(64, 3), nn.CrossEntropyLoss()

    def forward(self, x):
        return self.head(self.flatten(x))


STEPS = range(3)
COLUMNS = ["count", "zero_count", "nan_count", "min", "max", "mean", "std", "l2"]


def told(path):
    """All rows of a run but costs and times, by tensor and step."""
    kinds = [kind for kind in Kind if kind is not Kind.COST]
    frame = open_run(path).to_pandas(kind=kinds, columns=COLUMNS)
    return frame.set_index(["mode", "step", "tensor"]).sort_index()


def trained(attach):
    """A model that can be trained, and the handle that watches it."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    return model, optimizer, attach(model, optimizer=optimizer)


def clipped(model, optimizer, steps):
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(batch(50)[0])


@pytest.mark.parametrize("make", [Net, Embedding])
@pytest.mark.parametrize("every", [1, 3])
def test_rows_are_the_same_as_when_measured_at_once(attach, tmp_path, pretend, make, every):
    paths = []
    for late in (False, True):
        if late:
            pretend()
        torch.manual_seed(4)
        model = make()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        handle = attach(model, optimizer=optimizer, store=tmp_path / f"run{late}", save_every=every)
        clipped(model, optimizer, 7)
        handle.log(accuracy=torch.tensor(0.25), plain=3.0)
        handle.record("mine", torch.arange(5.0))
        handle.detach()
        paths.append(handle.run_path)
    at_once, late = map(told, paths)
    assert list(at_once.index) == list(late.index)
    for column in ("count", "zero_count", "nan_count"):
        np.testing.assert_array_equal(at_once[column], late[column], err_msg=column)
    for column in ("min", "max", "mean", "std", "l2"):
        np.testing.assert_allclose(
            late[column].astype(float), at_once[column].astype(float), rtol=2e-5, atol=1e-7, err_msg=column
        )


def test_raw_values_are_the_same_as_when_copied_at_once(attach, tmp_path, pretend):
    half = [
        torch.tensor([[1.5, -2.0], [0.25, 3.0], [7.0, 9.0]], dtype=one)
        for one in (torch.bfloat16, torch.half)
    ]
    found = []
    for late in (False, True):
        if late:
            pretend()
        torch.manual_seed(4)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        everything = ["default", {"name": "raw", "include": ".", "values": "both", "sample_rows": 3}]
        handle = attach(model, optimizer=optimizer, store=tmp_path / f"run{late}", collections=everything)
        for step in range(3):
            x, y = batch(step)
            optimizer.zero_grad()
            out = model(x)
            handle.record("latent", out, labels=y)
            nn.functional.cross_entropy(out, y).backward()
            optimizer.step()
            handle.record("after", half[0])  # the rows of the step are written by now
            handle.record("after", half[1])
            handle.record("flags", y > 1)
        handle.detach()
        run = open_run(handle.run_path)
        raw = {
            (name, step): run.tensor(name).value(step)
            for name in run.tensor_names()
            for step in STEPS
            if step in run.tensor(name).values()
        }
        labels = [run.tensor("latent").labels(step) for step in STEPS]
        found.append((raw, labels))
    assert found[0][0].keys() == found[1][0].keys()
    assert len(found[0][0]) > 60
    for name, values in found[0][0].items():
        np.testing.assert_array_equal(found[1][0][name], values, err_msg=str(name))
        assert found[1][0][name].dtype == values.dtype
    np.testing.assert_array_equal(*(labels for _, labels in found))


def test_raw_values_beyond_what_there_is_room_for_are_copied_at_once(attach, pretend, monkeypatch):
    monkeypatch.setattr("tdbg_lab.stats.device._MOST_BYTES", 200)
    monkeypatch.setattr("tdbg_lab.capture.pytorch.raw_values._MAX_LATE_BYTES", 150)
    pretend()
    model, optimizer, handle = trained(attach)
    train(model, optimizer, 1)
    sizes = (30, 15, 15, 15, 40)  # too large, room for three, none left, too large
    for number, size in enumerate(sizes):
        handle.record(f"own{number}", torch.arange(size, dtype=torch.float32))
    handle.detach()
    run = open_run(handle.run_path)
    for number, size in enumerate(sizes):
        assert run.tensor(f"own{number}").value(0).tolist() == list(range(size))
    assert handle.problems == []


def test_training_is_bitwise_the_same(attach, pretend):
    states = []
    for seen in (False, True):
        torch.manual_seed(7)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        if seen:
            pretend()
            attach(model, optimizer=optimizer, collections=["default", "inputs", "buffers"])
        states.append((train(model, optimizer, 6), model.state_dict()))
    assert states[0][0] == states[1][0]
    for name, value in states[0][1].items():
        assert torch.equal(value, states[1][1][name]), name


@pytest.fixture
def gate(monkeypatch):
    opened = threading.Event()
    monkeypatch.setattr("tdbg_lab.stats.device.transfer_of", lambda *_: Gate(opened))
    yield opened
    opened.set()


def test_a_step_is_written_as_soon_as_the_device_is_through(attach, pretend, gate):
    pretend()
    model, optimizer, handle = trained(attach)
    train(model, optimizer, 3)
    assert open_run(handle.run_path).last_step == -1, "the device is still about it"
    gate.set()
    deadline = time.monotonic() + 20
    while open_run(handle.run_path).last_step < 2:
        assert time.monotonic() < deadline, "no further step and no detach is needed"
        time.sleep(0.02)


def test_numbers_of_a_device_that_answers_no_more_are_no_rows(attach, pretend, gate, monkeypatch):
    monkeypatch.setattr("tdbg_lab.capture.late._CLOSE_S", 0.1)
    pretend()
    model, optimizer, handle = trained(attach)
    train(model, optimizer, 2, loss=nn.CrossEntropyLoss())
    handle.log(mine=torch.tensor(3.0))
    handle._engine.recorder.close()
    handle.detach()
    run = open_run(handle.run_path)
    assert run.tensor_names(kind=["loss", "scalar"]) == []
    assert "optimizer/grad_norm" not in run.tensor_names(kind="optimizer")
    assert "did not answer" in run.tensor("conv.weight").stats(0).reason(0)


def test_steps_beyond_what_is_on_its_way_are_left_out_and_it_is_said(attach, pretend, gate):
    pretend()
    model, optimizer, handle = trained(attach)
    train(model, optimizer, 30)
    gate.set()
    handle.detach()
    steps = open_run(handle.run_path).tensor("conv.weight").steps()
    assert 4 <= len(steps) < 30
    assert [problem.probe for problem in handle.problems] == ["device"]
    assert "left out" in handle.problems[0].message


def test_desk_keeps_the_order_and_tells_a_failure_once():
    class Arriving:
        def __init__(self, after_s):
            self.at = time.monotonic() + after_s

        def arrived(self):
            return time.monotonic() >= self.at

        def wait(self, timeout_s):
            pass

    desk, written = LateDesk(), []
    desk.put([Arriving(0.3)], lambda: written.append("first"))
    desk.put([], lambda: written.append("second"))
    desk.put([Arriving(0)], lambda: 1 / 0)
    desk.put([], lambda: written.append("third"))
    assert written == []
    with pytest.raises(ZeroDivisionError):
        desk.close()
    assert written == ["first", "second", "third"]
    desk.close()


def test_everything_is_written_where_no_more_threads_may_be_started():
    class Later:
        there = False

        def arrived(self):
            return self.there

        def wait(self, timeout_s):
            self.there = True

    desk, written = LateDesk(), []
    with no_more_threads():
        desk.put([], lambda: written.append("first"))
        assert written == ["first"], "nothing piles up"
        desk.put([Later()], lambda: written.append("second"))
        assert written == ["first"], "what has not arrived is not waited for"
        desk.close()
        assert written == ["first", "second"]
    desk.put([], lambda: written.append("third"))
    desk.close()
    assert written == ["first", "second", "third"]


def written_within(desk, jobs, seconds=10.0):
    """How many of so many jobs are written within that time."""
    written = []
    for number in range(jobs):
        desk.put([], lambda number=number: written.append(number))
    deadline = time.monotonic() + seconds
    while len(written) < jobs and time.monotonic() < deadline:
        time.sleep(0.01)
    return len(written)


def test_desk_waits_for_a_calm_moment(monkeypatch):
    monkeypatch.setattr("tdbg_lab.capture.late._PATIENCE_S", 1e6)
    desk = LateDesk()
    assert written_within(desk, 2, seconds=0.2) == 0
    desk.calm(now=True)
    assert written_within(desk, 1) == 1
    desk.calm(now=False)
    assert written_within(desk, 1, seconds=0.2) == 0
    desk.close()


def test_desk_waits_no_longer_than_it_may_and_not_when_it_is_behind(monkeypatch):
    assert written_within(LateDesk(), 2) == 2
    monkeypatch.setattr("tdbg_lab.capture.late._PATIENCE_S", 1e6)
    monkeypatch.setattr("tdbg_lab.capture.late._BEHIND", 2)
    desk = LateDesk()
    assert written_within(desk, 5, seconds=1) == 3
    desk.close()


def test_backward_passes_are_calm(attach, pretend, monkeypatch):
    said = []
    monkeypatch.setattr(LateDesk, "calm", lambda _, *, now: said.append(now))
    model, optimizer, handle = trained(attach)
    pretend()
    train(model, optimizer, 3)
    assert said[-4:] == [True, False] * 2
    handle.detach()


def test_desk_thread_ends_when_idle_and_comes_back(monkeypatch):
    monkeypatch.setattr("tdbg_lab.capture.late._IDLE_S", 0.05)
    desk, written = LateDesk(), []
    for number in range(2):
        desk.put([], lambda number=number: written.append(number))
        desk.close()
        deadline = time.monotonic() + 10
        while desk._thread is not None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert written == [0, 1]
