"""Capture of a training on a real GPU: nothing changes, nothing waits, and what is written is right."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from capture_training import Net, batch
from torch import nn

from tdbg_lab import open_run
from tdbg_lab.records import Kind
from tests.gpu import no_waiting

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


CRITERION = nn.CrossEntropyLoss()


def train(model, optimizer, steps):
    """Plain steps on the GPU; gives the losses, which are read at the end only."""
    losses = []
    for step in range(steps):
        x, y = (one.cuda() for one in batch(step))
        optimizer.zero_grad()
        loss = CRITERION(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


@pytest.fixture(autouse=True)
def repeatable():
    before = torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = True
    torch.manual_seed(7)
    yield
    torch.backends.cudnn.deterministic = before


def numbers(run, name):
    return run.tensor(name).history("mean")["mean"].to_numpy()


def test_weights_are_bitwise_the_same(attach):
    states = []
    for seen in (False, True):
        torch.manual_seed(7)
        model = Net().cuda()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        if seen:
            attach(model, optimizer=optimizer, collections=["default", "inputs", "buffers"])
        states.append((train(model, optimizer, 12), model.state_dict()))
    assert torch.equal(states[0][0], states[1][0])
    for name, value in states[0][1].items():
        assert torch.equal(value, states[1][1][name]), name


def test_statistics_are_those_of_the_values(attach):
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    everything = ["default", "inputs", {"name": "raw", "include": ".", "values": "both"}]
    handle = attach(model, optimizer=optimizer, loss=CRITERION, collections=everything)
    losses = train(model, optimizer, 3).cpu()
    handle.detach()
    run = open_run(handle.run_path)
    names = run.tensor_names(kind=[Kind.WEIGHT, Kind.BIAS, Kind.GRADIENT, Kind.ACTIVATION, Kind.INPUT])
    assert len(names) > 15
    for name in names:
        tensor = run.tensor(name)
        for step in range(3):
            values, row = tensor.value(step).astype(np.float64), tensor.stats(step)
            assert row.count[0] == values.size, name
            assert row.zero_count[0] == (values == 0).sum(), name
            for column, wanted in (
                ("min", values.min()),
                ("max", values.max()),
                ("mean", values.mean()),
                ("std", values.std()),
            ):
                found, near = getattr(row, column)[0], 1e-5 * np.abs(values).max()
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=near, err_msg=f"{name} {column}")
    np.testing.assert_allclose(numbers(run, "loss/CrossEntropyLoss"), losses, rtol=1e-6)


@pytest.mark.parametrize("every", [1, 5])
def test_no_step_waits_for_the_device(attach, every):
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 3)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    handle = attach(model, optimizer=optimizer, loss=CRITERION, save_every=every)
    batches = [tuple(one.cuda() for one in batch(step)) for step in range(30)]

    def steps(some):
        for x, y in some:
            optimizer.zero_grad()
            CRITERION(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    steps(batches[:2])  # compiles, allocates
    with no_waiting():
        steps(batches[2:])
        handle.log(mine=torch.ones((), device="cuda"))
        handle.record("own", torch.ones(900, 4, device="cuda").bfloat16())
    handle.detach()
    run = open_run(handle.run_path)
    assert run.tensor("0.weight").steps().tolist() == list(range(0, 30, every))
    assert len(run.tensor("loss/CrossEntropyLoss").steps()) == 30
    ratios = numbers(run, "optimizer/update_ratio/0.weight")
    assert ((ratios > 0) & (ratios < 1)).all()
    norms, after = (numbers(run, f"optimizer/grad_norm{one}") for one in ("", "_clipped"))
    assert (after <= norms * 1.001).all()
    assert (after <= 1.001).all()


def test_a_step_is_seen_without_a_further_one(attach):
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    train(model, optimizer, 4)
    deadline = time.monotonic() + 20
    while open_run(handle.run_path).last_step < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_scaled_gradients_are_told_unscaled_and_skipped_steps_are_known(attach):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**60)
    handle = attach(model, optimizer=optimizer)
    for step in range(60):
        x, y = (one.cuda() for one in batch(step))
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = CRITERION(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    handle.detach()
    run = open_run(handle.run_path)
    assert numbers(run, "optimizer/skipped_steps").max() > 5
    norms = numbers(run, "optimizer/grad_norm")
    assert 0 < norms[np.isfinite(norms)].max() < 100, "unscaled"


def test_memory_of_the_device_does_not_grow(attach):
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    attach(model, optimizer=optimizer)
    train(model, optimizer, 60)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    train(model, optimizer, 300)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() - before < 1 << 20


@pytest.mark.filterwarnings("ignore:TensorFloat32", "ignore:The CUDA Graph is empty")
def test_compiled_model_trains_as_without(attach):
    found = []
    for seen in (False, True):
        torch.manual_seed(7)
        torch._dynamo.reset()
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if seen:
            handle = attach(model, optimizer=optimizer, save_every=4)
        compiled = torch.compile(model, mode="reduce-overhead")
        found.append(train(compiled, optimizer, 12))
    handle.detach()
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-5)
    run = open_run(handle.run_path)
    assert run.tensor("1.weight").steps().tolist() == [0, 4, 8]
    assert run.tensor("activation/1").steps().tolist() == [0, 4, 8]


FAILING = """
import torch, tdbg_lab
model = torch.nn.Embedding(4, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
handle = tdbg_lab.attach(model, optimizer=optimizer, store="run", save_every=1, profiler=False)
for step in range(10):
    rows = torch.arange(4, device="cuda") + (step == 6)
    loss = model(rows).square().sum()
    loss.backward()
    optimizer.step()
    loss.item()
"""


def test_a_device_that_fails_is_the_training_s_own_error(python, tmp_path):
    begun = time.monotonic()
    done = python("-c", FAILING)
    assert done.returncode == 1, done.stderr[-3000:]
    assert "device-side assert" in done.stderr
    assert time.monotonic() - begun < 90, "nobody waits for a device that is gone"
    run = open_run(tmp_path / "run")
    assert str(run.status) == "failed"
    assert run.tensor("weight").steps().tolist()[:6] == list(range(6))
