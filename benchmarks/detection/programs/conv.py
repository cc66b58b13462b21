"""Convolutional networks on digits and stripes."""

from __future__ import annotations

import torch

from benchmarks.detection.faults import sagemaker, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs import data
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.networks import Residual, cnn
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def digits_cnn(seed: int) -> Recipe:
    return Recipe(cnn(10, 8), *data.digits(True), steps=120)


def stripes_cnn(seed: int) -> Recipe:
    return Recipe(cnn(4, 12), *data.patterns(), steps=120)


def residual(seed: int) -> Recipe:
    return Recipe(Residual(), *data.digits(True), steps=120, optimizer=lambda p: torch.optim.Adam(p, 2e-3))


def stripes_norm(seed: int) -> Recipe:
    return Recipe(
        cnn(4, 12, 6, norm=True), *data.patterns(), steps=120, optimizer=lambda p: torch.optim.SGD(p, 0.05)
    )


TASKS = (
    Task("digits_cnn", "convolution", digits_cnn,
         {"sgd": v.sgd(0.03)},
         (sagemaker.dead_units("3"), sagemaker.raw_pixels(), sagemaker.output_zero("3"),
          setup.oscillating(60.0), silent.initialised_again("3"))),
    Task("stripes_cnn", "convolution", stripes_cnn,
         {"bf16": v.bf16},
         (sagemaker.raw_pixels(128.0, 40.0), sagemaker.rate_kills(20.0), sagemaker.tanh_saturated(),
          sagemaker.not_a_number("3", 50), silent.detached("3"), setup.redundant_softmax("6"))),
    Task("residual", "convolution", residual,
         {"warm_up": v.warm_up},
         (silent.left_in_eval(), silent.empty_buffer("blocks.0.1"), silent.left_out("blocks.1"))),
    Task("stripes_norm", "convolution", stripes_norm,
         {"clipped": v.clipped},
         (silent.never_eval(), silent.empty_buffer("1"), silent.left_in_eval())),
)  # fmt: skip
