"""Pictures of the twelfth set: told apart, looked for, measured, outlined, cleaned and varied."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import (
    eighth_sequences,
    fifth_tables,
    fourth,
    sagemaker,
    second,
    setup,
    seventh_tables,
    silent,
)
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.eleventh.pictures_nets import looks
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.pictures import Inked
from benchmarks.detection.programs.fifth.pictures_nets import VariationalInk
from benchmarks.detection.programs.second.tables import right
from benchmarks.detection.programs.seventh.nets import Outline
from benchmarks.detection.programs.seventh.pictures import outline_score
from benchmarks.detection.programs.sixth.nets import separable
from benchmarks.detection.programs.twelfth import pictures_data as data
from benchmarks.detection.programs.twelfth import pictures_nets as nets
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def tracks_identified(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Squeezed(1, 5), *data.tracks(1201), batch=48, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.03),
    )  # fmt: skip
    w.warm_cosine(40)(recipe)
    return recipe


def timbers_named(seed: int) -> Recipe:
    recipe = Recipe(
        separable(3, 4, 16), *data.timbers(1202), nn.CrossEntropyLoss(label_smoothing=0.03), batch=40,
        steps=200,
        optimizer=lambda p: torch.optim.SGD(p, 0.04, momentum=0.9, weight_decay=3e-4, nesterov=True),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def ships_spotted(seed: int) -> Recipe:
    recipe = Recipe(
        nets.halving((1, 16, 32), 1, nn.ReLU, 32), *data.ships(1203), nn.BCEWithLogitsLoss(), right,
        batch=64, steps=200, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def glasses_gauged(seed: int) -> Recipe:
    recipe = Recipe(
        nets.halving((1, 12, 24), 2, nn.SiLU, 40), *data.glasses(1204), nn.HuberLoss(), fit_of, batch=48,
        steps=200, optimizer=lambda p: torch.optim.NAdam(p, 2e-3),
    )  # fmt: skip
    w.stepped(recipe)
    return recipe


def roads_traced(seed: int) -> Recipe:
    recipe = Recipe(
        Outline(1, 1, 12), *data.roads(1205), nn.BCEWithLogitsLoss(), outline_score, batch=36, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.01),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def beads_sorted(seed: int) -> Recipe:
    recipe = Recipe(
        looks((3, 14, 28), 6, nn.ELU, nn.BatchNorm2d), *data.beads(1206), batch=56, steps=180,
        optimizer=lambda p: torch.optim.RMSprop(p, 2e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def timbers_cleaned(seed: int) -> Recipe:
    recipe = Recipe(
        nets.cleaning(3), *data.timbers_cleaned(1207), nn.MSELoss(), fit_of, batch=32, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


def tracks_varied(seed: int) -> Recipe:
    recipe = Recipe(
        VariationalInk(7, 112), *data.tracks_drawn(1208), Inked(0.001), Inked.score, batch=64, steps=320,
        optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.01),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("tracks_identified", "convolution", tracks_identified, {"batches": w.batches_of(64)},
         (fourth.half_overflow("second.look", 80), silent.never_stepped())),
    Task("timbers_named", "convolution", timbers_named, {"adamw": v.adamw(5e-3, 0.02)},
         (setup.shuffled_labels(), silent.stuck_loader(50))),
    Task("ships_spotted", "convolution", ships_spotted, {"bf16": v.bf16},
         (seventh_tables.answers_unknown(), fourth.mostly_dead("7", 0.95, 100))),
    Task("glasses_gauged", "convolution", glasses_gauged, {"batches": w.batches_of(64)},
         (fourth.tanh_output("9"), silent.detached("3"))),
    Task("roads_traced", "convolution", roads_traced, {"nadam": w.by("NAdam", 5e-3)},
         (second.bytes_for_shares(), second.set_back(110))),
    Task("beads_sorted", "convolution", beads_sorted, {"adam": w.by("Adam", 4e-3)},
         (fifth_tables.own_logarithm(), eighth_sequences.part_in_eval("1"))),
    Task("timbers_cleaned", "autoencoder", timbers_cleaned, {"batches": w.batches_of(48)},
         (sagemaker.output_zero("2", 90), silent.no_zero_grad())),
    Task("tracks_varied", "autoencoder", tracks_varied, {"nadam": w.by("NAdam", 5e-3)},
         (fourth.raised(300.0, 140), fourth.without_gradient("mean"))),
)  # fmt: skip
