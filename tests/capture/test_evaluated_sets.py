"""Losses of several sets of data that are evaluated one after the other."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset, WeightedRandomSampler

from tdbg_lab import run_rules

LOSS = "loss/CrossEntropyLoss"


def data(seed, n=20):
    generator = torch.Generator().manual_seed(seed)
    return TensorDataset(
        torch.randn(n, 4, generator=generator), torch.randint(0, 3, (n,), generator=generator)
    )


class Program:
    """Trains on one set for some epochs, and evaluates others after each."""

    def __init__(self, attach, *, given=True):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 3))
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.handle = attach(self.model, optimizer=self.optimizer, loss=self.criterion if given else None)

    def train(self, batches):
        self.model.train()
        for x, y in batches:
            self.optimizer.zero_grad()
            self.criterion(self.model(x), y).backward()
            self.optimizer.step()

    def evaluate(self, batches):
        self.model.eval()
        with torch.no_grad():
            losses = [self.criterion(self.model(x), y).item() for x, y in batches]
        return sum(losses) / len(losses)

    def told(self, ending="", name=LOSS):
        return self.handle.run.scalars(name + ending, mode="eval").values.tolist()


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("turned", [False, True])
def test_training_data_that_is_evaluated_too_is_no_part_of_the_validation(attach, turned, given):
    program = Program(attach, given=given)
    train, held, test = (DataLoader(data(seed), 5, shuffle=seed == 0) for seed in range(3))
    found = {train: [], held: [], test: []}
    for _ in range(3):
        program.train(train)
        for one in reversed(found) if turned else found:
            found[one].append(program.evaluate(one))
    program.handle.detach()
    first, second = (test, held) if turned else (held, test)
    name = LOSS if given else "loss/objective"
    assert program.told("", name) == pytest.approx(found[first])
    assert program.told("/dataloader_idx_1", name) == pytest.approx(found[second])
    assert program.told("/training_data", name) == pytest.approx(found[train])


def test_another_loader_of_the_whole_training_data_is_one_of_it(attach):
    """Another sampler chooses in training, and a loader is made anew for each evaluation."""
    program, rows, held = Program(attach), data(0), data(1)
    sampler = WeightedRandomSampler([1.0] * 20, 20)
    for _ in range(2):
        program.train(DataLoader(rows, 5, sampler=sampler))
        program.evaluate(DataLoader(rows, 20))
        program.evaluate(DataLoader(held, 20))
    program.handle.detach()
    assert [len(program.told(ending)) for ending in ("", "/training_data")] == [2, 2]
    assert len(program.handle.run.tensor_names(kind="loss")) == 2


def test_parts_of_the_same_data_are_sets_of_their_own(attach):
    program, rows = Program(attach), data(0)
    train = DataLoader(rows, 5, sampler=SubsetRandomSampler(range(15)))
    held = DataLoader(rows, 5, sampler=SubsetRandomSampler(range(15, 20)))
    program.train(train)
    program.evaluate(train)
    value = program.evaluate(held)
    program.handle.detach()
    assert program.told() == pytest.approx([value])
    assert len(program.told("/training_data")) == 1


@pytest.mark.parametrize("in_training", [False, True])
def test_data_that_no_loader_gives_are_the_validation(attach, in_training):
    """Also in the middle of an epoch, while the loader of the training has given the last batch."""
    program, values = Program(attach), []
    x, y = data(1).tensors
    batches = DataLoader(data(0), 5) if in_training else data(0).tensors
    for batch in batches if in_training else zip(*(one.split(5) for one in batches), strict=True):
        program.train([batch])
        values.append(program.evaluate([(x, y)] if in_training else DataLoader(data(1), 20)))
    program.handle.detach()
    assert program.told() == pytest.approx(values)
    assert program.handle.run.tensor_names(kind="loss") == [LOSS]


def test_many_tasks_are_no_sets(attach):
    program = Program(attach)
    program.train(DataLoader(data(0), 5))
    for seed in range(30):
        program.evaluate(DataLoader(data(seed), 20))
    program.handle.detach()
    assert len(program.handle.run.tensor_names(kind="loss")) <= 9


def test_a_validation_that_drifts_off_is_found_beside_an_evaluation_of_the_training_data(attach):
    program = Program(partial(attach, save_every=10))
    train, held = DataLoader(data(0, 64), 16, shuffle=True), DataLoader(data(1, 64), 16)
    for _ in range(60):
        program.train(train)
        program.evaluate(train)
        program.evaluate(held)
    program.handle.detach()
    findings = {one.rule: one for one in run_rules(program.handle.run, ["overfit"])}
    assert findings["overfit"].tensor == LOSS


def test_loss_in_functions_of_a_validation_alone_keeps_its_name(attach):
    program = Program(attach, given=False)
    program.criterion = F.cross_entropy
    train, held = DataLoader(data(0), 5), DataLoader(data(1), 5)
    for _ in range(2):
        program.train(train)
        program.evaluate(held)
    program.handle.detach()
    assert program.handle.run.tensor_names(kind="loss") == ["loss/objective"]
    assert len(program.told("", "loss/objective")) == 2
