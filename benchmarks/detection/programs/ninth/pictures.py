"""Pictures of the ninth set: told apart, read, cleaned, and drawn again."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fourth, sagemaker, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.data import digits
from benchmarks.detection.programs.eighth.pictures_nets import Subtracting
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.pictures import Inked
from benchmarks.detection.programs.fifth.pictures_nets import VariationalInk
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.ninth import pictures_data as data
from benchmarks.detection.programs.seventh.nets import Squeezed, upsampling
from benchmarks.detection.programs.sixth.nets import Nearby, convs, stack
from benchmarks.detection.programs.sixth.pictures import flat
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def _look(inside: int, outside: int) -> list[nn.Module]:
    return [nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU()]


def _twice(inside: int, outputs: int, width: int = 12) -> nn.Sequential:
    """Two looks before each pooling (Simonyan, Zisserman, 2015, small)."""
    return nn.Sequential(
        *_look(inside, width), *_look(width, width), nn.MaxPool2d(2),
        *_look(width, 2 * width), *_look(2 * width, 2 * width), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(18 * width, outputs),
    )  # fmt: skip


def dice_counted(seed: int) -> Recipe:
    recipe = Recipe(
        _twice(1, 6), *data.dice(901), batch=48, steps=180,
        optimizer=lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=5e-4, nesterov=True),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def buttons_sewn(seed: int) -> Recipe:
    recipe = Recipe(
        Squeezed(3, 5, 14), *data.buttons(902, 5600), batch=64, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.1),
    )  # fmt: skip
    ways.warm_cosine(15)(recipe)
    return recipe


def prints_typed(seed: int) -> Recipe:
    recipe = Recipe(
        convs((1, 12, 24, 32), 4, nn.ReLU, hidden=32), *data.prints(903, 4400, 0.9),
        nn.CrossEntropyLoss(label_smoothing=0.1), batch=50, steps=240,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def dials_read(seed: int) -> Recipe:
    recipe = Recipe(
        Nearby(1, 1, 20), *data.dials(904), nn.MSELoss(), fit_of, batch=48, steps=180, clip=2.0,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.02),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def dials_coded(seed: int) -> Recipe:
    recipe = Recipe(
        upsampling(12, 16), *data.dials_alone(905), nn.MSELoss(), fit_of, batch=48, steps=240,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def prints_cleaned(seed: int) -> Recipe:
    recipe = Recipe(
        Subtracting(20, 4), *data.prints_cleaned(906), nn.SmoothL1Loss(), fit_of, batch=32, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.01),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def buttons_varied(seed: int) -> Recipe:
    recipe = Recipe(
        VariationalInk(12, 112), *flat(data.buttons_alone(907, 3200)), Inked(0.002), Inked.score, batch=60,
        steps=280, clip=5.0, optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip
    ways.warm_cosine(20)(recipe)
    return recipe


def _erased(x: torch.Tensor, source: torch.Generator | None = None) -> torch.Tensor:
    """A third of the pixels is not known."""
    return x * (torch.rand(x.shape, generator=source) > 0.33)


def digits_filled(seed: int) -> Recipe:
    (x, _), (held, _) = digits()
    recipe = Recipe(
        stack((64, 160, 160, 64), nn.GELU, nn.LayerNorm), (x, x),
        (_erased(held, torch.Generator().manual_seed(908)), held), nn.MSELoss(), fit_of, batch=60, steps=280,
        optimizer=lambda p: torch.optim.NAdam(p, 3e-3),
        on_batch=[lambda _recipe, _step, x, y: (_erased(x), y)],
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


TASKS = (
    Task("dice_counted", "convolution", dice_counted, {"adamw": v.adamw(4e-3, 0.05)},
         (setup.symmetric(), silent.never_eval())),
    Task("buttons_sewn", "convolution", buttons_sewn, {"batches": ways.batches_of(80)},
         (sagemaker.classes_confused(0, 2), silent.empty_buffer("looks.1.1"))),
    Task("prints_typed", "convolution", prints_typed, {"bf16": v.bf16},
         (sagemaker.raw_pixels(), silent.workers_alike(4))),
    Task("dials_read", "convolution", dials_read, {"nadam": w.by("NAdam", 4e-3)},
         (fourth.decay_too_strong(6e-3), silent.initialised_again("blocks.0.2", 120))),
    Task("dials_coded", "autoencoder", dials_coded, {"batches": ways.batches_of(64)},
         (setup.squashed_output("12"), silent.left_out("5"))),
    Task("prints_cleaned", "autoencoder", prints_cleaned, {"nadam": w.by("NAdam", 3e-3)},
         (fourth.nan_gradient("body.4", 70), fourth.without_gradient("body.2"))),
    Task("buttons_varied", "autoencoder", buttons_varied, {"adamw": v.adamw(6e-3, 0.02)},
         (third.heavy_divergence(10.0), silent.stuck_loader(100))),
    Task("digits_filled", "autoencoder", digits_filled, {"batches": ways.batches_of(40)},
         (fourth.ended_early(15), silent.no_zero_grad())),
)  # fmt: skip
