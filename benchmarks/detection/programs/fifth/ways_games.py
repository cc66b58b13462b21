"""Games of a maker and a critic, and learning by trying, in the fifth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import sagemaker, silent
from benchmarks.detection.loop import steps_of, watched
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth import ways_data as data
from benchmarks.detection.programs.fifth.tables_nets import normed
from benchmarks.detection.programs.fifth.ways_tried import flights_tried, stock_ordered
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of, likeness

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]


class NonSaturating(nn.Module):
    """Cross-entropy of what is real; for the maker with the labels exchanged."""

    def forward(self, told: torch.Tensor, real: float) -> torch.Tensor:
        wanted = torch.full_like(told, real)
        return nn.functional.binary_cross_entropy_with_logits(told, wanted)


class LeastSquares(nn.Module):
    """How far the critic's answer is from 1 for what is real and 0 for what is made, squared."""

    def forward(self, told: torch.Tensor, real: float) -> torch.Tensor:
        return 0.5 * ((told - real) ** 2).mean()


def _play(recipe: Recipe, path: Path | None, seed: int) -> float:
    """In turns: the critic on real and made rows, then the maker against it."""
    source = torch.Generator().manual_seed(seed)
    real, noise = recipe.train[0], recipe.options["noise"]
    maker, critic = recipe.model["maker"], recipe.model["critic"]
    slow = recipe.optimizer(list(maker.parameters()))
    fast = recipe.optimizer(list(critic.parameters()))
    for group in slow.param_groups:
        group["lr"] *= recipe.options.get("maker_rate", 1.0)
    both = {"maker": slow, "critic": fast}
    with watched({"maker": maker, "critic": critic}, both, recipe.criterion, path, recipe.save_every):
        for _ in steps_of(recipe):
            rows = real[torch.randint(len(real), (recipe.batch,), generator=source)]
            made = maker(torch.randn(recipe.batch, noise, generator=source))
            if recipe.zero_grad:
                fast.zero_grad()
            seen = recipe.criterion(critic(rows), recipe.options.get("real", 1.0))
            (seen + recipe.criterion(critic(made.detach()), 0.0)).backward()
            fast.step()
            if recipe.zero_grad:
                slow.zero_grad()
            if recipe.options.get("detached"):
                made = made.detach()
            recipe.criterion(critic(made), 1.0).backward()
            slow.step()
    maker.eval()
    with torch.no_grad():
        made = maker(torch.randn(600, noise, generator=source))
    return likeness(made, real[:600])


def waves_forged(seed: int) -> Recipe:
    maker = normed(8, 16, (64, 64), nn.ReLU)
    critic = nn.Sequential(
        nn.Linear(16, 64), nn.LeakyReLU(0.2), nn.Dropout(0.1), nn.Linear(64, 32), nn.LeakyReLU(0.2),
        nn.Linear(32, 1),
    )  # fmt: skip
    rows = data.waves_damped()
    return Recipe(
        nn.ModuleDict({"maker": maker, "critic": critic}), (rows, rows), NOTHING, NonSaturating(), fit_of,
        batch=64, steps=280, by_hand=_play, options={"noise": 8},
        optimizer=lambda p: torch.optim.Adam(p, 1e-3, betas=(0.5, 0.999)),
    )  # fmt: skip


def incomes_forged(seed: int) -> Recipe:
    maker = normed(6, 6, (48, 48), nn.ReLU)
    critic = nn.Sequential(
        nn.Linear(6, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1)
    )
    rows = data.incomes()
    return Recipe(
        nn.ModuleDict({"maker": maker, "critic": critic}), (rows, rows), NOTHING, LeastSquares(), fit_of,
        batch=80, steps=260, by_hand=_play, options={"noise": 6},
        optimizer=lambda p: torch.optim.Adam(p, 2e-3, betas=(0.5, 0.99)),
    )  # fmt: skip


def one_sided(recipe: Recipe) -> None:
    """What is real is told to the critic as 0.9 (label smoothing)."""
    recipe.options["real"] = 0.9


def two_rates(recipe: Recipe) -> None:
    """The maker learns at half of the critic's rate."""
    recipe.options["maker_rate"] = 0.5


TASKS = (
    Task("waves_forged", "adversarial", waves_forged, {"one_sided": one_sided},
         (fifth.maker_detached(), sagemaker.dead_units("maker.4", 100))),
    Task("incomes_forged", "adversarial", incomes_forged, {"two_rates": two_rates},
         (silent.no_zero_grad(), sagemaker.not_a_number("maker.3", 80))),
    Task("stock_ordered", "reinforcement", stock_ordered, {"rmsprop": w.by("RMSprop", 1.5e-3)},
         (silent.no_zero_grad(), sagemaker.dead_units("body.2", 120), silent.left_out("worth"))),
    Task("flights_tried", "reinforcement", flights_tried, {"rmsprop": w.by("RMSprop", 1.5e-3)},
         (sagemaker.rate_tiny(1e-4), silent.initialised_again("actor.4", 140), silent.left_out("actor.2"))),
)  # fmt: skip
