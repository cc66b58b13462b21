"""Evaluations of models that are left in train mode: nothing but ``torch.no_grad`` tells them."""

from __future__ import annotations

import pytest
import torch
from loss_training import step, told
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def made():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def batch(seed, n=6):
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    return x, x.sum(1, keepdim=True)


def train(model, optimizer, loss_of, seeds=range(3)):
    return [step(optimizer, loss_of(model(x), y)) for x, y in map(batch, seeds)]


def evaluate(model, loss_of, seeds=(50, 51)):
    with torch.no_grad():
        return [loss_of(model(x), y).item() for x, y in map(batch, seeds)]


@pytest.mark.parametrize("given", [True, False])
def test_its_loss_is_none_of_the_training(attach, given):
    """Neither that of the next step, nor one of a step that never comes."""
    model, optimizer = made()
    criterion = nn.MSELoss()
    losses, evaluated = [], []
    with attach(model, optimizer=optimizer, **({"loss": criterion} if given else {})) as handle:
        for _ in range(3):
            losses += train(model, optimizer, criterion)
            evaluated.append(sum(evaluate(model, criterion)) / 2)
    name = "loss/MSELoss" if given else "loss/objective"
    assert told(handle.run, name, "train") == pytest.approx(losses)
    assert told(handle.run, name, "eval") == pytest.approx(evaluated)
    assert handle.run.steps(mode="train").tolist() == list(range(9))
    assert handle.run.steps(mode="eval").tolist() == [3, 6, 9]
    assert not handle.problems


def test_its_layers_are_those_of_an_evaluation(attach):
    model, optimizer = made()
    with attach(model, optimizer=optimizer) as handle:
        losses = train(model, optimizer, F.mse_loss)
        evaluate(model, F.mse_loss, (50,))
        losses += train(model, optimizer, F.mse_loss)
    run = handle.run
    assert len(losses) == len(run.steps(mode="train"))
    assert run.steps(mode="train", tensor="activation/0").tolist() == list(range(6))
    assert run.steps(mode="eval", tensor="activation/0").tolist() == [3]


class WithLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, _ = made()

    def forward(self, x, y):
        outputs = self.body(x)
        return {"outputs": outputs, "loss": F.mse_loss(outputs, y)}


def test_a_loss_that_the_model_returns(attach):
    model = WithLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses, evaluated = [], []
    with attach(model, optimizer=optimizer) as handle:
        for epoch in range(3):
            loss = model(*batch(epoch))["loss"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            with torch.no_grad():
                evaluated.append(model(*batch(50))["loss"].item())
    (name,) = handle.run.tensor_names(kind="loss")
    assert told(handle.run, name, "train") == pytest.approx(losses)
    assert told(handle.run, name, "eval") == pytest.approx(evaluated)


def test_an_evaluation_behind_each_step_is_one(attach):
    """As where a step is an epoch."""
    model, optimizer = made()
    losses, evaluated = [], []
    with attach(model, optimizer=optimizer, loss=(criterion := nn.MSELoss())) as handle:
        for _ in range(4):
            losses += train(model, optimizer, criterion, (0,))
            evaluated += evaluate(model, criterion, (50,))
    assert told(handle.run, "loss/MSELoss", "train") == pytest.approx(losses)
    assert told(handle.run, "loss/MSELoss", "eval") == pytest.approx(evaluated)


def test_a_teacher_and_a_loss_that_is_only_looked_at_are_part_of_the_step(attach):
    model, optimizer = made()
    criterion = nn.MSELoss()
    with attach(model, optimizer=optimizer, loss=criterion) as handle:
        for seed in range(4):
            x, _ = batch(seed)
            with torch.no_grad():
                target = model(x + 0.1)
            outputs = model(x)
            loss = criterion(outputs, target)
            with torch.no_grad():
                F.mse_loss(outputs, target * 0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert len(told(handle.run, "loss/MSELoss", "train")) == 4
    assert handle.run.steps(mode="eval").tolist() == []
    assert handle.run.tensor_names(kind="loss") == ["loss/MSELoss"]


@pytest.mark.parametrize("given", [True, False])
def test_a_target_that_the_model_gives_in_eval_mode_is_no_evaluation(attach, given):
    """As of an agent that expects of itself what comes next."""
    model, optimizer = made()
    criterion = nn.MSELoss()
    losses = []
    with attach(model, optimizer=optimizer, **({"loss": criterion} if given else {})) as handle:
        for seed in range(5):
            x, y = batch(seed)
            outputs = model(x)
            model.eval()
            with torch.no_grad():
                target = y + 0.9 * model(x + 0.1)
            model.train()
            loss = criterion(outputs, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    (name,) = handle.run.tensor_names(kind="loss")
    assert told(handle.run, name, "train") == pytest.approx(losses)
    assert told(handle.run, name, "eval") == []


def test_who_acts_between_steps_does_not_evaluate(attach):
    model, optimizer = made()
    with attach(model, optimizer=optimizer) as handle:
        for seed in range(4):
            for number in range(3):
                with torch.no_grad():
                    model(batch(10 * seed + number, 1)[0])
            train(model, optimizer, F.mse_loss, (seed,))
    assert handle.run.steps(mode="train").tolist() == [0, 1, 2, 3]
    assert handle.run.steps(mode="eval").tolist() == []


def test_a_training_without_gradients_has_losses_of_its_own(attach):
    """As one that tries in which direction the loss falls."""
    model, optimizer = made()
    criterion = nn.MSELoss()
    losses = []
    with torch.no_grad(), attach(model, optimizer=optimizer, loss=criterion) as handle:
        for seed in range(4):
            x, y = batch(seed)
            losses.append(criterion(model(x), y).item())
            for parameter in model.parameters():
                parameter.grad = torch.randn_like(parameter)
            optimizer.step()
    assert told(handle.run, "loss/MSELoss", "train") == pytest.approx(losses)
    assert handle.run.steps(mode="eval").tolist() == []


def test_a_model_that_is_checkpointed_as_a_whole_is_trained(attach):
    """Its forward runs without gradients, its loss does not."""
    model, optimizer = made()
    criterion = nn.MSELoss()
    losses = []
    with attach(model, optimizer=optimizer, loss=criterion) as handle:
        for seed in range(4):
            x, y = batch(seed)
            outputs = checkpoint(model, x.requires_grad_(), use_reentrant=True)
            loss = criterion(outputs, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert told(handle.run, "loss/MSELoss", "train") == pytest.approx(losses)
    assert handle.run.steps(mode="eval").tolist() == []


def test_weights_are_the_same_bit_for_bit(attach):
    bare, watched = made(), made()
    for _ in range(3):
        train(*bare, F.mse_loss)
        evaluate(bare[0], F.mse_loss)
    with attach(watched[0], optimizer=watched[1]):
        for _ in range(3):
            train(*watched, F.mse_loss)
            evaluate(watched[0], F.mse_loss)
    assert all(map(torch.equal, bare[0].parameters(), watched[0].parameters()))
