"""Optimizers around others are one for the program, and one for us."""

from __future__ import annotations

import accelerate
import pytest
import torch
from small_trainings import everywhere, net, steps
from torch import nn


class OptimizerAround(torch.optim.Optimizer):
    """An optimizer around another, that shares its groups of parameters."""

    def __init__(self, inner):
        super().__init__(inner.param_groups, {})
        self.inner, self.param_groups = inner, inner.param_groups

    def step(self):
        self.inner.step()

    def finish(self):
        self.inner.step()


def prepared(*optimizers):
    accelerator = accelerate.Accelerator(cpu=True)
    return [accelerator.prepare(one) for one in optimizers]


@pytest.mark.parametrize(
    "put_around", [prepared, lambda *optimizers: [OptimizerAround(one) for one in optimizers]]
)
def test_optimizers_in_others_are_one_run_under_the_names_of_those(watched, put_around):
    def program():
        generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
        makes, judges = put_around(
            torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
        )
        for _ in range(4):
            for player, part, sign in ((judges, critic, 1), (makes, generator, -1)):
                part.zero_grad()
                (sign * critic(generator(torch.randn(6, 2))).mean()).backward()
                player.finish() if isinstance(player, OptimizerAround) else player.step()

    (run,) = watched(program)
    names = ["loss/objective/judges", "loss/objective/makes"]
    assert run.tensor_names(kind="loss") == names
    everywhere(run, *names, "gradient/critic.weight", "optimizer/lr/makes.0", "optimizer/lr/judges.0")


def test_optimizer_that_steps_another_within_its_step_is_one_of_one_name(watched):
    def program():
        model = net()
        optimizer = OptimizerAround(torch.optim.SGD(model.parameters(), lr=0.1))
        steps(model, optimizer, nn.CrossEntropyLoss())

    (run,) = watched(program)
    everywhere(run, "loss/CrossEntropyLoss", "activation/0", "gradient/0.weight")
    assert [name for name in run.tensor_names() if name.startswith("optimizer/lr")] == ["optimizer/lr/0"]
