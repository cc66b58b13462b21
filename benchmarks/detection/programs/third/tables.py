"""Tables of the third held-out set: regressions, tiny and unbalanced data, wrong labels, plateaus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import held, sagemaker, second, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.networks import mlp
from benchmarks.detection.programs.second.tables import right
from benchmarks.detection.programs.third import data
from benchmarks.detection.programs.third import ways as w
from benchmarks.detection.programs.third.networks import Couplings, Experts, Few, Moments, selfish, tower
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["TASKS"]


class GaussianLoss(nn.Module):
    """Of a mean and the logarithm of a variance side by side; below zero where little is left to tell."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        mean, spread = told[:, :1], told[:, 1:].clamp(-8, 6)
        return 0.5 * (spread + (wanted - mean) ** 2 / spread.exp()).mean()


class Density(nn.Module):
    """Minus the log-density of a point by where it comes from, in nats of a coordinate."""

    def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return (0.5 * (told[:, :2] ** 2).sum(1) - told[:, 2] + 1.8379).mean() / 2


class Earned(nn.Module):
    """An offer is drawn, and its earning (above the mean) weighs how likely it is to be drawn again."""

    def forward(self, told: torch.Tensor, chances: torch.Tensor) -> torch.Tensor:
        drawn = torch.distributions.Categorical(logits=told.detach()).sample()[:, None]
        earned = torch.bernoulli(chances.gather(1, drawn))
        spread = -(told.softmax(1) * told.log_softmax(1)).sum(1).mean()
        return -((earned - earned.mean()) * told.log_softmax(1).gather(1, drawn)).mean() - 0.01 * spread


class Hinge(nn.Module):
    """Squared, for yes and no."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return (torch.relu(1 - told * (2 * wanted - 1)) ** 2).mean()


def _earned(told: torch.Tensor, chances: torch.Tensor) -> float:
    """How much of what can be earned is, where chance gives 0."""
    got, most = chances.gather(1, told.argmax(1, keepdim=True)).mean(), chances.amax(1).mean()
    return float((got - chances.mean()) / (most - chances.mean()))


def parity_plateau(seed: int) -> Recipe:
    """Nothing is learnt for a hundred steps, and then all of it."""
    return Recipe(
        mlp(8, 64, 2, 1), *data.parity(), batch=64, steps=320,
        optimizer=lambda p: torch.optim.SGD(p, 0.15, momentum=0.9),
    )  # fmt: skip


def arctan_selu(seed: int) -> Recipe:
    return Recipe(
        selfish(4, 36, 1), *data.arctan(), nn.SmoothL1Loss(beta=0.3), fit_of, batch=40, steps=180,
        optimizer=lambda p: torch.optim.Adadelta(p, 1.0),
    )  # fmt: skip


def odd_tower(seed: int) -> Recipe:
    return Recipe(
        tower(64, 1, (80, 40), nn.CELU), *data.parity_of_digits(), nn.BCEWithLogitsLoss(), right, batch=50,
        steps=170, optimizer=lambda p: torch.optim.Adafactor(p, 2e-2),
    )  # fmt: skip


def odd_rectified(seed: int) -> Recipe:
    """The same by a squared hinge and plain steps of a size that hardly works."""
    return Recipe(
        mlp(64, 56, 1, 2), *data.parity_of_digits(), Hinge(), right, batch=80, steps=200,
        optimizer=lambda p: torch.optim.SGD(p, 0.25),
    )  # fmt: skip


def terciles_dropping(seed: int) -> Recipe:
    """Three hundred rows, of which not much can be told."""
    return Recipe(
        tower(10, 3, (48,), nn.ReLU, 0.5), *data.terciles(), batch=22, steps=150,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.5),
    )  # fmt: skip


def faint_targets(seed: int) -> Recipe:
    """Targets of a thousandth: the loss is below 1e-6 from the first step on."""
    model = mlp(5, 48, 1, 2, nn.GELU)
    with torch.no_grad():
        model[4].weight.mul_(1e-2)
        model[4].bias.zero_()
    return Recipe(
        model, *data.faint(), nn.MSELoss(), fit_of, batch=48, steps=240,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3, eps=1e-12),
    )  # fmt: skip


def malignant_even(seed: int) -> Recipe:
    """As many batches' rows of the rare class as of the common one."""
    (_, y), _ = data.malignant()
    chance = 1.0 / torch.bincount(y)[y]
    source = torch.Generator().manual_seed(seed)
    return Recipe(
        tower(30, 2, (40, 20), nn.LeakyReLU, 0.2), *data.malignant(), score=balanced_accuracy, batch=36,
        batches=lambda rows: torch.multinomial(chance, len(rows), replacement=True, generator=source),
        steps=140, optimizer=lambda p: torch.optim.Adam(p, 1e-3),
    )  # fmt: skip


def scatter_moments(seed: int) -> Recipe:
    return Recipe(
        Moments(3), *data.scatter(), GaussianLoss(), lambda told, wanted: fit_of(told[:, :1], wanted),
        batch=60, steps=200, clip=5.0, optimizer=lambda p: torch.optim.Adam(p, 3e-3, betas=(0.9, 0.99)),
    )  # fmt: skip


def noisy_yes(seed: int) -> Recipe:
    """Three of ten labels are wrong, and most of the units are dropped: the loss hardly falls."""
    return Recipe(
        tower(20, 2, (128,), nn.ReLU, 0.6), *data.noisy_yes(), batch=40, steps=200,
        optimizer=lambda p: torch.optim.ASGD(p, 0.05),
    )  # fmt: skip


def clusters_few(seed: int) -> Recipe:
    """Of 160 units the eight largest pass: nearly all that can be seen is zero."""
    return Recipe(
        Few(20, 160, 12), *data.clusters(), batch=48, steps=150,
        optimizer=lambda p: torch.optim.RAdam(p, 5e-3),
    )  # fmt: skip


def linear_quick(seed: int) -> Recipe:
    """Learnt after twenty steps, and trained for a hundred and forty."""
    return Recipe(
        nn.Sequential(nn.Linear(10, 1)), *data.linear(), nn.MSELoss(), fit_of, batch=100, steps=140,
        optimizer=lambda p: torch.optim.SGD(p, 0.1),
    )  # fmt: skip


def pieces_experts(seed: int) -> Recipe:
    return Recipe(
        Experts(6, 1), *data.pieces(), nn.MSELoss(), fit_of, batch=64, steps=220,
        optimizer=lambda p: torch.optim.NAdam(p, 1e-2, momentum_decay=0.002),
    )  # fmt: skip


def crescents_flow(seed: int) -> Recipe:
    """Scored by the log-density of held-out points above that of one round cloud."""
    return Recipe(
        Couplings(), *data.crescents(), Density(),
        lambda told, wanted: float(max(-5.0, 1.4189 - float(Density()(told, wanted)))), batch=80, steps=180,
        optimizer=lambda p: torch.optim.Adamax(p, 8e-3),
    )  # fmt: skip


def offers_tried(seed: int) -> Recipe:
    """Learnt by trying: the loss is around zero all the time."""
    return Recipe(
        mlp(6, 32, 5, 1, nn.Tanh), *data.offers(), Earned(), _earned, batch=128, steps=240,
        optimizer=lambda p: torch.optim.Adam(p, 1e-2),
    )  # fmt: skip


def large_rate(recipe: Recipe) -> None:
    """Near the largest rate that works."""
    recipe.optimizer = lambda p: torch.optim.SGD(p, 0.45)


def apart(found: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Weights with decay, biases without."""
    found = list(found)
    return torch.optim.AdamW([
        {"params": [one for one in found if one.ndim > 1], "weight_decay": 0.3},
        {"params": [one for one in found if one.ndim < 2], "weight_decay": 0.0},
    ], lr=2e-3)  # fmt: skip


def in_groups(recipe: Recipe) -> None:
    recipe.optimizer = apart


TASKS = (
    Task("parity_plateau", "dense", parity_plateau, {"strong_decay": w.strong_decay(5e-3, 0.3)},
         (setup.shuffled_labels(), silent.left_out("2"), setup.redundant_softmax("2"))),
    Task("arctan_selu", "regression", arctan_selu, {"mixed": w.mixed},
         (sagemaker.not_a_number("3", 54), setup.squashed_output("9"), second.spread_targets())),
    Task("odd_tower", "dense", odd_tower, {"bf16": v.bf16, "held_up": w.held_up},
         (third.labels_one_two(), third.softmax_of_one("6"), silent.scaler_stuck())),
    Task("odd_rectified", "dense", odd_rectified, {"twitching": w.twitching, "ramped": w.ramped},
         (sagemaker.dead_units("2", 70), third.shrunk_inputs(), third.empty_weights("2"))),
    Task("terciles_dropping", "tiny", terciles_dropping, {"restarting": w.restarting},
         (sagemaker.overfit(30, 400, 0.3), silent.left_in_eval(), silent.other_model())),
    Task("faint_targets", "regression", faint_targets, {"always_clipped": w.always_clipped},
         (silent.detached("2"), silent.stuck_loader(60), third.epsilon_large(1e-3, 1.0))),
    Task("malignant_even", "tiny", malignant_even, {"wsd": w.wsd},
         (third.all_as_they_come(), silent.initialised_again("3", 80), held.broken_rows(0.1, 60))),
    Task("scatter_moments", "regression", scatter_moments, {"accumulating": v.accumulating},
         (sagemaker.rate_explodes(1e4), silent.initialised_again("spread", 100),
          third.saturated_units("body.2", 70))),
    Task("noisy_yes", "dense", noisy_yes, {"polynomial": w.polynomial, "in_groups": in_groups},
         (third.sorted_by_class(), third.clipped_before_unscaling(), silent.never_stepped())),
    Task("clusters_few", "sparse", clusters_few, {"triangles": w.triangles},
         (sagemaker.dead_units("spread", 50), sagemaker.classes_confused(4, 9))),
    Task("linear_quick", "regression", linear_quick, {"large_rate": large_rate, "pairwise": w.pairwise(0.01)},
         (setup.diverging(1.3, 60), held.rolled_labels(), third.summed_loss())),
    Task("pieces_experts", "dense", pieces_experts, {"stairs": w.stairs},
         (second.zeroed_before_step(), silent.left_out("experts.2"), third.warm_up_for_ever())),
    Task("crescents_flow", "dense", crescents_flow, {"always_clipped": w.always_clipped},
         (sagemaker.not_a_number("nets.2", 60), silent.skipped(60), setup.oscillating(80.0))),
    Task("offers_tried", "dense", offers_tried, {},
         (silent.no_zero_grad(), sagemaker.rate_tiny())),
)  # fmt: skip
