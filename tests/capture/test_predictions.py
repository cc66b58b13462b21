"""What is noted of the arguments of a loss."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tdbg_lab.records import Kind


class Surrogate(nn.Module):
    """Likelihoods, gains and errors of a policy: none of them is a label."""

    def forward(self, likelier, gain, missed):
        return (missed.square() - likelier * gain).mean()


class Weighted(nn.Module):
    """Predictions, labels, and what a column is worth."""

    def forward(self, told, wanted, worth):
        return ((told - wanted).square() * worth).mean()


@pytest.mark.parametrize(
    ("loss", "third", "known"),
    [(Surrogate(), (8, 3), False), (Weighted(), (3,), True)],
    ids=["three of one shape", "predictions and labels"],
)
def test_labels_of_a_loss_of_ones_own_are_known_by_their_shape(attach, loss, third, known):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer, loss=loss) as handle:
        loss(model(torch.randn(8, 4)), torch.randn(8, 3), torch.rand(third)).backward()
        optimizer.step()
    names = handle.run.tensor_names(kind=Kind.CHECK)
    assert any(name.endswith("/correlation") for name in names) is known
