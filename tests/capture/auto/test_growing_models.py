"""A model that gets layers while it is trained stays one training."""

from __future__ import annotations

import torch
from torch import nn


class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last, self.between = nn.Linear(4, 8), nn.Linear(8, 3), nn.ModuleList()

    def forward(self, x):
        x = torch.relu(self.first(x))
        for layer in self.between:
            x = x + torch.relu(layer(x))
        return self.last(x)

    def grow(self):
        self.between.append(nn.Linear(8, 8))
        return self.between[-1].parameters()


def grown(before):
    """Train a model; `before` is called before each step and gives the optimizer of it."""
    torch.manual_seed(0)
    model, criterion = Growing(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(24):
        optimizer = before(step, model, optimizer)
        x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()


def test_layer_that_is_added_is_no_training_of_its_own(watched, caplog):
    def before(step, model, optimizer):
        if step in {8, 16}:
            optimizer.add_param_group({"params": model.grow()})
        return optimizer

    (run,) = watched(lambda: grown(before))
    assert run.last_step == 23
    assert run.scalars("loss/CrossEntropyLoss").steps.tolist() == list(range(24))
    names = run.tensor_names()
    for name in ("between.0.weight", "gradient/between.1.weight", "activation/between.1"):
        assert name in names
    assert run.steps(tensor="activation/between.1")[0] in range(16, 24)
    assert "added" not in caplog.text


def test_optimizer_for_the_grown_model_begins_a_run_of_all_of_it(watched):
    def before(step, model, optimizer):
        return torch.optim.SGD([*model.parameters(), *model.grow()], lr=0.1) if step == 8 else optimizer

    first, second = watched(lambda: grown(before))
    assert "between.0.weight" in second.tensor_names(kind="weight")
    assert [first.last_step, second.last_step] == [8, 15]  # the step in which it is noticed is in both


def test_run_of_a_model_ends_when_a_new_head_is_trained_in_place_of_its_own(watched):
    def program():
        model, criterion = Growing(), nn.CrossEntropyLoss()
        model.first.requires_grad_(requires_grad=False)
        for _ in range(2):
            model.last = nn.Linear(8, 3)
            optimizer = torch.optim.SGD(model.last.parameters(), lr=0.1)
            for _ in range(6):
                optimizer.zero_grad()
                criterion(model(torch.randn(6, 4)), torch.randint(0, 3, (6,))).backward()
                optimizer.step()

    first, second = watched(program)
    assert [first.last_step, second.last_step] == [6, 5]


def test_added_layer_is_seen_after_one_that_is_no_part_of_the_model_was_told_of(watched, caplog):
    other = nn.Linear(4, 4)

    def before(step, model, optimizer):
        if step == 4:
            optimizer.add_param_group({"params": other.parameters()})
        if step == 12:
            optimizer.add_param_group({"params": model.grow()})
        if step >= 4:
            other(torch.randn(2, 4)).sum().backward()
        return optimizer

    (run,) = watched(lambda: grown(before))
    assert caplog.text.count("was added after capture had begun") == 1
    assert "activation/between.0" in run.tensor_names()
