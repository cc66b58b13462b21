"""Fine-tuning in the eleventh set: nets that learnt at another mill and from other hands."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import eighth_sequences as eighth
from benchmarks.detection.faults import eleventh_tables as eleventh
from benchmarks.detection.faults import fourth, setup
from benchmarks.detection.program import Task
from benchmarks.detection.programs.eleventh import tables_data as data
from benchmarks.detection.programs.eleventh.tables import gestures_posed, plates_inspected
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.sixth.tables_data import moved
from benchmarks.detection.programs.sixth.tuning import taught
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def plates_of_another_mill(seed: int) -> Recipe:
    """The norms are tuned with a new head, and the dense layers stay."""
    model = taught(plates_inspected)
    model.requires_grad_(False)
    model[8] = nn.Linear(112, 6)
    for one in (model[1], model[5]):
        one.requires_grad_(True)
    recipe = Recipe(
        model, *moved(data.kinds(1103, 7600, (17,), 6), 3000), batch=75, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 1e-2),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def gestures_of_others(seed: int) -> Recipe:
    """The first layer stays, the two after it are tuned, and the head is new."""
    model = taught(gestures_posed)
    model[0].requires_grad_(False)
    model[6] = nn.Linear(64, 7)
    recipe = Recipe(
        model, *moved(data.kinds(1108, 8000, (20,), 7), 3200), batch=80, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip
    ways.warm_cosine(10)(recipe)
    return recipe


TASKS = (
    Task("plates_of_another_mill", "fine-tuning", plates_of_another_mill, {"batches": ways.batches_of(100)},
         (setup.collapsed("6"), eighth.part_in_eval("5"))),
    Task("gestures_of_others", "fine-tuning", gestures_of_others,
         {"momentum": w.by("SGD", 0.08, momentum=0.9)},
         (fourth.raised(100.0, 90), eleventh.head_frozen("6"))),
)  # fmt: skip
