"""Tables of the sixth set: classes, yes and no, amounts; rare cases, and few of them."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as unread
from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, second, silent, third
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.tables import area, half_cosine, with_dropout
from benchmarks.detection.programs.fifth.tables_nets import TabularResidual
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.sixth import tables_data as data
from benchmarks.detection.programs.sixth.nets import Crossed, gated, stack
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of, mean_loss

__all__ = ["TASKS"]


def applicants_scored(seed: int) -> Recipe:
    return Recipe(
        stack((11, 64, 32, 1), nn.GELU, nn.LayerNorm), *data.chances(611), nn.BCEWithLogitsLoss(), area,
        batch=64, steps=160, schedule=half_cosine(160, 20),
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip


def species_keyed(seed: int) -> Recipe:
    recipe = Recipe(
        stack((15, 80, 40, 7), nn.ReLU), *data.classes(612, 4000, 10, 5, 7, 0.15), batch=60, steps=200,
        optimizer=lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip
    ways.stepped(recipe)
    return recipe


def sensors_faulted(seed: int) -> Recipe:
    return Recipe(
        stack((24, 64, 48, 5), nn.ReLU, nn.BatchNorm1d, lambda: nn.Dropout(0.2)),
        *data.classes(613, 2800, 24, 0, 5), batch=70, steps=200,
        optimizer=lambda p: torch.optim.Adam(p, 2e-3, weight_decay=1e-4),
    )  # fmt: skip


def votes_predicted(seed: int) -> Recipe:
    """Units that keep their own mean and spread, from weights that suit them (Klambauer et al., 2017)."""
    model = stack((16, 56, 56, 28, 3), nn.SELU, drop=lambda: nn.AlphaDropout(0.05))
    for one in model:
        if isinstance(one, nn.Linear):
            nn.init.kaiming_normal_(one.weight, nonlinearity="linear")
            nn.init.zeros_(one.bias)
    return Recipe(
        model, *data.classes(614, 2400, 12, 4, 3), batch=50, steps=170, schedule=half_cosine(170),
        optimizer=lambda p: torch.optim.Adamax(p, 2.5e-3),
    )  # fmt: skip


def symptoms_ticked(seed: int) -> Recipe:
    """Five answers at once, each yes or no."""
    return Recipe(
        stack((12, 72, 36, 5), nn.Mish, drop=lambda: nn.Dropout(0.1)),
        *data.chances(615, 2600, 12, 0, 5, 0.35), nn.BCEWithLogitsLoss(), area, batch=64, steps=180, clip=2.0,
        optimizer=lambda p: torch.optim.RMSprop(p, 8e-4),
    )  # fmt: skip


def routes_gated(seed: int) -> Recipe:
    return Recipe(
        gated(13, 4, 24), *data.classes(616, 3200, 10, 3, 4), batch=48, steps=160,
        schedule=half_cosine(160, 10), optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.05),
    )  # fmt: skip


def plant_output(seed: int) -> Recipe:
    return Recipe(
        stack((4, 48, 48, 1), nn.Tanh), *data.plant(), nn.MSELoss(), fit_of, batch=60, steps=200,
        optimizer=lambda p: torch.optim.Adam(p, 8e-3), schedule=half_cosine(200),
    )  # fmt: skip


def cooling_loads(seed: int) -> Recipe:
    return Recipe(
        TabularResidual(7, 2, 32, 2), *data.cooling(), nn.HuberLoss(delta=0.5), fit_of, batch=48, steps=200,
        schedule=half_cosine(200, 20), optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip


class Pinball(nn.Module):
    """The first, fifth and ninth tenth of what may come, by their shares (Koenker, Bassett, 1978)."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        share = torch.tensor([0.1, 0.5, 0.9])
        short = wanted - told
        return torch.maximum(share * short, (share - 1) * short).mean()

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        return fit_of(told[:, 1:2], wanted)


def yields_quantiled(seed: int) -> Recipe:
    return Recipe(
        stack((12, 64, 64, 3), nn.ReLU), *data.amounts(617, 2600, 9), Pinball(), Pinball.score, batch=64,
        steps=200, optimizer=lambda p: torch.optim.NAdam(p, 1e-3), schedule=half_cosine(200, 15),
    )  # fmt: skip


def rents_crossed(seed: int) -> Recipe:
    return Recipe(
        Crossed(12, 1), *data.amounts(618, 2800, 8, 4), nn.L1Loss(), fit_of, batch=70, steps=160,
        optimizer=lambda p: torch.optim.Adam(p, 2e-3, amsgrad=True), schedule=half_cosine(160),
    )  # fmt: skip


def breakdowns_weighted(seed: int) -> Recipe:
    """One machine of twelve breaks down; in the loss it weighs as much as all others."""
    (x, y), (held_x, held_y) = data.chances(619, 4000, 12, 0, share=0.08)
    train, rest = (x, y[:, 0].long()), (held_x, held_y[:, 0].long())
    count = torch.bincount(train[1])
    return Recipe(
        stack((12, 48, 24, 2), nn.ReLU, nn.BatchNorm1d), train, rest,
        nn.CrossEntropyLoss(len(y) / (2.0 * count)), balanced_accuracy, batch=100, steps=130,
        schedule=half_cosine(130), optimizer=lambda p: torch.optim.Adam(p, 2e-3, weight_decay=1e-3),
    )  # fmt: skip


class Focal(nn.Module):
    """Cross-entropy where what is told well counts little (Lin et al., 2017)."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        loss = nn.functional.binary_cross_entropy_with_logits(told, wanted, reduction="none")
        missed = 1 - torch.exp(-loss)
        return 4 * (torch.where(wanted > 0.5, 0.75, 0.25) * missed**2 * loss).mean()


def claims_focal(seed: int) -> Recipe:
    return Recipe(
        stack((13, 56, 28, 1), nn.SiLU), *data.chances(620, 4000, 10, 3, share=0.08), Focal(), area,
        batch=80, steps=170, optimizer=lambda p: torch.optim.AdamW(p, 1e-3, weight_decay=0.05),
    )  # fmt: skip


def patients_few(seed: int) -> Recipe:
    train, rest = ((x, y[:, 0].long()) for x, y in data.few(data.chances(621, 700, 10, 0), 120))
    return Recipe(
        stack((10, 24, 2), nn.ReLU, drop=lambda: nn.Dropout(0.2)), train, rest, score=mean_loss, batch=20,
        steps=80, eval_every=20, optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.05),
    )  # fmt: skip


def alloys_few(seed: int) -> Recipe:
    return Recipe(
        stack((6, 20, 1), nn.Tanh), *data.few(data.amounts(622, 700, 6, 0, noise=0.2), 100), nn.MSELoss(),
        fit_of, batch=20, steps=140, eval_every=20,
        optimizer=lambda p: torch.optim.SGD(p, 0.03, momentum=0.9, weight_decay=0.02),
    )  # fmt: skip


TASKS = (
    Task("applicants_scored", "dense", applicants_scored, {"momentum": w.by("SGD", 0.1, momentum=0.9)},
         (sixth.log_of_nothing(1), silent.left_out("3"))),
    Task("species_keyed", "dense", species_keyed, {"nadam": w.by("NAdam", 3e-3)},
         (third.summed_loss(), unread.unshuffled(50))),
    Task("sensors_faulted", "dense", sensors_faulted, {"larger_batches": w.larger_batches(2)},
         (sagemaker.classes_confused(1, 3), silent.never_eval())),
    Task("votes_predicted", "dense", votes_predicted, {"smoothed": v.smoothed},
         (sagemaker.weights_scaled(12.0, "weights_large"), silent.skipped(60))),
    Task("symptoms_ticked", "dense", symptoms_ticked, {"dropout": with_dropout(0.25)},
         (second.redundant_sigmoid("6"), silent.no_zero_grad())),
    Task("routes_gated", "dense", routes_gated, {"bf16": v.bf16},
         (fourth.raised(200.0, 90), second.zeroed_before_step())),
    Task("plant_output", "regression", plant_output, {"rmsprop": w.by("RMSprop", 2e-3)},
         (third.saturated_units("2", 80), held.rolled_labels())),
    Task("cooling_loads", "regression", cooling_loads, {"batches": ways.batches_of(96)},
         (sixth.missing_targets(), silent.detached("stem"))),
    Task("yields_quantiled", "regression", yields_quantiled, {"one_cycle": ways.one_cycle},
         (fifth.in_raw_units(400.0, 3000.0), silent.never_stepped())),
    Task("rents_crossed", "regression", rents_crossed, {"adamw": v.adamw(2e-3, 0.05)},
         (held.momentum_wild(0.5), fourth.older_loaded(20, 110))),
    Task("breakdowns_weighted", "unbalanced", breakdowns_weighted, {"clipped": ways.clipped(1.0)},
         (sixth.weights_upside_down(), silent.scaler_stuck())),
    Task("claims_focal", "unbalanced", claims_focal, {"cosine": ways.cosine},
         (fourth.marked_missing(2), silent.initialised_again("2", 100))),
    Task("patients_few", "tiny", patients_few, {"adamax": w.by("Adamax", 1e-2, weight_decay=0.01)},
         (sixth.too_long(15), third.empty_weights("0"))),
    Task("alloys_few", "tiny", alloys_few, {"adam": w.by("Adam", 3e-3, weight_decay=1e-3)},
         (sagemaker.overfit(25, 600), second.one_large_column(1, 3e4))),
)  # fmt: skip
