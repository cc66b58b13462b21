"""Layers, functions and losses that a network calls more often in a step than is recorded."""

from __future__ import annotations

import logging
import re

import torch
from torch import nn
from torch.nn import functional as F


class Unrolled(nn.Module):
    """Called for each of many places in a sequence."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.RNNCell(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        state, found = None, []
        for place in x.unbind(1):
            state = self.cell(place, state)
            found.append(F.relu(self.head(state)))
        return found


def test_values_beyond_the_most_that_one_name_has_in_a_step_are_told_once(attach, caplog):
    model, criterion = Unrolled(), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with caplog.at_level(logging.WARNING, "tdbg_lab"):
        handle = attach(model, optimizer=optimizer, loss=criterion, collections=["activations", "losses"])
        for places in (64, 65, 66):
            outputs = model(torch.ones(2, places, 3))
            sum(criterion(one, torch.ones(2, 2)) for one in outputs).backward()
            optimizer.step()
    handle.detach()
    names = [key.name for key in handle.run.tensors()]
    for one in ("activation/cell", "activation/head", "activation/relu", "loss/MSELoss"):
        assert sum(re.split("[:_]", name)[0] == one for name in names) == 64, one
    told = [record.getMessage() for record in caplog.records if "only the first" in record.getMessage()]
    assert len(told) == 1
    assert "from step 1 on, only the first 64 values of activation/cell in a step are recorded" in told[0]
