"""Pictures of the seventh set: told apart, measured, outlined, and drawn again from a code."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.pictures import Inked
from benchmarks.detection.programs.fifth.pictures_nets import VariationalConv
from benchmarks.detection.programs.fifth.tables import area, half_cosine
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.seventh import pictures_data as data
from benchmarks.detection.programs.seventh import tables_data
from benchmarks.detection.programs.seventh.nets import Branches, Outline, Squeezed, upsampling
from benchmarks.detection.programs.sixth.nets import convs, stack
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS", "spectra_coded", "stamps_plain", "weaves_named"]


def stamps_sorted(seed: int) -> Recipe:
    return Recipe(
        Squeezed(3, 7), *data.stamps(751, 7, 2600, 3, 2.8), batch=48, steps=120,
        schedule=half_cosine(120, 10), optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip


def weaves_named(seed: int) -> Recipe:
    return Recipe(
        Branches(1, 4), *data.weaves(752), batch=40, steps=140, schedule=half_cosine(140),
        optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip


def moons_measured(seed: int) -> Recipe:
    model = nn.Sequential(convs((1, 12, 20), 32, nn.ELU, hidden=40), nn.ELU(), nn.Linear(32, 2))
    return Recipe(
        model, *data.moons(753), nn.MSELoss(), fit_of, batch=48, steps=180, schedule=half_cosine(180, 15),
        optimizer=lambda p: torch.optim.NAdam(p, 2e-3),
    )  # fmt: skip


def outline_score(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """What both call land, by what one of them does."""
    told, wanted = told.float() > 0, wanted > 0.5
    return float((told & wanted).sum() / (told | wanted).sum().clamp(min=1))


def islands_outlined(seed: int) -> Recipe:
    return Recipe(
        Outline(1, 1), *data.islands(754), nn.BCEWithLogitsLoss(), outline_score, batch=32, steps=120,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3), schedule=half_cosine(120, 10),
    )  # fmt: skip


def stamps_plain(seed: int) -> Recipe:
    recipe = Recipe(
        convs((1, 12, 24), 8, nn.SiLU, hidden=56), *data.stamps(755, 8, noise=1.6), batch=50, steps=180,
        optimizer=lambda p: torch.optim.SGD(p, 0.04, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip
    ways.stepped(recipe)
    return recipe


def things_seen(seed: int) -> Recipe:
    return Recipe(
        convs((1, 16, 32, 32), 5, nn.ReLU, nn.BatchNorm2d), *data.things(756, 4000),
        nn.BCEWithLogitsLoss(), area, batch=40, steps=180, schedule=half_cosine(180),
        optimizer=lambda p: torch.optim.RMSprop(p, 2e-3),
    )  # fmt: skip


def by_itself(found: data.Split) -> data.Split:
    """What is read is to be told again."""
    return tuple((x, x) for x, _ in found)


def spectra_coded(seed: int) -> Recipe:
    return Recipe(
        stack((64, 72, 12, 72, 64), nn.ReLU), *by_itself(tables_data.spectra(761)), nn.MSELoss(), fit_of,
        batch=50, steps=260, optimizer=lambda p: torch.optim.Adam(p, 4e-3), schedule=half_cosine(260, 10),
    )  # fmt: skip


def moons_coded(seed: int) -> Recipe:
    return Recipe(
        upsampling(6, 8), *data.alone("moons", 762), nn.SmoothL1Loss(beta=0.2), fit_of, batch=50, steps=200,
        schedule=half_cosine(200, 10), optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.01),
    )  # fmt: skip


def weaves_mended(seed: int) -> Recipe:
    return Recipe(
        upsampling(10), *data.holed(763), nn.L1Loss(), fit_of, batch=36, steps=180,
        optimizer=lambda p: torch.optim.Adamax(p, 8e-3), schedule=half_cosine(180),
    )  # fmt: skip


def moons_varied(seed: int) -> Recipe:
    return Recipe(
        VariationalConv(5, 8), *data.alone("moons", 764), Inked(0.002), Inked.score, batch=48, steps=240,
        clip=5.0, optimizer=lambda p: torch.optim.AdamW(p, 1.2e-2, weight_decay=0.01),
        schedule=half_cosine(240, 15),
    )  # fmt: skip


TASKS = (
    Task("stamps_sorted", "convolution", stamps_sorted, {"momentum": w.by("SGD", 0.05, momentum=0.9)},
         (setup.redundant_softmax("head"), silent.never_eval())),
    Task("weaves_named", "convolution", weaves_named, {"bf16": v.bf16},
         (sagemaker.raw_pixels(), silent.workers_alike(4))),
    Task("moons_measured", "convolution", moons_measured, {"batches": ways.batches_of(32)},
         (setup.squashed_output("2"), fourth.nan_gradient("0", 70))),
    Task("islands_outlined", "convolution", islands_outlined, {"adamw": v.adamw(4e-3, 0.05)},
         (second.bytes_for_shares(), fourth.without_gradient("far"))),
    Task("stamps_plain", "convolution", stamps_plain, {"adam": w.by("Adam", 2e-3)},
         (fifth.divided_twice(), third.warm_up_for_ever())),
    Task("things_seen", "convolution", things_seen, {"batches": ways.batches_of(60)},
         (fifth.times_hundred(), silent.stale_optimizer("14"))),
    Task("spectra_coded", "autoencoder", spectra_coded, {"radam": w.by("RAdam", 1.5e-2)},
         (fifth.normal_weights(1.0), silent.scaler_stuck())),
    Task("moons_coded", "autoencoder", moons_coded, {"batches": ways.batches_of(80)},
         (fourth.mostly_dead("6", 0.9, 80), fourth.average_left(90))),
    Task("weaves_mended", "autoencoder", weaves_mended, {"clipped": ways.clipped(1.0)},
         (sagemaker.output_zero("4", 80), held.momentum_wild(0.5))),
    Task("moons_varied", "autoencoder", moons_varied, {"one_cycle": ways.one_cycle},
         (third.heavy_divergence(30.0), fourth.ended_early(15))),
)  # fmt: skip
