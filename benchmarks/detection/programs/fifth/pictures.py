"""Pictures of the fifth set: told apart, drawn again from a code, and told by what was learnt before."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fifth import pictures_data as data
from benchmarks.detection.programs.fifth import tables_data
from benchmarks.detection.programs.fifth.pictures_nets import (
    Bottleneck,
    Deeper,
    Looking,
    VariationalConv,
    VariationalInk,
    hourglass,
    ink_code,
    lenet,
)
from benchmarks.detection.programs.fifth.tables import area, half_cosine, with_dropout
from benchmarks.detection.programs.fifth.tables_nets import tower
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.networks import divergence
from benchmarks.detection.programs.pretraining import pretrained
from benchmarks.detection.recipe import Recipe, fit_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TASKS"]

PIXELS = 196


class Inked(nn.Module):
    """Cross-entropy of each pixel's ink, and how far the code is from its prior."""

    def __init__(self, weight: float = 0.02) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, told: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        mean, spread = told[:, PIXELS:].chunk(2, 1)
        drawn = nn.functional.binary_cross_entropy_with_logits(told[:, :PIXELS], x.flatten(1))
        return drawn + self.weight * divergence(mean, spread) / 10

    @staticmethod
    def score(told: torch.Tensor, x: torch.Tensor) -> float:
        return fit_of(torch.sigmoid(told[:, :PIXELS].float()), x)


def ink_score(told: torch.Tensor, x: torch.Tensor) -> float:
    """How much of the ink is drawn again, by logits."""
    return fit_of(torch.sigmoid(told.float()), x)


def letters_lenet(seed: int) -> Recipe:
    return Recipe(
        lenet(10), *data.letters(), batch=48, steps=180, optimizer=lambda p: torch.optim.Adam(p, 3e-3)
    )


def garments_deeper(seed: int) -> Recipe:
    return Recipe(
        Deeper(6), *data.garments(), batch=64, steps=130, schedule=half_cosine(130, 15),
        optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=5e-4, nesterov=True),
    )  # fmt: skip


def cells_infected(seed: int) -> Recipe:
    return Recipe(
        lenet(1, act=nn.LeakyReLU), *data.cells(), nn.BCEWithLogitsLoss(), area, batch=48, steps=180,
        optimizer=lambda p: torch.optim.RMSprop(p, 1.5e-3),
    )  # fmt: skip


def turned(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
    """Pictures from above have no top: each batch is mirrored or turned by chance."""
    if torch.rand(()) < 0.5:
        x = x.flip(3)
    return x.rot90(int(torch.randint(4, ())), (2, 3)), y


def land_residual(seed: int) -> Recipe:
    return Recipe(
        Bottleneck(5), *data.land(), batch=48, steps=140, schedule=half_cosine(140, 20), on_batch=[turned],
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip


def surfaces_dropping(seed: int) -> Recipe:
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.1),
        nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.1),
        nn.Flatten(), nn.Linear(216, 4),
    )  # fmt: skip
    return Recipe(
        model, *data.surfaces(), batch=50, steps=200,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3, weight_decay=1e-4),
    )  # fmt: skip


def hands_told(seed: int) -> Recipe:
    recipe = Recipe(
        Looking(2), *data.hands(), nn.MSELoss(), fit_of, batch=40, steps=160,
        optimizer=lambda p: torch.optim.NAdam(p, 2e-3),
    )  # fmt: skip
    w.cooled(recipe)
    return recipe


def ink_coded(seed: int) -> Recipe:
    return Recipe(
        ink_code(), *data.inked(), nn.BCEWithLogitsLoss(), ink_score, batch=50, steps=280,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


def cells_denoised(seed: int) -> Recipe:
    return Recipe(
        hourglass(), *data.cells_cleaned(), nn.MSELoss(), fit_of, batch=32, steps=150,
        schedule=half_cosine(150), optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=1e-3),
    )  # fmt: skip


def ink_variational(seed: int) -> Recipe:
    return Recipe(
        VariationalInk(), *data.inked(), Inked(), Inked.score, batch=64, steps=280,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


def garments_variational(seed: int) -> Recipe:
    return Recipe(
        VariationalConv(), *data.worn_again(), Inked(0.01), Inked.score, batch=48, steps=260, clip=2.0,
        optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip


@cache
def _learnt(kind: str) -> dict[str, torch.Tensor]:
    """Weights of a net that was trained before: of ten letters, garments or what a phone tells."""
    make, known = {
        "letters": (lambda: lenet(10), data.letters),
        "garments": (lambda: Deeper(6), data.garments),
        "activity": (lambda: tower(36, 6, (64, 64), nn.ReLU), tables_data.activity),
    }[kind]
    rows, _ = known()
    return pretrained(make, rows, 140, seed=350, batch=48)


def _before(kind: str, model: nn.Module) -> nn.Module:
    """A net with the weights it learnt before."""
    model.load_state_dict(_learnt(kind))
    return model


def letters_transferred(seed: int) -> Recipe:
    """Convolutions that tell ten letters are frozen, and two new layers tell six others."""
    model = _before("letters", lenet(10))
    model[:7].requires_grad_(False)
    model[7], model[9] = nn.Linear(144, 48), nn.Linear(48, 6)
    return Recipe(
        model, *data.more_letters(), batch=32, steps=150, optimizer=lambda p: torch.optim.Adam(p, 2e-3)
    )


def activity_transferred(seed: int) -> Recipe:
    """The first layer stays as it is, the second is tuned, and the last one is new."""
    model = _before("activity", tower(36, 6, (64, 64), nn.ReLU))
    model[0].requires_grad_(False)
    model[4] = nn.Linear(64, 3)
    return Recipe(
        model, *tables_data.other_sensors(), batch=25, steps=130,
        optimizer=lambda p: torch.optim.SGD(p, 0.03, momentum=0.9),
    )  # fmt: skip


def _two_rates(model: nn.Module, rate: float) -> Callable[[list[nn.Parameter]], torch.optim.Optimizer]:
    """A tenth of the rate for all but the head."""

    def make(found: list[nn.Parameter]) -> torch.optim.Optimizer:
        head = {id(one) for one in model.head.parameters()}
        return torch.optim.AdamW([
            {"params": [one for one in found if id(one) in head]},
            {"params": [one for one in found if id(one) not in head], "lr": 0.1 * rate},
        ], lr=rate, weight_decay=0.01)  # fmt: skip

    return make


def surfaces_tuned(seed: int) -> Recipe:
    """A net that tells garments learns what is wrong with surfaces, its body slowly."""
    model = _before("garments", Deeper(6))
    model.head = nn.Linear(24, 4)
    return Recipe(model, *data.surfaces(), batch=40, steps=150, optimizer=_two_rates(model, 1e-2))


THAWED = 60


def cells_thawed(seed: int) -> Recipe:
    """First the head alone is trained, and after sixty steps the convolutions, too, at a lower rate."""
    model = _before("letters", lenet(10))
    model[:7].requires_grad_(False)
    model[7], model[9] = nn.Linear(144, 48), nn.Linear(48, 1)

    def thaw(recipe: Recipe, step: int) -> None:
        if step == THAWED:
            model[:7].requires_grad_(True)
            if recipe.options.get("joins", True):
                recipe.made_optimizer.add_param_group({"params": list(model[:7].parameters()), "lr": 1e-3})

    return Recipe(
        model, *data.cells(), nn.BCEWithLogitsLoss(), area, batch=48, steps=170, before_step=[thaw],
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


TASKS = (
    Task("letters_lenet", "convolution", letters_lenet, {"momentum": w.by("SGD", 0.05, momentum=0.9)},
         (fifth.divided_twice(), sagemaker.dead_units("7", 70), silent.no_zero_grad())),
    Task("garments_deeper", "convolution", garments_deeper, {"adamw": v.adamw(4e-3, 0.05)},
         (silent.never_eval(), fifth.both_losses("head"), sagemaker.classes_confused(0, 2))),
    Task("cells_infected", "convolution", cells_infected, {"bf16": v.bf16},
         (fifth.times_hundred(), silent.detached("3"), sagemaker.rate_explodes(1e5))),
    Task("land_residual", "convolution", land_residual, {"accumulating": v.accumulating},
         (silent.empty_buffer("stem.1"), setup.shuffled_labels(), silent.left_out("second"))),
    Task("surfaces_dropping", "convolution", surfaces_dropping, {"dropout": with_dropout(0.3)},
         (sagemaker.raw_pixels(120.0, 50.0), silent.left_in_eval(), sagemaker.unbalanced(0.97, 0))),
    Task("hands_told", "convolution", hands_told, {"larger_batches": w.larger_batches(2)},
         (fifth.only_rectified("head"), silent.skipped(60), sagemaker.not_a_number("mix", 60))),
    Task("ink_coded", "autoencoder", ink_coded, {"adamw": v.adamw(4e-3, 0.01)},
         (second.bytes_for_shares(), silent.left_out("2"), sagemaker.dead_units("0", 70))),
    Task("cells_denoised", "autoencoder", cells_denoised, {"small_batches": w.small_batches(10, 240, 3e-3)},
         (fifth.only_rectified("6"), silent.workers_alike(4), sagemaker.rate_tiny(1e-4))),
    Task("ink_variational", "autoencoder", ink_variational, {"warm_up": v.warm_up},
         (third.heavy_divergence(30.0), silent.never_stepped(), fourth.raised(300.0, 120))),
    Task("garments_variational", "autoencoder", garments_variational, {"bf16": v.bf16},
         (silent.detached("mean"), held.broken_rows(0.1, 60), fifth.l2_in_adam(6e-3, 1.0))),
    Task("letters_transferred", "fine_tuning", letters_transferred, {"cosine": v.cosine},
         (silent.stale_optimizer("9"), setup.redundant_softmax("9"), sagemaker.output_zero("7", 60))),
    Task("activity_transferred", "fine_tuning", activity_transferred, {"adam": w.by("Adam", 2e-3)},
         (second.set_back(80), fifth.normal_weights(1.0), silent.stuck_loader(50))),
    Task("surfaces_tuned", "fine_tuning", surfaces_tuned, {"averaged": w.averaged},
         (fourth.without_gradient("body.0"), fourth.ended_early(20), silent.scaler_stuck())),
    Task("cells_thawed", "fine_tuning", cells_thawed, {"nadam": w.by("NAdam", 2e-3)},
         (fifth.thawed_unseen(r"(^|[/.])[03]\b", THAWED), third.labels_one_two(), setup.inputs_constant(70))),
)  # fmt: skip
