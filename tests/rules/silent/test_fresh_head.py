"""A head that was frozen as it was drawn is found; frozen parts that were trained, and copies, are not."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.rules import check_run


def trained() -> nn.Sequential:
    """A network that has been taught something."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 24), nn.ReLU(), nn.Linear(24, 5))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(60):
        x = torch.randn(64, 12)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), x[:, :5].argmax(1)).backward()
        optimizer.step()
    return model


def found(path, model, frozen: tuple[int, ...]) -> list[str]:
    for place in frozen:
        model[place].requires_grad_(False)
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], 1e-3)
    loss = nn.CrossEntropyLoss()
    with tdbg.attach(model, optimizer=optimizer, loss=loss, store=path, profiler=False, rules="none"):
        for _ in range(12):
            x = torch.randn(64, 12)
            optimizer.zero_grad()
            loss(model(x), x[:, :5].argmax(1)).backward()
            optimizer.step()
    return [one.tensor for one in check_run(path, ["parameters_without_gradient"])[0]]


@pytest.mark.parametrize(
    ("new", "frozen", "named"),
    [(True, (0, 4), ["4.weight"]), (True, (0, 2), []), (False, (0, 4), []), (True, (), [])],
    ids=["new head, frozen", "new head, trained", "old head, frozen", "nothing frozen"],
)
def test_a_new_head_that_is_frozen_is_named(tmp_path, new, frozen, named):
    model = trained()
    if new:
        model[4] = nn.Linear(24, 5)
    assert found(tmp_path / "run", model, frozen) == named


def test_a_copy_of_a_layer_that_is_trained_is_meant_to_stay(tmp_path):
    class WithTarget(nn.Sequential):
        def forward(self, x):
            with torch.no_grad():
                self[3](self[2](x))
            return self[1](self[0](x))

    torch.manual_seed(0)
    body, head = nn.Sequential(nn.Linear(12, 24), nn.ReLU()), nn.Linear(24, 5)
    model = WithTarget(body, head, copy.deepcopy(body), copy.deepcopy(head))
    assert found(tmp_path / "run", model, (2, 3)) == []
