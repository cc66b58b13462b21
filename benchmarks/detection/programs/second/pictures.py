"""Convolutional networks and their like, of the second held-out set; a frozen trunk with a new head."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import sagemaker, second, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.pretraining import pretrained
from benchmarks.detection.programs.second import data
from benchmarks.detection.programs.second.networks import Mixer, Skipping, gentle, pooling
from benchmarks.detection.programs.second.tables import one_cycle, right
from benchmarks.detection.recipe import Recipe, fit_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["TASKS"]


def shapes_pooling(seed: int) -> Recipe:
    return Recipe(
        pooling(4), *data.shapes(), batch=40, steps=130, schedule=one_cycle(130),
        optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=5e-4),
    )  # fmt: skip


def places_gentle(seed: int) -> Recipe:
    """Shares of the side, by a sigmoid that can tell them all."""
    return Recipe(
        gentle(2, nn.Sigmoid), *data.places(), nn.MSELoss(), fit_of, steps=140,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


def masks_skipping(seed: int) -> Recipe:
    return Recipe(
        Skipping(), *data.masks(), nn.BCEWithLogitsLoss(), right, batch=24, steps=120,
        optimizer=lambda p: torch.optim.RMSprop(p, 2e-3, momentum=0.5),
    )  # fmt: skip


def colours_mixer(seed: int) -> Recipe:
    return Recipe(
        Mixer(4), *data.colours(), batch=48, steps=130, schedule=lambda step: min(1.0, (step + 1) / 15),
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.2),
    )  # fmt: skip


def shapes_gentle(seed: int) -> Recipe:
    return Recipe(
        gentle(4), *data.shapes(), batch=28, steps=160, optimizer=lambda p: torch.optim.NAdam(p, 2e-3)
    )


class _Headed(nn.Module):
    """A frozen trunk, always in eval mode, and a head that is trained."""

    def __init__(self, trunk: nn.Sequential) -> None:
        super().__init__()
        self.trunk = trunk.requires_grad_(False)
        self.mix, self.act, self.head = nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 4)

    def train(self, mode: bool = True) -> _Headed:  # noqa: FBT001, FBT002
        super().train(mode)
        self.trunk.eval()
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.act(self.mix(self.trunk(x))))


@cache
def _learnt() -> dict[str, torch.Tensor]:
    """Weights of a network that tells the first two shapes."""
    (x, y), _ = data.shapes()
    return pretrained(lambda: pooling(4), (x[y < 2], y[y < 2]), 120, seed=98, rate=5e-3)


def shapes_headed(seed: int) -> Recipe:
    trunk = pooling(4)
    trunk.load_state_dict(_learnt())
    return Recipe(
        _Headed(trunk[:9]), *data.shapes(), steps=140,
        optimizer=lambda p: torch.optim.Adamax(p, 5e-3),
    )  # fmt: skip


def shapes_tuned(seed: int) -> Recipe:
    """All is trained on, the older layers slowly."""
    model = pooling(4)
    model.load_state_dict(_learnt())
    model[9].reset_parameters()

    def groups(found: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        *old, weight, bias = found
        return torch.optim.AdamW([{"params": old, "lr": 3e-4}, {"params": [weight, bias], "lr": 5e-3}])

    return Recipe(model, *data.shapes(), batch=36, steps=130, optimizer=groups)


def shapes_biases(seed: int) -> Recipe:
    """Only biases, normalisations and the head are trained."""
    model = pooling(4)
    model.load_state_dict(_learnt())
    model[9].reset_parameters()
    for place in (0, 4):
        model[place].weight.requires_grad_(False)
    return Recipe(model, *data.shapes(), steps=130, optimizer=lambda p: torch.optim.Adam(p, 1e-2))


def large_batches(recipe: Recipe) -> None:
    recipe.batch, recipe.steps, recipe.rate = 300, 90, 5e-3


TASKS = (
    Task("shapes_pooling", "convolution", shapes_pooling, {"bf16": v.bf16},
         (sagemaker.dead_units("5", 55), silent.empty_buffer("1"), silent.no_zero_grad())),
    Task("places_gentle", "convolution", places_gentle, {"large_batches": large_batches},
         (sagemaker.raw_pixels(), silent.detached("4"))),
    Task("masks_skipping", "convolution", masks_skipping, {"accumulating": v.accumulating},
         (second.bytes_for_shares(), silent.left_out("deep"))),
    Task("colours_mixer", "convolution", colours_mixer, {"smoothed": v.smoothed},
         (setup.redundant_softmax("head"), silent.workers_alike(3), setup.diverging(30.0, 80))),
    Task("shapes_gentle", "convolution", shapes_gentle, {"restarts": v.restarts},
         (sagemaker.classes_confused(0, 1), setup.inputs_constant(70))),
    Task("shapes_headed", "fine-tuning", shapes_headed, {"cosine": v.cosine},
         (silent.stale_optimizer("head"), sagemaker.rate_tiny())),
    Task("shapes_tuned", "fine-tuning", shapes_tuned, {"warm_up": v.warm_up},
         (setup.missing_softmax(), silent.never_eval())),
    Task("shapes_biases", "fine-tuning", shapes_biases, {},
         (setup.shuffled_labels(), silent.skipped(50))),
)  # fmt: skip
