"""A model that gets layers while it is trained stays one training."""

from __future__ import annotations

import pytest
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


@pytest.mark.parametrize("told", [True, False], ids=["told the optimizer", "of an optimizer of its own"])
def test_layer_that_is_added_is_no_training_of_its_own(watched, caplog, told):
    def program():
        torch.manual_seed(0)
        model, criterion = Growing(), nn.CrossEntropyLoss()
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.1)]
        for step in range(24):
            if step in {8, 16} and told:
                optimizers[0].add_param_group({"params": model.grow()})
            elif step == 8:
                optimizers = [torch.optim.SGD([*model.parameters(), *model.grow()], lr=0.1)]
            x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
            for one in optimizers:
                one.zero_grad()
            criterion(model(x), y).backward()
            for one in optimizers:
                one.step()

    runs = watched(program)
    if told:
        (run,) = runs
        assert run.last_step == 23
        assert run.scalars("loss/CrossEntropyLoss").steps.tolist() == list(range(24))
        assert caplog.text.count("added to the model after capture had begun") == 1
    else:  # another optimizer over more of it: a training of all of it
        assert "between.0.weight" in runs[-1].tensor_names(kind="weight")
