"""Pictures of the fourth held-out set: pixels, waves, dots and tiles; trunks that were trained before."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import nn

from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent, third
from benchmarks.detection.faults.parts import replace
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fourth import data, losses
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.fourth.networks import (
    Counting,
    Growing,
    Modern,
    Patches,
    Plain,
    Together,
    UNet,
)
from benchmarks.detection.programs.pretraining import pretrained
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def strokes_found(seed: int) -> Recipe:
    recipe = Recipe(
        UNet(), *data.strokes(), losses.Dice(), losses.Dice.score, batch=24, steps=150,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.01),
    )  # fmt: skip
    w.cycled(recipe)
    return recipe


def _half_cosine(steps: int, up: int = 15):
    """Up in a line, down in half a cosine."""
    return lambda step: min(1.0, (step + 1) / up) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))


def gratings_modern(seed: int) -> Recipe:
    return Recipe(
        Modern(1, 6), *data.gratings(), nn.CrossEntropyLoss(label_smoothing=0.1), batch=48, steps=200,
        schedule=_half_cosine(200), optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.1),
    )  # fmt: skip


def gratings_patches(seed: int) -> Recipe:
    """Half of the steps pass before attention finds anything."""
    return Recipe(
        Patches(1, 6), *data.gratings(), batch=64, steps=260, clip=1.0, schedule=_half_cosine(260, 30),
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, betas=(0.9, 0.98), weight_decay=0.05),
    )  # fmt: skip


def dots_counted(seed: int) -> Recipe:
    return Recipe(
        Counting(), *data.dots(), nn.SmoothL1Loss(), fit_of, batch=40, steps=160,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3, amsgrad=True),
    )  # fmt: skip


def segments_residual(seed: int) -> Recipe:
    recipe = Recipe(
        Plain(1, 10), *data.segments(), batch=48, steps=160,
        optimizer=lambda p: torch.optim.SGD(p, 0.15, momentum=0.9, weight_decay=5e-4, nesterov=True),
    )  # fmt: skip
    w.cycled(recipe)
    return recipe


def banners_growing(seed: int) -> Recipe:
    return Recipe(
        Growing(3, 5, 10), *data.banners(), batch=54, steps=200,
        optimizer=lambda p: torch.optim.RAdam(p, 1e-2, weight_decay=1e-3),
    )  # fmt: skip


@cache
def _learnt(kind: type[nn.Module], steps: int) -> dict[str, torch.Tensor]:
    """Weights of a net that tells gratings."""
    rows, _ = data.gratings()
    return pretrained(lambda: kind(1, 6), rows, steps, seed=260, batch=48)


def segments_probed(seed: int) -> Recipe:
    """A trunk that tells gratings is frozen, its normalisations, too: a head on all it gives is trained."""
    model = Plain(1, 6)
    model.load_state_dict(_learnt(Plain, 150))
    model.requires_grad_(False)
    trunk = nn.Sequential(model.stem, model.norm, model.relu, model.blocks[0])
    whole = nn.Sequential(
        trunk, nn.AvgPool2d(2), nn.Flatten(), nn.Linear(360, 64), nn.ReLU(), nn.Linear(64, 10)
    )

    def as_it_was(_recipe: Recipe, _step: int) -> None:
        trunk.eval()

    return Recipe(
        whole, *data.segments(), batch=50, steps=160, before_step=[as_it_was],
        optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip


LAYERS = ("blocks.0.value", "blocks.0.up", "blocks.1.value", "blocks.1.up")


def lengths_adapted(seed: int) -> Recipe:
    """Low-rank additions to four layers of a transformer that tells gratings, a new head, no more."""
    model = Patches(1, 6)
    model.load_state_dict(_learnt(Patches, 250))
    model.requires_grad_(False)
    for name in LAYERS:
        replace(model, name, Together(model.get_submodule(name), 6))
    model.head = nn.Linear(32, 3)
    recipe = Recipe(
        model, *data.lengths(), batch=64, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.0),
    )  # fmt: skip
    w.cooled(recipe)
    return recipe


def only_biases(recipe: Recipe) -> None:
    """Instead of additions, what there is of biases and normalisations is trained."""
    recipe.model.requires_grad_(False)
    for name, one in recipe.model.named_parameters():
        if name.startswith("head") or "bias" in name or "norm" in name:
            one.requires_grad_(True)


TASKS = (
    Task("strokes_found", "segmentation", strokes_found, {"bf16": v.bf16},
         (second.bytes_for_shares(), silent.left_out("join2"), sagemaker.not_a_number("deep", 50))),
    Task("gratings_modern", "convolution", gratings_modern, {"shaken": w.shaken(0.2)},
         (fourth.without_gradient("stem"), setup.redundant_softmax("head"),
          sagemaker.raw_pixels(128.0, 64.0))),
    Task("gratings_patches", "transformer", gratings_patches, {},
         (setup.attention_sharp(80.0), silent.never_stepped(0.0), fourth.other_rows())),
    Task("dots_counted", "convolution", dots_counted, {"small_batches": w.small_batches(8, 280, 2e-3)},
         (setup.inputs_constant(60), fourth.nan_gradient("look.3", 55), silent.skipped(50))),
    Task("segments_residual", "convolution", segments_residual, {"swa": w.swa, "scaled": v.scaled},
         (silent.never_eval(), silent.empty_buffer("norm"), third.sorted_by_class(), silent.left_in_eval())),
    Task("banners_growing", "convolution", banners_growing, {"cooled": w.cooled},
         (setup.shuffled_labels(), sagemaker.classes_confused(1, 3), silent.scaler_stuck())),
    Task("segments_probed", "fine-tuning", segments_probed, {"on_plateaus": w.on_plateaus},
         (silent.stale_optimizer("5"), sagemaker.rate_tiny(1e-4), held.relu_head("5"))),
    Task("lengths_adapted", "fine-tuning", lengths_adapted, {"only_biases": only_biases},
         (fourth.both_zero(*LAYERS), silent.left_out("blocks.0.up"), second.set_back(110))),
)  # fmt: skip
