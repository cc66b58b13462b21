"""Games of a maker and a critic, and learning what to do and what it is worth, in the eleventh set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fourth, sagemaker, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import bunch, digits
from benchmarks.detection.programs.eleventh import pairs_data as data
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.seventh.ways_games import Squares, _copied
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.ways_games import Labelled, _forged
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of

__all__ = ["TASKS"]


def _game(rows: torch.Tensor, loss: nn.Module, maker: nn.Module, critic: nn.Module, **how) -> Recipe:
    model = nn.ModuleDict({"maker": maker, "critic": critic})
    return Recipe(model, (rows, rows), NOTHING, loss, fit_of, by_hand=_forged, **how)


def digits_painted(seed: int) -> Recipe:
    """Digits of 8 x 8 by convolutions on both sides (Radford et al., 2016, small)."""
    maker = nn.Sequential(
        nn.Linear(8, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Unflatten(1, (32, 2, 2)),
        nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Flatten(),
    )  # fmt: skip
    critic = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(128, 1),
    )  # fmt: skip
    return _game(
        digits()[0][0], Labelled(), maker, critic, batch=64, steps=260, options={"kinds": 0, "smooth": 1.0},
        optimizer=lambda p: torch.optim.Adam(p, 4e-3, betas=(0.5, 0.99)),
    )  # fmt: skip


def tumours_forged(seed: int) -> Recipe:
    """The first ten measures of tumours, by least squares."""
    return _game(
        bunch("breast_cancer")[0][0][:, :10].contiguous(), Squares(),
        stack((8, 64, 64, 10), nn.LeakyReLU, nn.BatchNorm1d), stack((10, 64, 64, 1), nn.LeakyReLU),
        batch=72, steps=300, options={"kinds": 0, "smooth": 0.3},
        optimizer=lambda p: torch.optim.Adam(p, 1e-3, betas=(0.5, 0.99)),
    )  # fmt: skip


class Likelier(nn.Module):
    """What earned more than the usual becomes likelier, under a bell of a middle and a spread (REINFORCE)."""

    def forward(self, told: torch.Tensor, tried: torch.Tensor) -> torch.Tensor:
        middle, spread = told.chunk(2, 1)
        spread, gain = spread.clamp(-2.5, 0.5), tried[:, 2]
        likely = (-0.5 * ((tried[:, :2] - middle) * (-spread).exp()).square() - spread).sum(1)
        gain = (gain - gain.mean()) / (gain.std() + 1e-3)
        return -(gain * likely).mean() - 0.02 * spread.mean()


def _given(recipe: Recipe, _step: int, x: torch.Tensor, best: torch.Tensor):
    """Doses drawn by the policy as it is, and how much they helped."""
    acting, source = recipe.options["other"], recipe.options["source"]
    acting.load_state_dict(recipe.model.state_dict())
    with torch.no_grad():
        middle, spread = acting(x).chunk(2, 1)
        given = middle + torch.randn(middle.shape, generator=source) * spread.clamp(-2.5, 0.5).exp()
        helped = data.earned(given, best) + 0.1 * torch.randn(len(x), generator=source)
    return x, torch.cat([given, helped[:, None]], 1)


def doses_given(seed: int) -> Recipe:
    train, (x, best) = data.doses(1141)
    recipe = Recipe(
        stack((8, 48, 48, 4), nn.Tanh), train, (x, nn.functional.pad(best, (0, 1))), Likelier(),
        lambda told, best: float(data.earned(told[:, :2], best[:, :2]).mean()), batch=256, steps=280,
        clip=1.0, on_batch=[_given], after_optimizer=[_copied], eval_every=1000,
        options={"source": torch.Generator().manual_seed(seed)},
        optimizer=lambda p: torch.optim.Adam(p, 8e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def _ahead(recipe: Recipe, _step: int, x: torch.Tensor, worth: torch.Tensor):
    """What an hour was worth, and what follows by a slower net (temporal differences)."""
    slow, (now, then) = recipe.options["other"], x.chunk(2, 1)
    with torch.no_grad():
        for one, new in zip(slow.parameters(), recipe.model.parameters(), strict=True):
            one.lerp_(new, 0.2)
        return now, worth + data.KEPT * slow(then)


def machines_valued(seed: int) -> Recipe:
    recipe = Recipe(
        stack((3, 64, 64, 1), nn.SiLU), *data.machines(1142), nn.SmoothL1Loss(), fit_of, batch=160,
        steps=280, on_batch=[_ahead], after_optimizer=[_copied], eval_every=1000,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("digits_painted", "adversarial", digits_painted, {"larger_batches": w.batches_of(80)},
         (sagemaker.output_zero("maker.4", 100), fourth.older_loaded(20, 150))),
    Task("tumours_forged", "adversarial", tumours_forged, {"larger_batches": w.batches_of(96)},
         (fourth.rate_of_another(0.3), silent.no_zero_grad())),
    Task("doses_given", "reinforcement", doses_given, {"nadam": w.by("NAdam", 6e-3)},
         (third.saturated_units("2", 90), silent.other_model())),
    Task("machines_valued", "reinforcement", machines_valued, {"larger_batches": w.batches_of(224)},
         (fourth.raised(200.0, 120), silent.detached("2"))),
)  # fmt: skip
