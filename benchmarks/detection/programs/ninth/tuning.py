"""Fine-tuning in the ninth set: nets that learnt from other machines and rows, with parts that stay."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import eighth_sequences as eighth
from benchmarks.detection.faults import fourth, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.ninth import tables_data as data
from benchmarks.detection.programs.ninth.tables import engines_diagnosed, parcels_sorted
from benchmarks.detection.programs.ninth.tables_nets import LowRank, in_time
from benchmarks.detection.programs.sixth.tables_data import moved
from benchmarks.detection.programs.sixth.tuning import taught
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def tremors_known(seed: int) -> Recipe:
    """What the curves' nets learnt before: all eight machines in little noise."""
    recipe = Recipe(
        in_time(8), *data.curves(941, 3000, 8, 0.15), batch=60, steps=140,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def tremors_nearby(seed: int) -> Recipe:
    """A worse sensor at five machines: the first convolution stays, the others are tuned with a new head."""
    model = taught(tremors_known)
    model[:4].requires_grad_(False)
    model[-1] = nn.Linear(32, 5)
    recipe = Recipe(
        model, *data.curves(942, 2000, 5, 0.35), batch=40, steps=130,
        optimizer=lambda p: torch.optim.NAdam(p, 1.5e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def tremors_remote(seed: int) -> Recipe:
    """Six machines, more noise: all is tuned, what is nearer to the curves at a lower rate."""
    model = taught(tremors_known)
    model[-3], model[-1] = nn.Linear(64, 32), nn.Linear(32, 6)

    def in_groups(_: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW([
            {"params": model[:8].parameters(), "lr": 3e-4}, {"params": model[8:12].parameters(), "lr": 1e-3},
            {"params": model[12:].parameters(), "lr": 3e-3},
        ], weight_decay=0.05)  # fmt: skip

    recipe = Recipe(model, *data.curves(943, 2200, 6, 0.4), batch=44, steps=140, optimizer=in_groups)
    ways.warm_cosine(10)(recipe)
    return recipe


def engines_elsewhere(seed: int) -> Recipe:
    """Other sensors on the same engines: the layers stay, narrow products beside them are learnt."""
    model = taught(engines_diagnosed)
    model[0], model[4], model[8] = LowRank(model[0], 8), LowRank(model[4], 8), nn.Linear(96, 5)
    recipe = Recipe(
        model, *moved(data.classes(906, 6000, 18, 5), 2400), batch=60, steps=160,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.01),
    )  # fmt: skip
    ways.warm_cosine(10)(recipe)
    return recipe


def parcels_elsewhere(seed: int) -> Recipe:
    """Another depot: the stem and the first block stay, the other blocks and a new head are tuned."""
    model = taught(parcels_sorted)
    for part in (model.stem, model.norms[0], model.gates[0], model.ups[0], model.downs[0]):
        part.requires_grad_(False)
    model.head = nn.Linear(64, 6)
    recipe = Recipe(
        model, *moved(data.classes(901, 8000, 13, 6, 4), 2800), batch=60, steps=150,
        optimizer=lambda p: torch.optim.SGD(p, 0.03, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


TASKS = (
    Task("tremors_nearby", "fine-tuning", tremors_nearby, {"smoothed": v.smoothed},
         (setup.constant_output("17"), eighth.part_in_eval("5"))),
    Task("tremors_remote", "fine-tuning", tremors_remote, {"batches": ways.batches_of(64)},
         (setup.oscillating(100.0), silent.stale_optimizer("17"))),
    Task("engines_elsewhere", "fine-tuning", engines_elsewhere, {"nadam": w.by("NAdam", 3e-3)},
         (fourth.both_zero("0.down", "0.up", "4.down", "4.up"), silent.other_model())),
    Task("parcels_elsewhere", "fine-tuning", parcels_elsewhere, {"adam": w.by("Adam", 6e-3)},
         (setup.missing_softmax(), silent.initialised_again("gates.1", 90))),
)  # fmt: skip
