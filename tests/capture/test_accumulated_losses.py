"""Losses of steps whose gradients are accumulated, each divided by the number of backward passes."""

from __future__ import annotations

import pytest
import torch
from loss_training import batch, losses_of, made
from torch.nn import functional


def accumulated(model, optimizer, *, steps=6, passes=4, part=lambda loss: loss / 4, scaler=None):
    """Train on the mean of some batches a step; gives the mean of their losses, step by step."""
    means = []
    for _ in range(steps):
        losses = []
        for _ in range(passes):
            x, y = batch()
            loss = functional.cross_entropy(model(x), y)
            losses.append(loss.item())
            (part(loss) if scaler is None else scaler.scale(part(loss))).backward()
        means.append(sum(losses) / passes)
        optimizer.step() if scaler is None else (scaler.step(optimizer), scaler.update())
        optimizer.zero_grad()
    return means


@pytest.mark.parametrize("save_every", [1, 4])
@pytest.mark.parametrize(
    "part", [lambda loss: loss / 4, lambda loss: loss * 0.25, lambda loss: loss.div(4.0)]
)
def test_loss_of_accumulated_gradients_is_recorded_as_it_was_before_it_was_divided(attach, save_every, part):
    model, optimizer = made()
    with attach(model, optimizer=optimizer, save_every=save_every) as handle:
        means = accumulated(model, optimizer, part=part)
    assert losses_of(handle.run) == pytest.approx(means)


def test_loss_of_accumulated_gradients_is_recorded_as_it_was_before_a_scaler_too(attach):
    model, optimizer = made()
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    with attach(model, optimizer=optimizer) as handle:
        means = accumulated(model, optimizer, scaler=scaler)
    assert losses_of(handle.run) == pytest.approx(means)


def test_loss_that_is_divided_by_the_size_of_its_batch_stays_as_it_is(attach):
    model, optimizer = made()
    losses = []
    with attach(model, optimizer=optimizer) as handle:
        for _ in range(6):
            x, y = batch()
            loss = functional.cross_entropy(model(x), y, reduction="sum") / 6
            optimizer.zero_grad()
            loss.backward()
            losses.append(loss.item())
            optimizer.step()
    assert losses_of(handle.run) == pytest.approx(losses)


def test_mean_of_two_losses_stays_as_it_is_where_it_is_made_small_twice_a_step(attach):
    model, optimizer = made()
    means = []
    with attach(model, optimizer=optimizer) as handle:
        for _ in range(6):
            losses = []
            for _ in range(2):
                (x, y), (x2, y2) = batch(), batch()
                both = functional.cross_entropy(model(x), y) + functional.cross_entropy(model(x2), y2)
                (both / 2).backward()
                losses.append(both.item() / 2)
            means.append(sum(losses) / 2)
            optimizer.step()
            optimizer.zero_grad()
    assert losses_of(handle.run) == pytest.approx(means)


def test_gradients_that_a_closure_accumulates_have_the_loss_from_before_it_was_divided(attach):
    model, optimizer = made()
    means = []

    def closure():
        optimizer.zero_grad()
        total = 0.0
        for x, y in (batch(), batch(), batch()):
            loss = functional.cross_entropy(model(x), y)
            (loss / 3).backward()
            total += loss.item()
        means.append(total / 3)
        return total / 3

    with attach(model, optimizer=optimizer) as handle:
        for _ in range(6):
            optimizer.step(closure)
    assert losses_of(handle.run) == pytest.approx(means)


def test_loss_that_is_added_to_zero_before_it_is_divided_is_no_mean_of_two(attach):
    """As Composer adds up the parts of a loss of each of two microbatches."""
    model, optimizer = made()
    with attach(model, optimizer=optimizer) as handle:
        means = accumulated(model, optimizer, passes=2, part=lambda loss: (torch.zeros(()) + loss) * 0.5)
    assert losses_of(handle.run) == pytest.approx(means)


def test_loss_with_smoothed_labels_that_is_halved_is_no_mean_of_two(attach):
    """As the trainer of transformers smooths them: nine parts of one loss and one of another."""
    model, optimizer = made()
    with attach(model, optimizer=optimizer) as handle:
        means = accumulated(
            model, optimizer, passes=2, part=lambda loss: (0.9 * loss + 0.1 * loss.square().sqrt()) / 2
        )
    assert losses_of(handle.run) == pytest.approx(means)


def test_losses_that_were_held_are_written_where_training_ends_before_its_first_step(attach):
    model, optimizer = made()
    with attach(model, optimizer=optimizer) as handle:
        x, y = batch()
        loss = functional.cross_entropy(model(x), y)
        (loss / 4).backward()
    assert losses_of(handle.run) == pytest.approx([loss.item() / 4])


def test_loss_is_recorded_as_it_was_before_accelerate_divided_it(attach):
    accelerator = pytest.importorskip("accelerate").Accelerator(gradient_accumulation_steps=4, cpu=True)
    model, optimizer = accelerator.prepare(*made())
    losses = []
    with attach(model, optimizer=optimizer) as handle:
        for _ in range(16):
            x, y = batch()
            with accelerator.accumulate(model):
                loss = functional.cross_entropy(model(x), y)
                losses.append(loss.item())
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
    assert losses_of(handle.run) == pytest.approx(torch.tensor(losses).view(4, 4).mean(1).tolist())
