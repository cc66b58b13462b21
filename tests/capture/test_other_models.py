"""Models that are evaluated beside the captured one, as a moving average of its weights is."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import tdbg_lab
from tdbg_lab.records import Mode

EPOCHS, BATCHES = 3, 5
X = torch.randn(80, 6, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long()


def batches(size):
    return zip(X.split(size), Y.split(size), strict=True)


def mean_loss(model, criterion, batch=20):
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(x), y).item() for x, y in batches(batch)]
    return float(np.mean(losses))


def train(tmp_path, evaluate, after=lambda net, average, criterion, batch, out: None):
    """Train; `evaluate` is called after each epoch and gives what each loss was, `after` after each step."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    average = copy.deepcopy(net).requires_grad_(False)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    criterion = nn.CrossEntropyLoss()
    path = tmp_path / "run"
    losses = []
    with tdbg_lab.attach(
        net, optimizer=optimizer, loss=criterion, store=path, profiler=False, strict=True
    ) as handle:
        for _ in range(EPOCHS):
            net.train()
            for x, y in batches(16):
                out = net(x)
                loss = criterion(out, y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                for mean, new in zip(average.parameters(), net.parameters(), strict=True):
                    mean.data.lerp_(new.data, 0.1)
                after(net, average, criterion, (x, y), out)
            losses.append(evaluate(net, average, criterion))
        assert not handle.problems
    return tdbg_lab.open_run(path), np.array(losses)


def eval_losses(run):
    names = run.tensor_names(kind="loss", mode="eval")
    return {name: run.scalars(name, mode=Mode.EVAL).values for name in names}


def assert_trained_only(run):
    """What was trained has one loss at each step, and no other."""
    for name in run.tensor_names(kind="loss", mode="train"):
        assert name == "loss/CrossEntropyLoss"
        assert run.scalars(name, mode=Mode.TRAIN).steps.tolist() == list(range(EPOCHS * BATCHES))


def test_a_moving_average_that_is_evaluated_alone_gives_the_loss_of_the_evaluation(tmp_path):
    run, losses = train(tmp_path, lambda _net, average, criterion: mean_loss(average, criterion))
    assert_trained_only(run)
    found = eval_losses(run)
    assert list(found) == ["loss/CrossEntropyLoss"]
    np.testing.assert_allclose(found["loss/CrossEntropyLoss"], losses, rtol=1e-6)


@pytest.mark.parametrize("batch", [20, 80])
@pytest.mark.parametrize("average_first", [False, True])
def test_two_models_that_are_evaluated_are_two_losses(tmp_path, average_first, batch):
    """Whichever comes first: their batches are never one mean."""

    def evaluate(net, average, criterion):
        models = (average, net) if average_first else (net, average)
        return [mean_loss(one, criterion, batch) for one in models]

    run, losses = train(tmp_path, evaluate)
    assert_trained_only(run)
    found = eval_losses(run)
    assert list(found) == ["loss/CrossEntropyLoss", "loss/CrossEntropyLoss:1"]
    np.testing.assert_allclose(np.stack(list(found.values()), 1), losses, rtol=1e-6)


@pytest.mark.parametrize("heads_of_average", [1, 2])
def test_several_losses_of_a_batch_keep_their_numbers(tmp_path, heads_of_average):
    """A model with two heads, say: the average's are counted behind them."""

    def evaluate(net, average, criterion):
        means = []
        for model, heads in ((net, 2), (average, heads_of_average)):
            model.eval()
            values = []
            with torch.no_grad():
                for x, y in batches(20):
                    out = model(x)
                    values.append([criterion(out * sign, y).item() for sign in (1, -1)[:heads]])
            means += np.mean(values, 0).tolist()
        return means

    run, losses = train(tmp_path, evaluate)
    assert_trained_only(run)
    found = eval_losses(run)
    if heads_of_average == 2:
        assert list(found) == [f"loss/CrossEntropyLoss{number}" for number in ("", ":1", ":2", ":3")]
        np.testing.assert_allclose(np.stack(list(found.values()), 1), losses, rtol=1e-6)
    else:
        np.testing.assert_allclose(np.stack(list(found.values()), 1)[:, :2], losses[:, :2], rtol=1e-6)


def test_an_evaluation_amid_gradients_that_are_accumulated_is_one(tmp_path):
    """As where an epoch ends before the step that its last batches are for."""

    def evaluate(net, average, criterion):
        net.train()
        criterion(net(X[:20]), Y[:20]).backward()
        return mean_loss(average, criterion)

    run, losses = train(tmp_path, evaluate)
    np.testing.assert_allclose(eval_losses(run)["loss/CrossEntropyLoss"], losses, rtol=1e-6)


@pytest.mark.parametrize("every", [1, 4])
def test_a_loss_that_is_read_again_after_the_step_is_of_the_training(tmp_path, every):
    """Of the outputs that were trained by; be it at each step or at some."""
    calls = []

    def after(_net, _average, criterion, batch, out):
        calls.append(out)
        if len(calls) % every == 0:
            with torch.no_grad():
                criterion(out, batch[1])

    run, _ = train(tmp_path, lambda *_: 0.0, after)
    assert not run.tensor_names(kind="loss", mode="eval")
    assert run.tensor_names(kind="loss", mode="train") == ["loss/CrossEntropyLoss", "loss/CrossEntropyLoss:1"]


def test_a_teacher_that_is_asked_at_each_step_is_of_the_training(tmp_path):
    def after(_net, average, criterion, batch, _out):
        with torch.no_grad():
            criterion(average(batch[0]), batch[1])

    run, _ = train(tmp_path, lambda *_: 0.0, after)
    assert not run.tensor_names(kind="loss", mode="eval")


def test_losses_of_two_kinds_are_of_the_same_batches(tmp_path):
    other = nn.MSELoss()

    class Both(nn.Module):
        def forward(self, out, y):
            return other(out, functional.one_hot(y, 2).float())

    def evaluate(_net, average, criterion):
        losses = []
        average.eval()
        with torch.no_grad():
            for x, y in batches(20):
                losses.append([criterion(average(x), y).item(), Both()(average(x), y).item()])
        return np.mean(losses, 0)[0]

    run, losses = train(tmp_path, evaluate)
    np.testing.assert_allclose(eval_losses(run)["loss/CrossEntropyLoss"], losses, rtol=1e-6)
