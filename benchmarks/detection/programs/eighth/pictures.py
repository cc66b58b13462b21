"""Pictures of the eighth set: told apart, measured, cleaned, drawn again, told by what was learnt before."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import eighth_tables as eighth
from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, sagemaker, second, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.eighth import pictures_data as data
from benchmarks.detection.programs.eighth.pictures_nets import Dense, Grouped, Subtracting, by_time
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.pictures import Inked
from benchmarks.detection.programs.fifth.pictures_nets import VariationalInk
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.sixth.nets import convs
from benchmarks.detection.programs.sixth.pictures import flat
from benchmarks.detection.programs.sixth.tuning import taught
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def wafers_sorted(seed: int) -> Recipe:
    recipe = Recipe(
        Dense(1, 6), *data.wafers(841, 4400), batch=48, steps=140,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def flags_parted(seed: int) -> Recipe:
    recipe = Recipe(
        Grouped(3, 6), *data.flags(842), nn.CrossEntropyLoss(label_smoothing=0.05), batch=48, steps=160,
        optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip
    ways.warm_cosine(15)(recipe)
    return recipe


def calls_heard(seed: int) -> Recipe:
    recipe = Recipe(
        by_time(6), *data.calls(843, 3200), batch=50, steps=220, optimizer=lambda p: torch.optim.Adam(p, 7e-3)
    )
    ways.cosine(recipe)
    return recipe


def arrows_turned(seed: int) -> Recipe:
    recipe = Recipe(
        convs((1, 12, 24), 2, nn.Hardswish, lambda width: nn.GroupNorm(4, width), hidden=48),
        *data.arrows(844), nn.SmoothL1Loss(), fit_of, batch=48, steps=160, clip=2.0,
        optimizer=lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def calls_cleaned(seed: int) -> Recipe:
    recipe = Recipe(
        Subtracting(), *data.calls_cleaned(845), nn.MSELoss(), fit_of, batch=40, steps=200,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def arrows_varied(seed: int) -> Recipe:
    recipe = Recipe(
        VariationalInk(6, 128), *flat(data.arrows_alone(846)), Inked(0.002), Inked.score, batch=50, steps=240,
        clip=5.0, optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip
    ways.warm_cosine(15)(recipe)
    return recipe


def wafers_elsewhere(seed: int) -> Recipe:
    """Another line, where less fails: the first looks stay as they are, the rest is tuned with a new head."""
    model = taught(wafers_sorted)
    model.first.requires_grad_(False)
    model.head = nn.Linear(270, 6)
    recipe = Recipe(
        model, *data.wafers(847, 2200, 0.5), batch=40, steps=130,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.05),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def calls_elsewhere(seed: int) -> Recipe:
    """Other birds in more wind: all is tuned, the convolutions at a fifth of the rate."""
    model = taught(calls_heard)
    model[11] = nn.Linear(48, 5)

    def in_groups(_: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD([
            {"params": model[:8].parameters(), "lr": 0.01}, {"params": model[8:].parameters(), "lr": 0.05},
        ], momentum=0.9, weight_decay=1e-3)  # fmt: skip

    recipe = Recipe(model, *data.calls(848, 2200, 0.45, 5), batch=40, steps=140, optimizer=in_groups)
    ways.warm_cosine(10)(recipe)
    return recipe


TASKS = (
    Task("wafers_sorted", "convolution", wafers_sorted, {"batches": ways.batches_of(64)},
         (sagemaker.classes_confused(1, 2), silent.empty_buffer("last.0.1"))),
    Task("flags_parted", "convolution", flags_parted, {"adamw": v.adamw(4e-3, 0.05)},
         (fourth.ended_early(20), silent.never_eval())),
    Task("calls_heard", "convolution", calls_heard, {"bf16": v.bf16},
         (fifth.divided_twice(), silent.workers_alike(4))),
    Task("arrows_turned", "convolution", arrows_turned, {"adamw": v.adamw(4e-3, 0.02)},
         (setup.symmetric(), fourth.half_overflow("4", 60))),
    Task("calls_cleaned", "autoencoder", calls_cleaned, {"nadam": w.by("NAdam", 3e-3)},
         (fourth.mostly_dead("body.2", 0.9, 80), third.epsilon_large(3e-3, 10.0))),
    Task("arrows_varied", "autoencoder", arrows_varied, {"batches": ways.batches_of(40)},
         (third.heavy_divergence(30.0), silent.never_stepped())),
    Task("wafers_elsewhere", "fine-tuning", wafers_elsewhere, {"smoothed": v.smoothed},
         (fourth.rate_of_another(1.0), silent.stale_optimizer("head"))),
    Task("calls_elsewhere", "fine-tuning", calls_elsewhere, {"clipped": ways.clipped(2.0)},
         (eighth.averaged_twice(), second.set_back(90))),
)  # fmt: skip
