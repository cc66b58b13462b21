"""Collections against names: by kind, name, regular expression, module and predicate."""

from __future__ import annotations

import logging

import pytest
import torch
from capture_training import Net, train
from torch import nn

from tdbg_lab.capture.plan import Due, Plan
from tdbg_lab.config import CaptureConfig
from tdbg_lab.records import Kind, Mode


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(Net(), nn.ReLU())
        self.tail = nn.Linear(3, 3)

    def forward(self, x):
        return self.tail(self.body(x))


MODEL = Nested()


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ({"tensors": "tail.weight"}, {"tail.weight"}),
        ({"include": r"^gradient/.*conv"}, {"gradient/body.0.conv.weight", "gradient/body.0.conv.bias"}),
        ({"include": "conv", "exclude": "gra|bias", "kinds": ["weight", "gradient"]}, {"body.0.conv.weight"}),
        ({"modules": "tail", "kinds": "activation"}, {"activation/tail"}),
        ({"modules": MODEL.tail, "kinds": ["bias"]}, {"tail.bias"}),
        ({"include": "activation/body$"}, {"activation/body"}),
        ({"modules": "body", "kinds": "activation"}, {f"activation/body{p}" for p in (
            "", ".0.conv", ".0.norm", ".0.relu", ".0.drop", ".0.head", ".1")}),
        ({"predicate": lambda name, module: isinstance(module, nn.Linear), "kinds": "activation"}, {
            "activation/tail", "activation/body.0.head"}),
    ],
    ids=["name", "regex", "exclude", "module path", "module object", "container", "subtree", "predicate"],
)  # fmt: skip
def test_collection_holds_what_it_chooses(attach, chosen, names):
    handle = attach(MODEL, collections=[{"name": "mine", **chosen}])
    optimizer = torch.optim.SGD(MODEL.parameters(), lr=0.01)
    train(MODEL, optimizer, 1)
    handle.detach()
    own = {key.name for key in handle.run.tensors() if key.kind is not Kind.COST}
    assert own == names
    assert {key.collections[0] for key in handle.run.tensors() if key.name in names} == {"mine"}


def test_tensor_in_two_collections_follows_both_schedules(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mine = {"name": "mine", "include": "conv.weight$", "kinds": ["weight"], "save": [1]}
    handle = attach(model, optimizer=optimizer, save_every=4, collections=["weights", mine])
    train(model, optimizer, 6)
    handle.detach()
    assert handle.run.steps(tensor="conv.weight").tolist() == [0, 1, 4]
    assert handle.run.steps(tensor="head.weight").tolist() == [0, 4]
    assert handle.run.tensors(regex="^conv.weight")[0].collections == ("weights", "mine")


@pytest.mark.parametrize(
    ("right", "wrong", "near"),
    [
        ({"include": "activation/conv"}, {"include": "activation/cnov"}, "activation/conv"),
        ({"modules": ["conv"]}, {"modules": ["cnov"]}, "conv.weight"),
        ({"modules": ["conv"], "include": "conv"}, {"tensors": ["conv.wieght"]}, "conv.weight"),
    ],
)
def test_what_matches_nothing_is_told_once_with_near_names(attach, caplog, right, wrong, near):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    collections = ["default", {"name": "x", **wrong}, {"name": "y", **right}]
    with caplog.at_level(logging.WARNING, "tdbg_lab"):
        handle = attach(model, optimizer=optimizer, collections=collections)
        train(model, optimizer, 6)
        handle.detach()
    told = [one.getMessage() for one in caplog.records if "no tensor matches" in one.getMessage()]
    assert len(told) == 1
    (given,) = wrong.values()
    assert repr(given if isinstance(given, str) else given[0]) in told[0]
    assert near in told[0]


def test_eval_passes_are_saved_when_enough_steps_went_by():
    due = Due(Plan(CaptureConfig.build(save_every=10, collections=["activations"])))
    saved = [
        (step, micro) for step in (3, 7, 13, 30) for micro in range(12) if due.mask(step, Mode.EVAL, micro)
    ]
    assert saved == [(3, 0), (3, 10), (13, 0), (13, 10), (30, 0), (30, 10)]


def test_masks_of_kinds_name_the_collections_that_may_hold_them():
    plan = Plan(CaptureConfig.build(collections=["weights", "losses", {"name": "any", "include": "x"}]))
    assert plan.mask_of(Kind.WEIGHT) == 0b101
    assert plan.mask_of(Kind.LOSS) == 0b110
    assert plan.mask_of(Kind.INPUT) == 0b100
