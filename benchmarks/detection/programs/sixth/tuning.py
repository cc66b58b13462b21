"""Fine-tuning in the sixth set: nets of its other trainings, with parts that stay as they are."""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, second, setup, silent
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.loop import train
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.tables import half_cosine
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.sixth import pictures_data, tables_data
from benchmarks.detection.programs.sixth.nets import Adapted, stack
from benchmarks.detection.programs.sixth.pictures import leaves_sorted, signs_told
from benchmarks.detection.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TASKS"]


@cache
def _taught(build: Callable[[int], Recipe]) -> nn.Sequential:
    recipe = build(690)
    train(recipe, None, 690)
    return recipe.model


def taught(build: Callable[[int], Recipe]) -> nn.Sequential:
    """The net of another training, once that is done (by chance of its own)."""
    with torch.random.fork_rng():
        torch.manual_seed(690)
        return copy.deepcopy(_taught(build))


def signs_of_others(seed: int) -> Recipe:
    """The first two convolutions stay as they are; the last one is tuned, and the head is new."""
    model = taught(signs_told)
    model[:8].requires_grad_(False)
    model[-1] = nn.Linear(24, 6)
    return Recipe(
        model, *pictures_data.signs(632, (3, 4, 30), (2, 3), 1600), batch=32, steps=130,
        schedule=half_cosine(130, 10), optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.02),
    )  # fmt: skip


def leaves_of_others(seed: int) -> Recipe:
    """All layers are tuned, the convolutions at a fifth of the rate of the new head."""
    model = taught(leaves_sorted)
    model[-1] = nn.Linear(48, 4)

    def in_groups(found: list[nn.Parameter]) -> torch.optim.Optimizer:
        slow = {id(one) for one in model[:6].parameters()}
        return torch.optim.SGD([
            {"params": [one for one in found if id(one) not in slow], "lr": 0.05},
            {"params": [one for one in found if id(one) in slow], "lr": 0.01},
        ], momentum=0.9, weight_decay=1e-4)  # fmt: skip

    return Recipe(
        model, *pictures_data.leaves(637, (0, 3, 4, 6), 1500), batch=32, steps=150,
        schedule=half_cosine(150, 5), optimizer=in_groups,
    )  # fmt: skip


def machines_known(seed: int) -> Recipe:
    return Recipe(
        stack((24, 64, 48, 5), nn.ReLU),
        *tables_data.few(tables_data.classes(613, 3800, 24, 0, 5), 1400), batch=70, steps=120,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


def machines_adapted(seed: int) -> Recipe:
    """The same sensors in other machines: narrow additions to each layer are learnt, and a new head."""
    model = Adapted(taught(machines_known), nn.Linear(48, 5))
    return Recipe(
        model, *tables_data.moved(tables_data.classes(613, 3800, 24, 0, 5)), batch=40, steps=160,
        optimizer=lambda p: torch.optim.Adam(p, 6e-3), schedule=half_cosine(160),
    )  # fmt: skip


THAWED = 50


def faces_by_leaves(seed: int) -> Recipe:
    """First the dense layers alone, then what looked at leaves, too, at a lower rate."""
    model = taught(leaves_sorted)
    model[:6].requires_grad_(False)
    model[7], model[9] = nn.Linear(216, 48), nn.Linear(48, 4)

    def thaw(recipe: Recipe, step: int) -> None:
        if step == THAWED:
            model[:6].requires_grad_(True)
            if recipe.options.get("joins", True):
                recipe.made_optimizer.add_param_group({"params": list(model[:6].parameters()), "lr": 1e-3})

    return Recipe(
        model, *pictures_data.faces(663, 2000), batch=40, steps=170, before_step=[thaw],
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


TASKS = (
    Task("signs_of_others", "fine-tuning", signs_of_others, {"batches": ways.batches_of(64)},
         (setup.constant_output("14"), silent.stale_optimizer("14"))),
    Task("leaves_of_others", "fine-tuning", leaves_of_others, {"smoothed": v.smoothed},
         (fourth.ended_early(15), second.set_back(90))),
    Task("machines_adapted", "fine-tuning", machines_adapted, {"nadam": w.by("NAdam", 4e-3)},
         (fourth.both_zero("down.0", "up.0", "down.1", "up.1"), silent.other_model())),
    Task("faces_by_leaves", "fine-tuning", faces_by_leaves, {"clipped": ways.clipped(2.0)},
         (sixth.swapped_arguments(0.1), fifth.thawed_unseen(r"(^|[/.])[03]\b", THAWED))),
)  # fmt: skip
