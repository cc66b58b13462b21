"""Held-out programs on pictures."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import sagemaker, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.held import data
from benchmarks.detection.programs.held.networks import PatchReader, denoiser, separable, strided
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def textures_strided(seed: int) -> Recipe:
    return Recipe(
        strided(12, 1), *data.textures(), nn.BCEWithLogitsLoss(),
        lambda told, wanted: float(((told > 0) == (wanted > 0.5)).float().mean()),
        compare=lambda out, x, y: (out[:, 0], y), steps=140, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip


def patches_denoiser(seed: int) -> Recipe:
    return Recipe(
        denoiser(), *data.noisy_patches(), nn.MSELoss(), fit_of, steps=150,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3),
    )  # fmt: skip


def digits_patches(seed: int) -> Recipe:
    return Recipe(
        PatchReader(10), *data.digits(), steps=130, schedule=lambda step: min(1.0, (step + 1) / 20),
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip


def digits_separable(seed: int) -> Recipe:
    return Recipe(separable(10), *data.digits(), steps=120, optimizer=lambda p: torch.optim.RMSprop(p, 2e-3))


TASKS = (
    Task("textures_strided", "convolution", textures_strided, {"clipped": v.clipped},
         (sagemaker.raw_pixels(), silent.left_out("3"), silent.no_zero_grad(),
          setup.inputs_constant(50))),
    Task("patches_denoiser", "autoencoder", patches_denoiser, {"bf16": v.bf16},
         (sagemaker.dead_units("2"), silent.detached("2"), sagemaker.not_a_number("4", 60))),
    Task("digits_patches", "transformer", digits_patches, {"clipped": v.clipped},
         (setup.oscillating(100.0), silent.stale_optimizer("head"), setup.shuffled_labels(),
          silent.never_stepped(0.0))),
    Task("digits_separable", "convolution", digits_separable, {"smoothed": v.smoothed},
         (silent.never_eval(), setup.redundant_softmax("9"), sagemaker.classes_confused(1, 7),
          silent.workers_alike(3))),
)  # fmt: skip
