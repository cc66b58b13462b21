"""What is made small where it is more than a loss module gave."""

from __future__ import annotations

import pytest
import torch
from loss_training import LOSS, batch, losses_of, made
from torch import nn
from torch.nn import functional


def of_a_penalty(model, of_classes, _):
    x, y = batch()
    return of_classes(model(x), y) + 0.1 * model[0].weight.abs().sum()


def of_two_modules(model, of_classes, of_numbers):
    x, y = batch()
    outputs = model(x)
    return 2 * of_classes(outputs, y) + of_numbers(outputs, functional.one_hot(y, 3).float())


def of_two_forwards(model, _, of_numbers):
    (x, y), (other, _) = batch(), batch()
    return of_numbers(model(x), functional.one_hot(y, 3).float()) + of_numbers(
        model(other), torch.zeros(6, 3)
    )


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("loss_of", [of_a_penalty, of_two_modules, of_two_forwards])
def test_what_is_added_to_the_loss_of_a_module_shows_in_what_is_made_small(attach, loss_of, scaled):
    model, optimizer = made()
    modules = nn.CrossEntropyLoss(), nn.MSELoss()
    scaler, losses, evaluated = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=scaled), [], []
    with attach(model, optimizer=optimizer, loss=modules) as handle:
        for _ in range(5):
            optimizer.zero_grad()
            loss = loss_of(model, *modules)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            evaluated = [loss_of(model, *modules).item() for _ in range(2)]
        model.train()
    assert losses_of(handle.run) == pytest.approx(losses)
    if loss_of is of_two_modules:  # of one forward, and of nothing but losses
        assert handle.run.scalars(LOSS, mode="eval").values.tolist() == pytest.approx([sum(evaluated) / 2])
    assert {LOSS} < set(handle.run.tensor_names(kind="loss"))
    assert not handle.problems


ALONE = [
    lambda loss: loss / 2,
    lambda loss: loss.mean() * 3,
    lambda loss: -loss,
    lambda loss: sum([loss]),
    lambda loss: torch.stack([loss]).sum(),
]


@pytest.mark.parametrize("how", ALONE)
def test_a_loss_of_a_module_that_is_only_scaled_stands_alone(attach, how):
    model, optimizer = made()
    criterion = nn.CrossEntropyLoss()
    with attach(model, optimizer=optimizer, loss=criterion) as handle:
        for _ in range(5):
            x, y = batch()
            optimizer.zero_grad()
            how(criterion(model(x), y)).backward()
            optimizer.step()
    assert handle.run.tensor_names(kind="loss") == ["loss/CrossEntropyLoss"]
