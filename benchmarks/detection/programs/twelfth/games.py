"""Games of a maker and a critic, and learning what to do and what it is worth, in the twelfth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fourth, ninth_tables, sagemaker, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.seventh.ways_games import Squares, _copied
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.ways_games import Labelled, _forged
from benchmarks.detection.programs.twelfth import pairs_data as data
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of

__all__ = ["TASKS"]


def _game(rows: torch.Tensor, loss: nn.Module, maker: nn.Module, critic: nn.Module, **how) -> Recipe:
    model = nn.ModuleDict({"maker": maker, "critic": critic})
    return Recipe(model, (rows, rows), NOTHING, loss, fit_of, by_hand=_forged, **how)


def perfumes_forged(seed: int) -> Recipe:
    return _game(
        data.perfumes(1241), Labelled(), stack((8, 80, 80, 8), nn.GELU, nn.BatchNorm1d),
        stack((8, 72, 72, 1), nn.SiLU), batch=88, steps=280, options={"kinds": 0, "smooth": 0.5},
        optimizer=lambda p: torch.optim.Adam(p, 1e-3, betas=(0.5, 0.99)),
    )  # fmt: skip


def shoes_forged(seed: int) -> Recipe:
    return _game(
        data.shoes(1242), Squares(), stack((8, 72, 72, 9), nn.ReLU, nn.BatchNorm1d),
        stack((9, 64, 64, 1), nn.LeakyReLU), batch=80, steps=280, options={"kinds": 0, "smooth": 0.2},
        optimizer=lambda p: torch.optim.AdamW(p, 1.2e-3, betas=(0.5, 0.99), weight_decay=0.01),
    )  # fmt: skip


class Chosen(nn.Module):
    """What brought more than the usual becomes likelier; a little for spread (REINFORCE)."""

    def forward(self, told: torch.Tensor, tried: torch.Tensor) -> torch.Tensor:
        likely, did, gain = told.log_softmax(1), tried[:, :1].long(), tried[:, 1]
        gain = (gain - gain.mean()) / (gain.std() + 1e-3)
        spread = -(likely.exp() * likely).sum(1).mean()
        return -(gain * likely.gather(1, did)[:, 0]).mean() - 0.02 * spread


def _exercised(recipe: Recipe, _step: int, x: torch.Tensor, brings: torch.Tensor):
    """Exercises drawn by the policy as it is, and what they brought."""
    acting, source = recipe.options["other"], recipe.options["source"]
    acting.load_state_dict(recipe.model.state_dict())
    with torch.no_grad():
        did = torch.multinomial(acting(x).softmax(1), 1, generator=source)
        brought = brings.gather(1, did)[:, 0] + 0.2 * torch.randn(len(x), generator=source)
    return x, torch.stack([did[:, 0].float(), brought], 1)


def _brought(told: torch.Tensor, brings: torch.Tensor) -> float:
    """What the likeliest exercises bring on average, by what the best ones would."""
    brings = brings[:, 2:]
    best = brings.gather(1, told.argmax(1, keepdim=True)).mean()
    return float(best / brings.amax(1).mean())


def exercises_advised(seed: int) -> Recipe:
    train, (x, brings) = data.suits(1243)
    recipe = Recipe(
        stack((6, 56, 56, 4), nn.Tanh), train, (x, nn.functional.pad(brings, (2, 0))), Chosen(), _brought,
        batch=224, steps=260,
        on_batch=[_exercised], after_optimizer=[_copied], eval_every=1000,
        options={"source": torch.Generator().manual_seed(seed)},
        optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def _after(recipe: Recipe, _step: int, x: torch.Tensor, worth: torch.Tensor):
    """What a trip earned, and what follows by a slower net (temporal differences)."""
    slow, (now, then) = recipe.options["other"], x.chunk(2, 1)
    with torch.no_grad():
        for one, new in zip(slow.parameters(), recipe.model.parameters(), strict=True):
            one.lerp_(new, 0.15)
        return now, worth + data.KEPT * slow(then)


def ferries_valued(seed: int) -> Recipe:
    recipe = Recipe(
        stack((3, 56, 56, 1), nn.ReLU), *data.ferries(1244), nn.HuberLoss(), fit_of, batch=144, steps=280,
        on_batch=[_after], after_optimizer=[_copied], eval_every=1000,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.01),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("perfumes_forged", "adversarial", perfumes_forged, {"larger_batches": w.batches_of(112)},
         (ninth_tables.betas_swapped(1e-3), silent.detached("maker.0"))),
    Task("shoes_forged", "adversarial", shoes_forged, {"larger_batches": w.batches_of(104)},
         (sagemaker.dead_units("maker.4", 120), silent.no_zero_grad())),
    Task("exercises_advised", "reinforcement", exercises_advised, {"nadam": w.by("NAdam", 5e-3)},
         (third.saturated_units("2", 60), silent.scaler_stuck())),
    Task("ferries_valued", "reinforcement", ferries_valued, {"larger_batches": w.batches_of(192)},
         (fourth.nan_gradient("2", 110), silent.other_model())),
)  # fmt: skip
