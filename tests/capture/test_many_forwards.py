"""Models that are called for long after they have been trained, as the teacher of another one is."""

import pytest
import torch
from torch import nn

import tdbg_lab
from tdbg_lab.capture.many_calls import MANY, is_spread

FORWARDS = 8 * MANY


@pytest.mark.parametrize(("mode", "gradients"), [("train", False), ("train", True), ("eval", False)])
def test_layers_of_a_model_that_is_called_for_long_are_seen_ever_more_rarely(tmp_path, mode, gradients):
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    x = torch.randn(8, 4)
    with tdbg_lab.attach(
        net, optimizer=optimizer, store=tmp_path / "run", save_every=1, profiler=False, strict=True
    ):
        net(x).mean().backward()
        optimizer.step()
        net.train(mode == "train")
        with torch.set_grad_enabled(gradients):
            for _ in range(FORWARDS):
                net(x)
        net.train()
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()
    run = tdbg_lab.open_run(tmp_path / "run")
    as_often_each_time_it_is_called_twice_as_often = MANY + 3 * (MANY // 2)
    trained_by = int(mode == "train")  # the last forward is of the same place
    count = run.stats("activation/0", "count", mode=mode)["count"].iloc[-1]
    assert count == (as_often_each_time_it_is_called_twice_as_often + trained_by) * 64
    assert run.steps(mode="train").tolist() == [0, 1]
    for name in ("activation/0", "gradient/0.weight"):
        assert run.to_pandas(regex=f"^{name}$", mode="train")["step"].tolist() == [0, 1], (
            "trained again: seen"
        )


def test_gradients_of_many_batches_are_seen_all(tmp_path):
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    x, batches = torch.randn(8, 4), MANY + 50
    with tdbg_lab.attach(net, optimizer=optimizer, store=tmp_path / "run", profiler=False, strict=True):
        for _ in range(batches):
            (net(x).mean() / batches).backward()
        optimizer.step()
    count = tdbg_lab.open_run(tmp_path / "run").stats("activation/Linear", "count")["count"].tolist()
    assert count == [batches * 16]


@pytest.mark.parametrize("forward", [0, 1, MANY - 1, MANY, 2 * MANY, 12 * MANY])
def test_first_forwards_and_round_numbers_are_seen(forward):
    assert is_spread(forward)


@pytest.mark.parametrize("forward", [MANY + 1, 2 * MANY + 2, 4 * MANY - 1, 12 * MANY + 8])
def test_others_are_not(forward):
    assert not is_spread(forward)
