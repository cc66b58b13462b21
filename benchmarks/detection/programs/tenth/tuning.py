"""Fine-tuning in the tenth set: nets that learnt from other fields and other desks, with parts that stay."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import eighth_sequences as eighth
from benchmarks.detection.faults import fourth, second, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.sixth.tables_data import moved
from benchmarks.detection.programs.sixth.tuning import taught
from benchmarks.detection.programs.tenth import tables_data as data
from benchmarks.detection.programs.tenth.tables import (
    calls_routed,
    homes_appraised,
    plots_mapped,
    shelves_assigned,
)
from benchmarks.detection.programs.tenth.tables_nets import Rescaled
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def plots_abroad(seed: int) -> Recipe:
    """Another satellite: the first layer stays, the second is tuned with a new head."""
    model = taught(plots_mapped)
    model[0].requires_grad_(False)
    model[8] = nn.Linear(128, 6)
    recipe = Recipe(
        model, *moved(data.kinds(1003, 7000, (18, 0, 0), 6), 3000), batch=100, steps=180,
        optimizer=lambda p: torch.optim.SGD(p, 0.02, momentum=0.9, nesterov=True, weight_decay=1e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def homes_abroad(seed: int) -> Recipe:
    """Another country: all is tuned, what is nearer to the columns at a lower rate."""
    model = taught(homes_appraised)

    def in_groups(_: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW([
            {"params": model[:2].parameters(), "lr": 5e-4}, {"params": model[2:4].parameters(), "lr": 1e-3},
            {"params": model[4:].parameters(), "lr": 2e-3},
        ], weight_decay=0.02)  # fmt: skip

    recipe = Recipe(
        model, *moved(data.amounts(1011, 7000, (13, 0, 7), ridges=24), 2600), nn.HuberLoss(), fit_of,
        batch=100, steps=180, optimizer=in_groups,
    )  # fmt: skip
    ways.warm_cosine(15)(recipe)
    return recipe


def calls_abroad(seed: int) -> Recipe:
    """Another desk: the layers stay, and what comes out of each is scaled anew before a new head."""
    model = taught(calls_routed)
    model[0], model[3], model[6] = Rescaled(model[0]), Rescaled(model[3]), nn.Linear(96, 7)
    recipe = Recipe(
        model, *moved(data.kinds(1001, 8000, (12, 1, 6), 7), 3200), batch=100, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.01),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def shelves_abroad(seed: int) -> Recipe:
    """Another warehouse: the first layer stays, the others are tuned."""
    model = taught(shelves_assigned)
    model[0].requires_grad_(False)
    model[6] = nn.Linear(192, 5)
    recipe = Recipe(
        model, *moved(data.kinds(1004, 6400, (10, 1, 4), 5), 2800), batch=100, steps=170,
        optimizer=lambda p: torch.optim.Adamax(p, 2e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


TASKS = (
    Task("plots_abroad", "fine-tuning", plots_abroad, {"adam": w.by("Adam", 1e-3)},
         (setup.constant_output("8"), eighth.part_in_eval("5"))),
    Task("homes_abroad", "fine-tuning", homes_abroad, {"batches": ways.batches_of(64)},
         (fourth.raised(100.0, 90), second.zeroed_before_step())),
    Task("calls_abroad", "fine-tuning", calls_abroad, {"smoothed": v.smoothed},
         (fourth.decay_too_strong(1e-2, 60.0), silent.other_model())),
    Task("shelves_abroad", "fine-tuning", shelves_abroad, {"bf16": v.bf16},
         (setup.missing_softmax(), silent.detached("3"))),
)  # fmt: skip
