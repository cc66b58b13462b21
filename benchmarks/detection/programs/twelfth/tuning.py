"""Fine-tuning in the twelfth set: nets that learnt of other woods, dairies, gardens and trades."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fourth, held, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.ninth.tables_nets import LowRank
from benchmarks.detection.programs.sixth.tables_data import moved
from benchmarks.detection.programs.sixth.tuning import taught
from benchmarks.detection.programs.tenth.tables_nets import Rescaled
from benchmarks.detection.programs.twelfth import tables_data as data
from benchmarks.detection.programs.twelfth.tables import (
    cheeses_judged,
    passports_checked,
    salaries_guessed,
    teas_blended,
)
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def passports_abroad(seed: int) -> Recipe:
    """The first layer stays, the two after it are tuned, and the head is new."""
    model = taught(passports_checked)
    model[0].requires_grad_(False)
    model[9] = nn.Linear(64, 4)
    recipe = Recipe(
        model, *moved(data.kinds(1206, 7000, (21,), 4), 3400), batch=68, steps=180,
        optimizer=lambda p: torch.optim.NAdam(p, 1.5e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def cheeses_of_others(seed: int) -> Recipe:
    """The dense layers stay, what comes out of each is scaled anew, and norms and bends are tuned."""
    model = taught(cheeses_judged)
    model[0], model[4], model[8] = Rescaled(model[0]), Rescaled(model[4]), nn.Linear(100, 5)
    recipe = Recipe(
        model, *moved(data.grades(1203, 7200, (16,), 5), 3200), batch=80, steps=170,
        optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.02),
    )  # fmt: skip
    ways.warm_cosine(15)(recipe)
    return recipe


def teas_from_afar(seed: int) -> Recipe:
    """The dense layers stay, and narrow products beside them are learnt with the norms and a new head."""
    model = taught(teas_blended)
    model[0], model[3], model[6] = LowRank(model[0], 12), LowRank(model[3], 12), nn.Linear(120, 6)
    recipe = Recipe(
        model, *moved(data.kinds(1205, 7600, (18,), 6), 3800), batch=76, steps=190,
        optimizer=lambda p: torch.optim.Adam(p, 5e-3),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def salaries_elsewhere(seed: int) -> Recipe:
    """All is tuned, what is nearer to the columns at a lower rate."""
    model = taught(salaries_guessed)
    model[6] = nn.Linear(112, 1)

    def in_groups(_: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD([
            {"params": model[:3].parameters(), "lr": 0.03}, {"params": model[3:6].parameters(), "lr": 0.06},
            {"params": model[6:].parameters(), "lr": 0.06},
        ], momentum=0.9, weight_decay=1e-4)  # fmt: skip

    recipe = Recipe(
        model, *moved(data.amounts(1211, 7600, (16,)), 3800), nn.HuberLoss(delta=1.5), fit_of, batch=76,
        steps=180, optimizer=in_groups,
    )  # fmt: skip
    ways.stepped(recipe)
    return recipe


TASKS = (
    Task("passports_abroad", "fine-tuning", passports_abroad, {"adamw": w.by("AdamW", 2e-3)},
         (fourth.decay_too_strong(1.5e-3, 200.0), fourth.same_few(3))),
    Task("cheeses_of_others", "fine-tuning", cheeses_of_others, {"batches": ways.batches_of(120)},
         (setup.missing_softmax(), silent.left_in_eval())),
    Task("teas_from_afar", "fine-tuning", teas_from_afar, {"batches": ways.batches_of(100)},
         (fourth.both_zero("0.down", "0.up", "3.down", "3.up"), silent.stale_optimizer("6"))),
    Task("salaries_elsewhere", "fine-tuning", salaries_elsewhere, {"batches": ways.batches_of(100)},
         (held.clipped_away(), silent.skipped(60))),
)  # fmt: skip
