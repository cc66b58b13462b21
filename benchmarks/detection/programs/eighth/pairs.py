"""Recommenders, words, and learning to compare, of the eighth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_tables as tables
from benchmarks.detection.faults import fourth, held, sagemaker, second, silent
from benchmarks.detection.faults import seventh_tables as unlearnt
from benchmarks.detection.faults import sixth_tables as longer
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import digits
from benchmarks.detection.programs.eighth import pairs_data as data
from benchmarks.detection.programs.eighth import pairs_nets as nets
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Yes
from benchmarks.detection.programs.seventh.pairs_nets import Twins
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.pairs_nets import Factors, Gathering, Walked
from benchmarks.detection.recipe import Recipe, fit_of, mean_loss, neighbours

__all__ = ["TASKS"]


def clips_watched(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Liked(140), *data.clips(80, 60, 821), nn.BCEWithLogitsLoss(), Yes.ranked, batch=256, steps=240,
        optimizer=lambda p: torch.optim.AdamW(p, 1.5e-2, weight_decay=0.1),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def lessons_next(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Following(50), *data.lessons(50, 8, 822), score=mean_loss, batch=128, steps=220,
        optimizer=lambda p: torch.optim.Adam(p, 8e-3),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def terms_counted(seed: int) -> Recipe:
    return Recipe(
        Walked(80, 12), *data.together(80, 823), nn.MSELoss(), fit_of, batch=384, steps=280,
        optimizer=lambda p: torch.optim.Adagrad(p, 0.15), schedule=lambda step: 0.99**step,
    )  # fmt: skip


def fares_told(seed: int) -> Recipe:
    recipe = Recipe(
        Factors(78), *data.fares((25, 25, 20, 8), 824), nn.HuberLoss(), fit_of, batch=128, steps=220,
        optimizer=lambda p: torch.optim.NAdam(p, 8e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def digits_gathered(seed: int) -> Recipe:
    recipe = Recipe(
        stack((64, 96, 64, 24), nn.ReLU, nn.BatchNorm1d), *digits(), Gathering(0.15), neighbours, batch=64,
        steps=150, optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


def _measured(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
    """A patient twice, each time with other errors of the laboratory and other values left out."""
    return torch.cat([(x + 0.3 * torch.randn_like(x)) * (torch.rand_like(x) > 0.15) for _ in range(2)], 1), y


def patients_twinned(seed: int) -> Recipe:
    train, (x, y) = data.patients(24, 7, 826)
    recipe = Recipe(
        Twins(24, 72, 16), train, (torch.cat([x, x], 1), y), nets.Regularised(), neighbours, batch=128,
        steps=180, on_batch=[_measured], optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("clips_watched", "embedding", clips_watched, {"dropped": w.dropped(0.2)},
         (tables.times_hundred(), silent.other_model())),
    Task("lessons_next", "embedding", lessons_next, {"nadam": w.by("NAdam", 6e-3)},
         (sagemaker.rate_tiny(1e-4), longer.too_long(8))),
    Task("terms_counted", "embedding", terms_counted, {"smaller_batches": w.batches_of(256)},
         (second.spread_targets(), fourth.without_gradient("end"))),
    Task("fares_told", "embedding", fares_told, {"adamw": w.by("AdamW", 8e-3, weight_decay=0.05)},
         (unlearnt.uphill(), sagemaker.deep_sigmoid(6))),
    Task("digits_gathered", "representation", digits_gathered, {"adam": w.by("Adam", 3e-3)},
         (held.rolled_labels(), silent.empty_buffer("1"))),
    Task("patients_twinned", "representation", patients_twinned, {"larger_batches": w.batches_of(192)},
         (fourth.without("spread", spread=0.0, apart=0.0), silent.left_in_eval())),
)  # fmt: skip
