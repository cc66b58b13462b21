"""Tables of the seventh set: classes, yes and no, amounts; rare cases, and few of them."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as unread
from benchmarks.detection.faults import fourth, sagemaker, second, setup, silent, third
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.faults import sixth_sequences as stays
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.tables import area, half_cosine, with_dropout
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.seventh import tables_data as data
from benchmarks.detection.programs.seventh.nets import Embedded, Gated, Grown, Highway, Periodic
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.tables_data import few
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of, mean_loss

__all__ = ["TASKS", "tickets_routed"]


def tickets_routed(seed: int) -> Recipe:
    return Recipe(
        Highway(18, 6), *data.grouped(711, 3000, 18, 6), batch=64, steps=180, schedule=half_cosine(180, 15),
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip


def loans_decided(seed: int) -> Recipe:
    return Recipe(
        Embedded(8, (12, 7, 4), 1), *data.likely(712, 3200, 8, (12, 7, 4)), nn.BCEWithLogitsLoss(), area,
        batch=64, steps=180, optimizer=lambda p: torch.optim.Adam(p, 2e-3), schedule=half_cosine(180),
    )  # fmt: skip


def donors_answering(seed: int) -> Recipe:
    return Recipe(
        Periodic(9, 1), *data.likely(713, 3000, 9), nn.BCEWithLogitsLoss(), area, batch=50, steps=200,
        schedule=half_cosine(200, 20), optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.05),
    )  # fmt: skip


def minerals_named(seed: int) -> Recipe:
    recipe = Recipe(
        Grown(14, 8), *data.grouped(714, 4000, 14, 8, 1), batch=60, steps=200,
        optimizer=lambda p: torch.optim.SGD(p, 0.03, momentum=0.9, weight_decay=1e-3, nesterov=True),
    )  # fmt: skip
    ways.stepped(recipe)
    return recipe


def meters_named(seed: int) -> Recipe:
    return Recipe(
        stack((20, 72, 48, 6), nn.PReLU, nn.BatchNorm1d, lambda: nn.Dropout(0.15)),
        *data.grouped(715, 3200, 20, 6), batch=80, steps=180, schedule=half_cosine(180, 10),
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip


def blasts_told(seed: int) -> Recipe:
    return Recipe(
        Gated(12, 3), *data.grouped(716, 5000, 12, 3, 3, 1.2), batch=64, steps=170, clip=1.0,
        schedule=half_cosine(170, 20), optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.1),
    )  # fmt: skip


def flats_rented(seed: int) -> Recipe:
    return Recipe(
        stack((9, 80, 80, 1), nn.ReLU), *data.smooth(721, 2800, 9), nn.SmoothL1Loss(), fit_of, batch=56,
        steps=240, optimizer=lambda p: torch.optim.Adam(p, 4e-3), schedule=half_cosine(240),
    )  # fmt: skip


def wells_yielding(seed: int) -> Recipe:
    recipe = Recipe(
        stack((8, 64, 64, 3), nn.CELU), *data.smooth(722, 2600, 8, 3), nn.MSELoss(), fit_of, batch=50,
        steps=220, optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.01),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


class Widened(nn.Module):
    """Minus the likelihood of a Laplace distribution: its middle, and the logarithm of its width."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        middle, width = told.chunk(2, 1)
        return (width + (wanted - middle).abs() * torch.exp(-width.clamp(-6, 6))).mean()

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        return fit_of(told[:, :1], wanted)


def delays_expected(seed: int) -> Recipe:
    return Recipe(
        Grown(10, 2, 32, 2), *data.smooth(723, 3000, 10, 1, 0.4), Widened(), Widened.score, batch=64,
        steps=220, clip=5.0, optimizer=lambda p: torch.optim.NAdam(p, 5e-3), schedule=half_cosine(220, 15),
    )  # fmt: skip


class Skewed(nn.Module):
    """Minus the likelihood of a gamma distribution, by the logarithm of its mean (its spread left out)."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return (told + wanted * torch.exp(-told)).mean()

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        return fit_of(told.float().clamp(max=8), wanted.clamp(min=1e-3).log())


def claims_sized(seed: int) -> Recipe:
    return Recipe(
        stack((9, 56, 28, 1), nn.Softplus, nn.LayerNorm), *data.sized(724, 3000, 9), Skewed(), Skewed.score,
        batch=60, steps=200, optimizer=lambda p: torch.optim.RMSprop(p, 2.5e-3), schedule=half_cosine(200),
    )  # fmt: skip


class Adjusted(nn.Module):
    """Cross-entropy of logits to which the logarithm of each class's share is added (Menon et al., 2021)."""

    def __init__(self, labels: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("prior", (torch.bincount(labels) / len(labels)).log())

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(told + self.prior, wanted)


def leaks_adjusted(seed: int) -> Recipe:
    """One row in nine is a leak."""
    train, rest = data.repeated(data.likely(731, 4000, 11, share=0.11, sure=5.0), 1)
    return Recipe(
        stack((11, 56, 28, 2), nn.GELU, drop=lambda: nn.Dropout(0.1)), train, rest, Adjusted(train[1]),
        balanced_accuracy, batch=96, steps=180, schedule=half_cosine(180, 10),
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.1),
    )  # fmt: skip


def outages_repeated(seed: int) -> Recipe:
    return Recipe(
        stack((10, 48, 24, 2), nn.LeakyReLU, nn.BatchNorm1d, lambda: nn.Dropout(0.2)),
        *data.repeated(data.likely(732, 4000, 10, share=0.12, sure=5.0), 6), score=balanced_accuracy,
        batch=96, steps=170, optimizer=lambda p: torch.optim.SGD(p, 0.03, momentum=0.9, weight_decay=5e-3),
    )  # fmt: skip


def trials_few(seed: int) -> Recipe:
    return Recipe(
        stack((8, 20, 3), nn.ReLU, drop=lambda: nn.Dropout(0.2)),
        *few(data.grouped(741, 900, 8, 3, 1, 0.9), 150), score=mean_loss, batch=25, steps=120, eval_every=20,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.1),
    )  # fmt: skip


def soils_few(seed: int) -> Recipe:
    return Recipe(
        stack((5, 18, 1), nn.Tanh), *few(data.smooth(742, 900, 5, 1, 0.3), 160), nn.MSELoss(), fit_of,
        batch=32, steps=160, eval_every=20,
        optimizer=lambda p: torch.optim.Adam(p, 1.5e-2, weight_decay=3e-3),
    )  # fmt: skip


TASKS = (
    Task("tickets_routed", "dense", tickets_routed, {"momentum": w.by("SGD", 0.15, momentum=0.9)},
         (sagemaker.weights_scaled(12.0, "weights_large"), silent.skipped(60))),
    Task("loans_decided", "dense", loans_decided, {"dropout": with_dropout(0.25)},
         (seventh.answers_unknown(), silent.left_out("embed"))),
    Task("donors_answering", "dense", donors_answering, {"bf16": v.bf16},
         (second.redundant_sigmoid("body"), silent.no_zero_grad())),
    Task("minerals_named", "dense", minerals_named, {"adam": w.by("Adam", 3e-3)},
         (seventh.sorted_labels(), unread.unshuffled(50))),
    Task("meters_named", "dense", meters_named, {"batches": ways.batches_of(48)},
         (sagemaker.classes_confused(1, 4), seventh.begun_in_eval())),
    Task("blasts_told", "dense", blasts_told, {"nadam": w.by("NAdam", 2e-3)},
         (setup.missing_softmax(), silent.never_stepped(0.0))),
    Task("flats_rented", "regression", flats_rented, {"adamw": v.adamw(4e-3, 0.05)},
         (sagemaker.deep_sigmoid(), silent.detached("2"))),
    Task("wells_yielding", "regression", wells_yielding, {"batches": ways.batches_of(80)},
         (sixth.missing_targets(), fourth.older_loaded(20, 110))),
    Task("delays_expected", "regression", delays_expected, {"adamax": w.by("Adamax", 1.5e-2)},
         (second.one_large_column(1, 3e4), silent.stuck_loader(70))),
    Task("claims_sized", "regression", claims_sized, {"radam": w.by("RAdam", 2e-2)},
         (fourth.exponent_twice("6"), seventh.rate_grows())),
    Task("leaks_adjusted", "unbalanced", leaks_adjusted, {"one_cycle": ways.one_cycle},
         (seventh.adjusted_backwards(), second.zeroed_before_step())),
    Task("outages_repeated", "unbalanced", outages_repeated, {"cosine": ways.cosine},
         (stays.one_label(), silent.other_model())),
    Task("trials_few", "tiny", trials_few, {"adam": w.by("Adam", 4e-3, weight_decay=1e-2)},
         (sixth.too_long(8), third.empty_weights("0"))),
    Task("soils_few", "tiny", soils_few, {"momentum": w.by("SGD", 0.05, momentum=0.9, weight_decay=3e-3)},
         (sagemaker.overfit(24, 600), third.saturated_units("0", 60))),
)  # fmt: skip
