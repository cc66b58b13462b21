"""Pictures of the eleventh set: told apart, screened, posed, outlined, coded, cleaned, coloured."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fourth, sagemaker, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.eleventh import pictures_data as data
from benchmarks.detection.programs.eleventh import pictures_nets as nets
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.pictures import Inked
from benchmarks.detection.programs.fifth.pictures_nets import Deeper, VariationalInk
from benchmarks.detection.programs.second.tables import right
from benchmarks.detection.programs.seventh.nets import Outline
from benchmarks.detection.programs.seventh.pictures import outline_score
from benchmarks.detection.programs.sixth.pictures import flat
from benchmarks.detection.programs.tenth.pictures_nets import dilated
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def lesions_graded(seed: int) -> Recipe:
    recipe = Recipe(
        nets.looks((3, 12, 24), 5, nn.ReLU, nn.BatchNorm2d, 0.1), *data.lesions(1101), batch=48, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


def keywords_spotted(seed: int) -> Recipe:
    recipe = Recipe(
        Deeper(7, 1), *data.keywords(1102), nn.CrossEntropyLoss(label_smoothing=0.05), batch=64,
        steps=180, optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=5e-4),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def lungs_screened(seed: int) -> Recipe:
    recipe = Recipe(
        nets.looks((1, 12, 20), 1, nn.SiLU, nn.BatchNorm2d), *data.lungs(1103), nn.BCEWithLogitsLoss(),
        right, batch=50, steps=200, optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def arms_posed(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Pointed(2), *data.arms(1104), nn.SmoothL1Loss(beta=0.2), fit_of, batch=40, steps=220,
        clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.01),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def nuclei_outlined(seed: int) -> Recipe:
    recipe = Recipe(
        dilated(12), *data.nuclei(1105), nn.BCEWithLogitsLoss(), outline_score, batch=30, steps=160,
        optimizer=lambda p: torch.optim.NAdam(p, 6e-3),
    )  # fmt: skip
    w.stepped(recipe)
    return recipe


def fields_mapped(seed: int) -> Recipe:
    recipe = Recipe(
        nets.looks((3, 12, 24), 6, nn.GELU, drop=0.1), *data.fields(1106), batch=60, steps=220,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def lungs_coded(seed: int) -> Recipe:
    recipe = Recipe(
        nets.narrowed(1, 10, 16), *data.by_themselves("lungs", 1107), nn.MSELoss(), fit_of, batch=50,
        steps=240, optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


def keywords_cleaned(seed: int) -> Recipe:
    recipe = Recipe(
        Outline(1, 1, 12), *data.keywords_cleaned(1108), nn.MSELoss(), fit_of, batch=32, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.02),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def arms_varied(seed: int) -> Recipe:
    recipe = Recipe(
        VariationalInk(8, 128), *flat(data.by_themselves("arms", 1109)), Inked(0.002), Inked.score,
        batch=56, steps=260, clip=5.0, optimizer=lambda p: torch.optim.Adam(p, 5e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def lesions_coloured(seed: int) -> Recipe:
    recipe = Recipe(
        Outline(1, 3, 12), *data.coloured(1110), nn.L1Loss(), fit_of, batch=40, steps=200,
        optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("lesions_graded", "convolution", lesions_graded, {"batches": w.batches_of(64)},
         (sagemaker.classes_confused(1, 4), silent.never_eval())),
    Task("keywords_spotted", "convolution", keywords_spotted, {"adamw": v.adamw(5e-3, 0.05)},
         (fourth.decay_too_strong(5e-3, 50.0), silent.workers_alike(4))),
    Task("lungs_screened", "convolution", lungs_screened, {"bf16": v.bf16},
         (third.labels_one_two(), silent.empty_buffer("1"))),
    Task("arms_posed", "convolution", arms_posed, {"nadam": w.by("NAdam", 4e-3)},
         (fourth.nan_gradient("body.3", 70), silent.initialised_again("body.6", 120))),
    Task("nuclei_outlined", "convolution", nuclei_outlined, {"batches": w.batches_of(40)},
         (setup.constant_output("12"), silent.no_zero_grad())),
    Task("fields_mapped", "convolution", fields_mapped, {"rmsprop": w.by("RMSprop", 1.5e-3)},
         (sagemaker.raw_pixels(), silent.left_in_eval())),
    Task("lungs_coded", "autoencoder", lungs_coded, {"batches": w.batches_of(64)},
         (fourth.mostly_dead("6", 0.95, 90), silent.left_out("9"))),
    Task("keywords_cleaned", "autoencoder", keywords_cleaned, {"nadam": w.by("NAdam", 4e-3)},
         (sagemaker.rate_tiny(1e-4), fourth.without_gradient("far"))),
    Task("arms_varied", "autoencoder", arms_varied, {"adamw": v.adamw(5e-3, 0.02)},
         (third.heavy_divergence(0.4), silent.scaler_stuck())),
    Task("lesions_coloured", "autoencoder", lesions_coloured, {"batches": w.batches_of(56)},
         (setup.oscillating(100.0), silent.never_stepped())),
)  # fmt: skip
