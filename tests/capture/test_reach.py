"""Which parameters a backward reaches."""

from __future__ import annotations

import gc

import torch

from tdbg_lab.capture.pytorch.reach import Reach


def loss_of(weight):
    return (weight * 2).sum().grad_fn


def test_what_is_known_is_asked_for_once_of_optimizers_that_take_turns():
    weights = [torch.nn.Parameter(torch.ones(3)) for _ in range(3)]
    asked = []

    def known():
        asked.append(1)
        return set(map(id, weights))

    reach = Reach()
    for _ in range(5):
        assert all(reach.may_be_known(loss_of(weight), known) for weight in weights)
    assert len(asked) == 3
    assert not reach.may_be_known(loss_of(torch.nn.Parameter(torch.ones(3))), known)


def test_a_parameter_that_is_gone_is_not_taken_for_one_in_its_place():
    reach = Reach()
    for _ in range(40):  # ids are given away again
        weight = torch.nn.Parameter(torch.ones(3))
        known = {id(weight)}
        assert reach.may_be_known(loss_of(weight), known.copy)
        del weight
        gc.collect()
        assert not reach.may_be_known(loss_of(torch.nn.Parameter(torch.ones(3))), set)
