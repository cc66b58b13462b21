"""How the data loaders of training are set."""

from __future__ import annotations

import gc
import json

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from tdbg_lab.capture.pytorch.session import TorchSession
from tdbg_lab.store.loaders import LoaderFacts


def trained(attach, loader):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer) as handle:
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    return handle.run


def test_loader_in_use_is_recorded_with_its_settings(attach):
    data = TensorDataset(torch.randn(20, 4), torch.randint(0, 2, (20,)))
    unused = DataLoader(data, batch_size=7)
    run = trained(attach, DataLoader(data, batch_size=5))
    assert run.loaders() == [LoaderFacts(kind="TensorDataset", batch_size=5, rows=20)]
    assert unused.batch_size == 7


def test_loader_is_seen_whose_first_batch_was_taken_before(attach):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = None
    for inputs, labels in DataLoader(TensorDataset(torch.randn(20, 4), torch.randint(0, 2, (20,))), 5):
        handle = handle or attach(model, optimizer=optimizer)
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    handle.detach()
    assert handle.run.loaders() == [LoaderFacts(kind="TensorDataset", batch_size=5, rows=20)]


def test_loader_is_given_back_when_nothing_was_taken_of_one(attach):
    before = _BaseDataLoaderIter.__next__
    handles = [attach(nn.Linear(4, 2)) for _ in range(2)]
    assert _BaseDataLoaderIter.__next__ is not before
    for handle in handles:
        handle.detach()
    assert _BaseDataLoaderIter.__next__ is before


def test_loader_is_given_back_when_whoever_watched_is_gone(attach, monkeypatch):
    before = _BaseDataLoaderIter.__next__
    monkeypatch.setattr(TorchSession, "_hook_boundaries", lambda *_: 1 / 0)
    monkeypatch.setattr(TorchSession, "detach", lambda _self: None)
    with pytest.raises(ZeroDivisionError):
        attach(nn.Linear(4, 2))
    gc.collect()
    assert _BaseDataLoaderIter.__next__ is before


def test_training_without_a_loader_records_none(attach):
    batch = torch.randn(5, 4), torch.randint(0, 2, (5,))
    assert trained(attach, [batch] * 12).loaders() == []


def test_broken_facts_of_loaders_are_left_out(attach):
    run = trained(attach, [(torch.randn(5, 4), torch.randint(0, 2, (5,)))])
    file = run.path / "rank-00000" / "loaders.json"
    file.write_text("{")
    assert run.loaders() == []
    file.write_text(json.dumps({"loaders": [5, {"num_workers": "many", "batch_size": -1, "kind": ["x"]}]}))
    assert run.loaders() == [LoaderFacts(kind="['x']")]
