"""Tables, tiny and unbalanced data, wrong labels: dense networks of the second held-out set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import held, sagemaker, second, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.networks import mlp
from benchmarks.detection.programs.second import data
from benchmarks.detection.programs.second.networks import Refined, dropping
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TASKS", "balanced", "one_cycle", "right"]


def one_cycle(steps: int, low: float = 0.04) -> Callable[[int], float]:
    """Up for a third of the steps, and down to nearly nothing."""

    def factor(step: int) -> float:
        if step < steps / 3:
            return low + (1 - low) * step / (steps / 3)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - steps / 3) / (steps * 2 / 3)))) + 1e-3

    return factor


def right(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """Share of yes and no told rightly, by logits."""
    return float(((told > 0) == (wanted > 0.5)).float().mean())


def balanced(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """Mean of what is told rightly of the yes and of the no."""
    logits = torch.cat([-told, told], 1)
    return balanced_accuracy(logits, (wanted[:, 0] > 0.5).long())


class Pinball(nn.Module):
    """The loss of a quantile."""

    def __init__(self, share: float = 0.7) -> None:
        super().__init__()
        self.share = share

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        left = wanted - told
        return torch.maximum(self.share * left, (self.share - 1) * left).mean()


class Focal(nn.Module):
    """Cross-entropy of yes and no that hardly minds what is told well already."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        plain = nn.functional.binary_cross_entropy_with_logits(told, wanted, reduction="none")
        return (plain * (1 - torch.exp(-plain)) ** 2 * (0.25 + 0.5 * wanted)).mean()


def shells_prelu(seed: int) -> Recipe:
    return Recipe(
        mlp(8, 36, 3, 2, nn.PReLU), *data.quantiles(), steps=180, schedule=one_cycle(180),
        optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.95),
    )  # fmt: skip


def hastie_dropping(seed: int) -> Recipe:
    return Recipe(
        dropping(10, 64, 1, 0.5), *data.hastie(), nn.BCEWithLogitsLoss(), right, batch=64, steps=160,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.02),
    )  # fmt: skip


def circuit_wide(seed: int) -> Recipe:
    return Recipe(
        mlp(4, 128, 1, 1), *data.friedman2(), nn.MSELoss(), fit_of, batch=50, steps=160,
        optimizer=lambda p: torch.optim.SGD(p, 0.03, momentum=0.9, nesterov=True),
    )  # fmt: skip


def curve_softplus(seed: int) -> Recipe:
    return Recipe(
        mlp(3, 32, 1, 2, nn.Softplus), *data.curve(), nn.L1Loss(), fit_of, batch=24, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 5e-3, amsgrad=True),
    )  # fmt: skip


def prices_radam(seed: int) -> Recipe:
    return Recipe(
        mlp(10, 40, 1, 2), *data.prices(), nn.HuberLoss(delta=0.5), fit_of, batch=40, steps=180, clip=2.0,
        optimizer=lambda p: torch.optim.RAdam(p, 6e-3),
    )  # fmt: skip


def flipped_wide(seed: int) -> Recipe:
    """A fifth of the labels is wrong: the loss stays high, and swings."""
    model = nn.Sequential(nn.Linear(16, 96), nn.ReLU(), nn.Dropout(0.4), nn.Linear(96, 4))
    return Recipe(
        model, *data.flipped(), batch=20, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.3),
    )  # fmt: skip


def poisson_counts(seed: int) -> Recipe:
    return Recipe(
        mlp(6, 32, 1, 2, nn.Tanh), *data.counts(), nn.PoissonNLLLoss(),
        lambda told, wanted: fit_of(told.clamp(max=6).exp(), wanted), steps=170,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip


def few_whole(seed: int) -> Recipe:
    """All rows are one batch."""
    return Recipe(
        mlp(5, 12, 4, 1, nn.Tanh), *data.few(), batch=90, steps=150, eval_every=30,
        optimizer=lambda p: torch.optim.SGD(p, 0.3, momentum=0.8),
    )  # fmt: skip


def rare_weighted(seed: int) -> Recipe:
    return Recipe(
        mlp(9, 32, 1, 2), *data.rare(), nn.BCEWithLogitsLoss(pos_weight=torch.tensor([10.0])), balanced,
        batch=64, steps=180, optimizer=lambda p: torch.optim.NAdam(p, 4e-3),
    )  # fmt: skip


def shells_refined(seed: int) -> Recipe:
    return Recipe(
        Refined(8, 28, 3), *data.quantiles(), batch=48, steps=150,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, betas=(0.9, 0.95), weight_decay=0.1),
    )  # fmt: skip


def quantile(recipe: Recipe) -> None:
    recipe.criterion = Pinball()


def focal(recipe: Recipe) -> None:
    recipe.criterion = Focal()


def small_batches(recipe: Recipe) -> None:
    """Batches of four: the loss jumps."""
    recipe.batch, recipe.steps, recipe.rate = 4, 240, 0.004


def settled(recipe: Recipe) -> None:
    """Long after nothing is left to learn."""
    recipe.steps, recipe.save_every, recipe.eval_every = 480, 6, 60
    recipe.schedule = lambda step: 0.1 ** (step // 160)


TASKS = (
    Task("shells_prelu", "dense", shells_prelu, {"accumulating": v.accumulating},
         (silent.left_out("2"), second.zeroed_before_step(), sagemaker.dead_units("2", 50))),
    Task("hastie_dropping", "dense", hastie_dropping, {"bf16": v.bf16},
         (second.redundant_sigmoid("8"), silent.left_in_eval(), setup.shuffled_labels())),
    Task("circuit_wide", "regression", circuit_wide, {"small_batches": small_batches, "cosine": v.cosine},
         (second.spread_targets(), sagemaker.rate_tiny(), second.one_large_column())),
    Task("curve_softplus", "regression", curve_softplus, {"settled": settled},
         (silent.detached("2"), setup.decay_kills(3.0))),
    Task("prices_radam", "regression", prices_radam, {"quantile": quantile, "scaled": v.scaled},
         (sagemaker.not_a_number("2", 70), silent.other_model(), silent.scaler_stuck())),
    Task("flipped_wide", "dense", flipped_wide, {"smoothed": v.smoothed},
         (silent.stuck_loader(50), second.probabilities_for_logs("3"))),
    Task("poisson_counts", "regression", poisson_counts, {"warm_up": v.warm_up},
         (setup.oscillating(300.0), silent.skipped(60))),
    Task("few_whole", "tiny", few_whole, {},
         (sagemaker.rate_tiny(), silent.initialised_again("0", 80))),
    Task("rare_weighted", "tiny", rare_weighted, {"focal": focal},
         (sagemaker.raw_pixels(60.0, 40.0), silent.never_stepped())),
    Task("shells_refined", "dense", shells_refined, {"clipped": v.clipped},
         (held.momentum_wild(), sagemaker.dead_units("blocks.1.1", 60))),
)  # fmt: skip
