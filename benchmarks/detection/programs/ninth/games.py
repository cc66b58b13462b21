"""Games of a maker and a critic, and learning what to do, in the ninth set."""

from __future__ import annotations

import copy

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, sagemaker, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.ninth import games_data as data
from benchmarks.detection.programs.ninth import keras_data, pairs_data
from benchmarks.detection.programs.seventh.ways_games import _copied
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.ways_games import Labelled, Opposed, _forged
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of

__all__ = ["TASKS"]


def spectra_forged(seed: int) -> Recipe:
    rows = keras_data.spectra(931, 3000, 12, 4)[0][0]
    model = nn.ModuleDict({
        "maker": stack((8, 72, 72, 12), nn.SiLU, nn.LayerNorm), "critic": stack((12, 64, 64, 1), nn.Mish),
    })  # fmt: skip
    return Recipe(
        model, (rows, rows), NOTHING, Opposed(), fit_of, batch=96, steps=280, by_hand=_forged,
        options={"kinds": 0, "smooth": 0.5}, optimizer=lambda p: torch.optim.Adam(p, 1e-3, betas=(0.0, 0.99)),
    )  # fmt: skip


def signatures_forged(seed: int) -> Recipe:
    rows = pairs_data.signatures(300, 10, 932)[0][0][:, :10]
    model = nn.ModuleDict({
        "maker": stack((8, 64, 64, 10), nn.SiLU), "critic": stack((10, 72, 72, 1), nn.SiLU),
    })  # fmt: skip
    return Recipe(
        model, (rows, rows), NOTHING, Labelled(), fit_of, batch=80, steps=300, by_hand=_forged,
        options={"kinds": 0, "smooth": 1.0},
        optimizer=lambda p: torch.optim.Adam(p, 1e-3, betas=(0.5, 0.99)),
    )  # fmt: skip


class Weighed(nn.Module):
    """What was earned beyond the usual, by how much likelier the offer is now than it was (negative)."""

    def forward(self, told: torch.Tensor, logged: torch.Tensor) -> torch.Tensor:
        offer, chance, earned = logged[:, :1].long(), logged[:, 1], logged[:, 2]
        now = told.log_softmax(1)
        spread = -(now.exp() * now).sum(1).mean()
        return -(now.gather(1, offer)[:, 0].exp() / chance * (earned - 0.5)).mean() - 0.02 * spread


def offers_logged(seed: int) -> Recipe:
    """A policy from what an older one offered and earned; the score is what its own offers would earn."""
    recipe = Recipe(
        stack((10, 64, 48, data.OFFERS), nn.Tanh), *data.logged(933), Weighed(), data.earned, batch=96,
        steps=160, optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


class Foreseen(nn.Module):
    """How far what was done is from what it earned and what comes after it, robustly."""

    def forward(self, told: torch.Tensor, tried: torch.Tensor) -> torch.Tensor:
        return nn.functional.smooth_l1_loss(told.gather(1, tried[:, :1].long())[:, 0], tried[:, 1])


def _foreseen(recipe: Recipe, _step: int, x: torch.Tensor, tried: torch.Tensor):
    """What was earned, and the worth of the best that can follow by a slower net (Q-learning)."""
    slow = recipe.options.setdefault("slow", copy.deepcopy(recipe.options["other"]))
    now, then = x.chunk(2, 1)
    with torch.no_grad():
        for one, new in zip(slow.parameters(), recipe.model.parameters(), strict=True):
            one.lerp_(new, 0.15)
        return now, torch.stack([tried[:, 0], tried[:, 1] + data.KEPT * slow(then).amax(1)], 1)


def sleds_parked(seed: int) -> Recipe:
    """From tries at random; the worth of parking is the score, whatever rows are held out."""

    def worth(_told: torch.Tensor, _wanted: torch.Tensor) -> float:
        recipe.options["judged"].load_state_dict(recipe.model.state_dict())
        return data.parked(recipe.options["judged"])

    train = data.slid(934)
    recipe = Recipe(
        stack((2, 64, 64, 3), nn.ReLU), train, (train[0][:99, :2], train[1][:99]), Foreseen(), worth,
        batch=128, steps=300, clip=5.0, on_batch=[_foreseen], after_optimizer=[_copied], eval_every=1000,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3), schedule=lambda step: 1 - 0.95 * step / 300,
    )  # fmt: skip
    return recipe


TASKS = (
    Task("spectra_forged", "adversarial", spectra_forged, {"larger_batches": w.batches_of(128)},
         (sagemaker.output_zero("maker.3", 100), fifth.maker_detached())),
    Task("signatures_forged", "adversarial", signatures_forged, {"larger_batches": w.batches_of(112)},
         (fourth.rate_of_another(0.3), third.empty_weights("maker.2"))),
    Task("offers_logged", "reinforcement", offers_logged, {"nadam": w.by("NAdam", 3e-3)},
         (sagemaker.weights_scaled(40.0, "weights_large"), silent.never_stepped())),
    Task("sleds_parked", "reinforcement", sleds_parked, {"larger_batches": w.batches_of(192)},
         (fourth.raised(200.0, 120), silent.skipped(100))),
)  # fmt: skip
