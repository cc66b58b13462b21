"""Pictures of the tenth set: told apart, measured, outlined, cleaned, sharpened and drawn again."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_tables, fourth, sagemaker, second, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.pictures_nets import VariationalConv
from benchmarks.detection.programs.fifth.sequences_losses import Divergence
from benchmarks.detection.programs.seventh.nets import Outline
from benchmarks.detection.programs.seventh.pictures import outline_score
from benchmarks.detection.programs.sixth.nets import conv_coder
from benchmarks.detection.programs.tenth import pictures_data as data
from benchmarks.detection.programs.tenth import pictures_nets as nets
from benchmarks.detection.programs.tenth import signals_data
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def fruits_sorted(seed: int) -> Recipe:
    recipe = Recipe(
        nets.strided((3, 16, 32, 32), 5, nn.ReLU, nn.BatchNorm2d, 0.2), *data.fruits(1001),
        batch=64, steps=180, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


def clouds_typed(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Beside(1, 4), *data.clouds(1002), batch=60, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def bottles_measured(seed: int) -> Recipe:
    recipe = Recipe(
        nets.strided((1, 12, 24, 24), 1, nn.GELU), *data.bottles(1003), nn.HuberLoss(), fit_of, batch=64,
        steps=200, optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def roofs_outlined(seed: int) -> Recipe:
    recipe = Recipe(
        nets.dilated(), *data.roofs(1004, noise=0.15), nets.Overlap(), outline_score, batch=32, steps=140,
        optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip
    w.stepped(recipe)
    return recipe


def steps_walked(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Waved(3, 5), *signals_data.walked(1005, noise=0.85),
        nn.CrossEntropyLoss(label_smoothing=0.05), batch=60, steps=200,
        optimizer=lambda p: torch.optim.RMSprop(p, 2e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def lanes_followed(seed: int) -> Recipe:
    recipe = Recipe(
        nets.strided((1, 12, 24), 2, nn.ReLU), *data.lanes(1006, 4000), nn.MSELoss(), fit_of, batch=50,
        steps=220, clip=1.0, optimizer=lambda p: torch.optim.NAdam(p, 2e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def fruits_coded(seed: int) -> Recipe:
    recipe = Recipe(
        conv_coder(3, 12, 32), *data.fruits_alone(1007), nn.MSELoss(), fit_of, batch=48, steps=240,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


def clouds_cleaned(seed: int) -> Recipe:
    recipe = Recipe(
        Outline(1, 1), *data.clouds_cleaned(1008), nn.L1Loss(), fit_of, batch=32, steps=160,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.01),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def bottles_varied(seed: int) -> Recipe:
    loss = Divergence(196, 6, 0.5)
    rows = ((x, y.flatten(1)) for x, y in data.bottles_alone(1009))
    recipe = Recipe(
        VariationalConv(6, 12), *rows, loss, loss.score, batch=56, steps=260, clip=20.0,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def roofs_sharpened(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Sharper(), *data.roofs_blurred(1010), nn.MSELoss(), fit_of, batch=32, steps=130,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.01),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("fruits_sorted", "convolution", fruits_sorted, {"batches": w.batches_of(96)},
         (sagemaker.classes_confused(2, 3), silent.left_in_eval())),
    Task("clouds_typed", "convolution", clouds_typed, {"batches": w.batches_of(48)},
         (sagemaker.unbalanced(0.97, 1), silent.workers_alike(5))),
    Task("bottles_measured", "convolution", bottles_measured, {"batches": w.batches_of(48)},
         (fourth.tanh_output("9"), second.set_back(120))),
    Task("roofs_outlined", "convolution", roofs_outlined, {"bf16": v.bf16},
         (second.bytes_for_shares(), sagemaker.output_zero("6", 80))),
    Task("steps_walked", "convolution", steps_walked, {"adamw": w.by("AdamW", 4e-3, weight_decay=0.05)},
         (sagemaker.overfit(60, 500, 0.2), silent.never_eval())),
    Task("lanes_followed", "convolution", lanes_followed, {"batches": w.batches_of(80)},
         (sagemaker.tanh_saturated(60.0), fourth.raised(300.0, 120))),
    Task("fruits_coded", "autoencoder", fruits_coded, {"batches": w.batches_of(64)},
         (fourth.nan_gradient("2", 80), setup.oscillating(40.0))),
    Task("clouds_cleaned", "autoencoder", clouds_cleaned, {"nadam": w.by("NAdam", 3e-3)},
         (fifth_tables.normal_weights(1.0), silent.never_stepped())),
    Task("bottles_varied", "autoencoder", bottles_varied, {"batches": w.batches_of(80)},
         (third.heavy_divergence(60.0), third.empty_weights("decode.0"))),
    Task("roofs_sharpened", "autoencoder", roofs_sharpened, {"nadam": w.by("NAdam", 2e-3)},
         (third.shrunk_inputs(0.004), silent.left_out("body.2"))),
)  # fmt: skip
