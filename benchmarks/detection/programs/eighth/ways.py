"""Mixed precision, gradients of several batches, optimizers and questions, in the eighth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import eighth_sequences as own
from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, sagemaker, setup, silent, third
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.faults import sixth_tables as tables
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import digits, split
from benchmarks.detection.programs.eighth import sequences_data as data
from benchmarks.detection.programs.eighth.attention_nets import Fading
from benchmarks.detection.programs.eighth.pairs_data import patients
from benchmarks.detection.programs.eighth.sequences_nets import Dilated, Normed
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Yes
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.ways_precision import Halved
from benchmarks.detection.programs.sixth.ways_tasks import _by_two
from benchmarks.detection.recipe import Recipe, accuracy, balanced_accuracy, fit_of

__all__ = ["TASKS"]


def stages_quickly(seed: int) -> Recipe:
    recipe = Recipe(
        Dilated(4, 4, 24, (1, 2, 4, 8)), *data.stages(4, 4, 48, 841, noise=1.0), batch=24, steps=160,
        autocast=True, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def fields_halved(seed: int) -> Recipe:
    body = nn.Sequential(
        nn.Conv2d(2, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
    )  # fmt: skip
    recipe = Recipe(
        Halved(body, 96, 5), *data.fields(5, 2, 842, noise=0.3), batch=64, steps=130, clip=1.0,
        scaler={"init_scale": 2.0**13, "growth_interval": 100},
        optimizer=lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def sugar_gathered(seed: int) -> Recipe:
    return Recipe(
        Normed("GRU", 3, 3, 28, tells="last"), *data.sugar(16, 3, 843), nn.MSELoss(), fit_of, batch=16,
        steps=150, accumulate=4, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 4e-3),
        schedule=lambda step: 0.985**step,
    )  # fmt: skip


def speakers_gathered(seed: int) -> Recipe:
    x, _, who = data.spoken(6, 80, 20, 844, 2400, 4, (0.4, 0.1, 0.4, 0.1))
    recipe = Recipe(
        Fading(nn.Embedding(82, 32, padding_idx=0), 4, depth=1, drop=0.1), *split(x, who, seed=844),
        nn.CrossEntropyLoss(torch.tensor([0.4, 1.6, 0.4, 1.6])), balanced_accuracy, batch=24, steps=140,
        accumulate=3, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(12)(recipe)
    return recipe


def sessions_split(seed: int) -> Recipe:
    """Vectors of pages by Adagrad, all else by AdamW."""
    return Recipe(
        Normed("LSTM", 16, 1, 24, words=51, drop=0.1), *data.sessions(50, 16, 845), nn.BCEWithLogitsLoss(),
        Yes.ranked, batch=64, steps=180, by_hand=_by_two,
        options={"layer": "embed", "own": lambda p: torch.optim.Adagrad(p, 0.05)},
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip


def patients_split(seed: int) -> Recipe:
    """The first layer by SGD with momentum, all else by AdamW."""
    return Recipe(
        stack((20, 64, 48, 6), nn.ReLU), *patients(20, 6, 846, 3600), batch=64, steps=200, by_hand=_by_two,
        options={"layer": "0", "own": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True)},
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip


class Machines(nn.Module):
    """A GRU over the sensors, and beside each other the machine (5) and its pitch (1): (N, 6)."""

    def __init__(self, width: int = 28) -> None:
        super().__init__()
        self.rnn, self.mix = nn.GRU(2, width, batch_first=True), nn.Linear(2 * width, 32)
        self.relu, self.named, self.pitch = nn.ReLU(), nn.Linear(32, 5), nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.rnn(x)[0]
        h = self.relu(self.mix(torch.cat([h.amax(1), h.mean(1)], 1)))
        return torch.cat([self.named(h), self.pitch(h)], 1)


class Both(nn.Module):
    """Cross-entropy of the class (the first target) and square error of the number behind it."""

    def forward(self, told: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        named = nn.functional.cross_entropy(told[:, :-1], right[:, 0].long())
        return named + 0.5 * (told[:, -1] - right[:, 1]).square().mean()

    @staticmethod
    def score(told: torch.Tensor, right: torch.Tensor) -> float:
        """Mean of the share told rightly and of the variance that is explained."""
        return (accuracy(told[:, :-1], right[:, 0]) + fit_of(told[:, -1], right[:, 1])) / 2


def hums_twice(seed: int) -> Recipe:
    x, kind, pitch = data.hums(5, 2, 36, 847)
    recipe = Recipe(
        Machines(), *split(x, torch.cat([kind[:, None], pitch], 1), seed=847), Both(), Both.score, batch=48,
        steps=200, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 5e-3),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def digits_twice(seed: int) -> Recipe:
    """A digit, and how much ink was used (standardised), of pictures that are blurred by noise."""
    parts = []
    for x, y in digits():
        ink, random = x.mean(1), torch.Generator().manual_seed(848)
        ink = (ink + 0.31) / 0.15
        parts.append((x + 0.4 * torch.randn(x.shape, generator=random), torch.stack([y, ink], 1)))
    recipe = Recipe(
        stack((64, 96, 64, 11), nn.GELU, nn.LayerNorm), *parts, Both(), Both.score, batch=64, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("stages_quickly", "mixed precision", stages_quickly, {"larger_batches": w.batches_of(32)},
         (setup.decay_kills(), own.part_in_eval("steps.1"))),
    Task("fields_halved", "mixed precision", fields_halved, {"nadam": w.by("NAdam", 8e-3)},
         (third.clipped_before_unscaling(), silent.scaler_stuck())),
    Task("sugar_gathered", "accumulation", sugar_gathered, {"larger_batches": w.batches_of(24)},
         (sixth.gates_closed(), third.discarded_batches())),
    Task("speakers_gathered", "accumulation", speakers_gathered, {"nadam": w.by("NAdam", 2e-3)},
         (tables.weights_upside_down(), sagemaker.classes_confused(0, 2))),
    Task("sessions_split", "several optimizers", sessions_split, {"larger_batches": w.batches_of(96)},
         (sixth.never_stepped_one("embed", "rest"), sagemaker.dead_units("mix", 80))),
    Task("patients_split", "several optimizers", patients_split, {"nadam": w.by("NAdam", 2e-3)},
         (tables.log_of_nothing(3), silent.stuck_loader(80))),
    Task("hums_twice", "multi-task", hums_twice, {"clipped": w.clipped(0.5)},
         (fourth.forgotten("pitch", slice(5, 6)), fifth.zero_start("mix"))),
    Task("digits_twice", "multi-task", digits_twice, {"larger_batches": w.batches_of(96)},
         (setup.oscillating(100.0), fourth.plateau_reversed())),
)  # fmt: skip
