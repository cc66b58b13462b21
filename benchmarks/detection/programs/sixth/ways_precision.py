"""Mixed precision and gradients of several batches, in the sixth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fourth, held, sagemaker, setup, silent, third
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.sixth import sequences_data as series
from benchmarks.detection.programs.sixth import ways_data as data
from benchmarks.detection.programs.sixth.attention_nets import Attentive, Begun, Windows
from benchmarks.detection.programs.sixth.pairs_nets import curves
from benchmarks.detection.programs.sixth.sequences_nets import Recurrent
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


class Halved(nn.Module):
    """A body in half precision, and its answer in full."""

    def __init__(self, body: nn.Module, width: int, outputs: int) -> None:
        super().__init__()
        self.body, self.mix, self.act = body, nn.Linear(width, 32), nn.ReLU()
        self.head = nn.Linear(32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.float16):
            return self.head(self.act(self.mix(self.body(x)))).float()


def echoes_told(seed: int) -> Recipe:
    recipe = Recipe(
        curves(1, 64, 5), *data.echoes(), batch=48, steps=160, autocast=True,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def accents_told(seed: int) -> Recipe:
    recipe = Recipe(
        Begun(32, 4, 24, act="relu"), *series.chains_told(5, 30, 24, 651, 4), batch=48, steps=160,
        autocast=True, optimizer=lambda p: torch.optim.Adam(p, 2e-3, betas=(0.9, 0.98)),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def strains_weighed(seed: int) -> Recipe:
    body = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    return Recipe(
        Halved(body, 64, 2), *data.strains(), nn.MSELoss(), fit_of, batch=48, steps=220,
        scaler={"init_scale": 2.0**14, "growth_interval": 80}, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
        schedule=lambda step: 0.988**step,
    )  # fmt: skip


def grains_sorted(seed: int) -> Recipe:
    body = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 24, 3, 2, 1), nn.ReLU(),
        nn.AvgPool2d(2), nn.Flatten(),
    )  # fmt: skip
    recipe = Recipe(
        Halved(body, 216, 4), *data.grains(), batch=32, steps=200, clip=2.0,
        scaler={"init_scale": 2.0**12, "growth_interval": 100},
        optimizer=lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=5e-4),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def pumps_gathered(seed: int) -> Recipe:
    return Recipe(
        Recurrent("LSTM", 3, 4, 28, drop=0.2), *series.systems(4, 3, 24, 652), batch=16, steps=150,
        accumulate=4, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 6e-3),
        schedule=lambda step: 0.985**step,
    )  # fmt: skip


def lakes_gathered(seed: int) -> Recipe:
    recipe = Recipe(
        Attentive(nn.Sequential(Windows(4), nn.Linear(12, 32)), 4, 8, heads=2, drop=0.05),
        *series.seasons(32, 4, (14.0, 40.0), 653), nn.MSELoss(), fit_of, batch=24, steps=140, accumulate=3,
        optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


TASKS = (
    Task("echoes_told", "mixed precision", echoes_told, {"sgd": w.by("SGD", 0.02, momentum=0.9)},
         (setup.missing_softmax(), silent.never_eval())),
    Task("accents_told", "mixed precision", accents_told, {"clipped": w.clipped(1.0)},
         (held.softmax_over_batch("head"), silent.initialised_again("head", 110))),
    Task("strains_weighed", "mixed precision", strains_weighed, {"larger_batches": w.batches_of(80)},
         (silent.scaler_stuck(), third.clipped_before_unscaling())),
    Task("grains_sorted", "mixed precision", grains_sorted, {"adam": w.by("Adam", 2e-3)},
         (fourth.half_overflow("mix", 80), sagemaker.deep_sigmoid(6))),
    Task("pumps_gathered", "accumulation", pumps_gathered, {"larger_batches": w.batches_of(24)},
         (third.discarded_batches(), sagemaker.overfit(48, 200, 0.2))),
    Task("lakes_gathered", "accumulation", lakes_gathered, {"nadam": w.by("NAdam", 6e-3)},
         (fourth.plateau_reversed(8), sixth.kept_in_half(1e-3))),
)  # fmt: skip
