"""Pictures, points and places of the third held-out set; trunks that were trained before."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import held, sagemaker, second, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.networks import mlp
from benchmarks.detection.programs.pretraining import pretrained
from benchmarks.detection.programs.second.tables import right
from benchmarks.detection.programs.third import data
from benchmarks.detection.programs.third import ways as w
from benchmarks.detection.programs.third.networks import (
    Adapted,
    Clouds,
    Compared,
    Preactivated,
    Sines,
    Squeezed,
)
from benchmarks.detection.recipe import Recipe, fit_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["TASKS"]


def pairs_compared(seed: int) -> Recipe:
    return Recipe(
        Compared(), *data.pairs(), nn.BCEWithLogitsLoss(), right, batch=64, steps=150,
        optimizer=lambda p: torch.optim.NAdam(p, 3e-3),
    )  # fmt: skip


def digits_squeezed(seed: int) -> Recipe:
    return Recipe(
        Squeezed(10), *data.whole_digits(), nn.CrossEntropyLoss(label_smoothing=0.05), batch=45, steps=150,
        schedule=lambda step: min((step + 1) / 15, 1.0, max(0.02, (150 - step) / 40)),
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.05),
    )  # fmt: skip


def wool_sines(seed: int) -> Recipe:
    """A picture as a function of the place; pixels left out are told from their neighbours."""
    return Recipe(
        Sines(), *data.wool(), nn.MSELoss(), fit_of, batch=256, steps=220,
        schedule=lambda step: 0.99**step,
        optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip


def clouds_of_points(seed: int) -> Recipe:
    return Recipe(
        Clouds(4), *data.rings_of_points(), batch=48, steps=150,
        optimizer=lambda p: torch.optim.RMSprop(p, 2e-3, alpha=0.95),
    )  # fmt: skip


@cache
def _trunk() -> dict[str, torch.Tensor]:
    """Weights that tell halves of pictures."""
    rows, _ = data.halls()
    return pretrained(lambda: Preactivated(4), rows, 120, seed=130)


def _learnt() -> Preactivated:
    model = Preactivated(4)
    model.load_state_dict(_trunk())
    model.head.reset_parameters()
    return model


def topics_unfrozen(seed: int) -> Recipe:
    """First the head, and from step 50 on the last block, too."""
    model = _learnt()
    model.requires_grad_(False)
    model.head.requires_grad_(True)

    def thaw(recipe: Recipe, step: int) -> None:
        if step == 50:
            found = [*model.blocks[1].parameters(), *model.norm.parameters()]
            for one in found:
                one.requires_grad_(True)
            recipe.made_optimizer.add_param_group({"params": found, "lr": 5e-4})

    return Recipe(
        model, *data.topics(), batch=40, steps=140, before_step=[thaw],
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


def topics_layered(seed: int) -> Recipe:
    """All is trained; the nearer to the picture, the slower."""

    def groups(found: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        found = list(found)
        parts = [found[:8], found[8:-4], found[-4:]]
        rates = (2e-4, 6e-4, 3e-3)
        return torch.optim.AdamW(
            [{"params": one, "lr": rate} for one, rate in zip(parts, rates, strict=True)], weight_decay=0.02
        )

    return Recipe(_learnt(), *data.topics(), batch=32, steps=120, clip=1.0, optimizer=groups)


@cache
def _dense_trunk() -> dict[str, torch.Tensor]:
    """Weights of dense layers that tell odd digits from even ones."""
    random = torch.random.get_rng_state()
    torch.manual_seed(131)
    model = mlp(64, 40, 1, 2)
    (x, y), _ = data.parity_of_digits()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for step in range(200):
        rows = torch.arange(step * 32, step * 32 + 32) % len(x)
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x[rows]), y[rows]).backward()
        optimizer.step()
    torch.random.set_rng_state(random)
    return model.state_dict()


def digits_adapted(seed: int) -> Recipe:
    trunk = mlp(64, 40, 1, 2)
    trunk.load_state_dict(_dense_trunk())
    (x, y), (held_x, held_y) = data.whole_digits()
    shares = [((one.flatten(1) + 1) / 2, label) for one, label in ((x, y), (held_x, held_y))]
    return Recipe(
        Adapted(trunk[:4], 10), *shares, batch=40, steps=170,
        optimizer=lambda p: torch.optim.Adam(p, 2e-2),
    )  # fmt: skip


def frozen_first(recipe: Recipe) -> None:
    """What finds points is left as it was drawn: chance features do."""
    recipe.model.each[0].requires_grad_(False)


TASKS = (
    Task("pairs_compared", "convolution", pairs_compared, {},
         (sagemaker.raw_pixels(120.0, 70.0), sagemaker.output_zero("look.3", 50))),
    Task("digits_squeezed", "convolution", digits_squeezed, {},
         (silent.left_out("mix"), held.softmax_over_batch("head"))),
    Task("wool_sines", "regression", wool_sines, {"stairs": w.stairs},
         (setup.inputs_constant(70), held.momentum_wild(0.5), silent.initialised_again("layers.1", 110))),
    Task("clouds_of_points", "dense", clouds_of_points, {"frozen_first": frozen_first, "ramped": w.ramped},
         (silent.left_in_eval(), setup.missing_softmax(), third.sorted_by_class())),
    Task("topics_unfrozen", "fine-tuning", topics_unfrozen, {"scaled": v.scaled},
         (silent.stale_optimizer("head"), sagemaker.rate_tiny())),
    Task("topics_layered", "fine-tuning", topics_layered, {"wsd": w.wsd},
         (setup.oscillating(150.0), second.set_back(80))),
    Task("digits_adapted", "fine-tuning", digits_adapted, {"restarting": w.restarting},
         (silent.left_out("beside"), held.rolled_labels(), silent.stale_optimizer("head"))),
)  # fmt: skip
