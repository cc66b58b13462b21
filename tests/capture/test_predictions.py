"""What is noted of the arguments of a loss."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tdbg_lab as tdbg
from tdbg_lab.records import Kind, LossKind


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


class Within(nn.Module):
    """A loss of the program's own, out of functions."""

    def __init__(self, *, fails=False):
        super().__init__()
        self.fails = fails

    def forward(self, told, wanted):
        if self.fails:
            raise ValueError("no such label")
        flags = F.one_hot(wanted, told.shape[1]).float()
        return F.binary_cross_entropy_with_logits(told, flags) + 0.1 * F.cross_entropy(
            input=told, target=wanted
        )


def trained(attach, model, loss, steps=8, **settings):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer, loss=loss, **settings) as handle:
        for _ in range(steps):
            optimizer.zero_grad()
            loss(model(torch.randn(8, 4)), torch.randint(0, 3, (8,))).backward()
            optimizer.step()
    return handle


def test_functions_within_a_loss_tell_what_it_compares(attach):
    handle = trained(attach, nn.Linear(4, 3), Within())
    run = handle.run
    kinds = {
        name: LossKind(int(run.scalars(name).values[-1]))
        for name in run.tensor_names(kind=Kind.CHECK)
        if name.endswith("/kind")
    }
    assert kinds == {
        "check/loss/Within/kind": LossKind.OTHER,
        "check/loss/Within:binary_cross_entropy_with_logits/kind": LossKind.YES_LOGITS,
        "check/loss/Within:cross_entropy/kind": LossKind.LOGITS,
    }
    assert 0 <= run.scalars("check/loss/Within:cross_entropy/hits").values[-1] <= 1
    assert not torch._C._len_torch_function_stack()


def test_functions_are_looked_at_no_longer_than_their_loss(attach):
    with pytest.raises(ValueError, match="no such label"):
        trained(attach, nn.Linear(4, 3), Within(fails=True))
    assert not torch._C._len_torch_function_stack()


def test_functions_within_a_loss_are_let_be_when_asked(attach):
    handle = trained(attach, nn.Linear(4, 3), Within(), config={"functional": False})
    assert not any(":" in name for name in handle.run.tensor_names(kind=Kind.CHECK))


def test_a_loss_is_the_same_with_and_without_a_look_at_its_functions(attach):
    models = []
    for functional in (True, False):
        torch.manual_seed(0)
        model = nn.Linear(4, 3)
        trained(attach, model, Within(), config={"functional": functional})
        models.append(model.weight.detach().clone())
    assert torch.equal(*models)


@pytest.mark.parametrize("log_softmax", [True, False], ids=["logarithms", "logits"])
def test_logarithms_of_a_softmax_before_a_loss_of_yes_and_no_are_told(attach, log_softmax):
    model = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(1) if log_softmax else nn.Identity())
    handle = trained(attach, model, Within())
    found = [one for one in tdbg.run_rules(handle.run_path) if one.rule == "wrong_output"]
    assert [one.evidence["problem"] for one in found] == ["both"] * log_softmax
    assert all(one.tensor == "loss/Within" for one in found)
