"""Recurrent networks and convolutions in time of the sixth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.sixth import sequences_data as data
from benchmarks.detection.programs.sixth.sequences_nets import Pinball, Recurrent, Temporal, counted
from benchmarks.detection.recipe import Recipe, fit_of, mean_loss

__all__ = ["TASKS"]


def valves_told(seed: int) -> Recipe:
    recipe = Recipe(
        Recurrent("GRU", 4, 5, drop=0.2, mix=32), *data.systems(5, 4, 28, 601), batch=40, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def tides_ahead(seed: int) -> Recipe:
    recipe = Recipe(
        Recurrent("LSTM", 3, 8, 24, layers=2), *data.seasons(30, 8, (12.4, 24.0), 602), nn.MSELoss(), fit_of,
        batch=48, steps=180, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.01),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def states_tagged(seed: int) -> Recipe:
    return Recipe(
        Recurrent("LSTM", 20, 5, 24, both=True, words=42, tells="each", drop=0.2),
        *data.chains_tagged(5, 40, 20, 603), batch=40, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 8e-3), schedule=lambda step: 0.985**step,
    )  # fmt: skip


def melodies_next(seed: int) -> Recipe:
    x, _, _ = data.chains(14, 30, 25, 604, blur=0.02)
    (x, _), (held_x, _) = data.split(x, x, seed=604)
    return Recipe(
        Recurrent("GRU", 24, 32, 40, words=32, tells="each", drop=0.1),
        (x[:, :-1], x[:, 1:]), (held_x[:, :-1], held_x[:, 1:]), score=mean_loss, batch=32, steps=200,
        clip=0.5, optimizer=lambda p: torch.optim.RMSprop(p, 3e-3), schedule=lambda step: 0.99**step,
    )  # fmt: skip


def pulses_counted(seed: int) -> Recipe:
    recipe = Recipe(
        Recurrent("LSTM", 1, 1, both=True, tells="most", mix=24), *data.pulses(), nn.PoissonNLLLoss(),
        counted, batch=50, steps=240, clip=2.0, optimizer=lambda p: torch.optim.Adam(p, 8e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def chains_told(seed: int) -> Recipe:
    return Recipe(
        Recurrent("GRU", 24, 3, 28, both=True, words=32, tells="most", drop=0.3),
        *data.chains_told(5, 30, 30, 605, 3), batch=32, steps=180,
        optimizer=lambda p: torch.optim.NAdam(p, 5e-3), schedule=lambda step: 0.985**step,
    )  # fmt: skip


def weather_onward(seed: int) -> Recipe:
    recipe = Recipe(
        Recurrent("GRU", 3, 3, 40, tells="each", mix=40), *data.lorenz(), nn.SmoothL1Loss(), fit_of, batch=40,
        steps=170, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.01),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def loads_bounded(seed: int) -> Recipe:
    (x, y), (held_x, held_y) = data.seasons(24, 1, (24.0,), 606)
    return Recipe(
        Recurrent("GRU", 2, 3, 32, normed=True, mix=32), (x, y), (held_x, held_y), Pinball(), Pinball.score,
        batch=64, steps=180, optimizer=lambda p: torch.optim.Adam(p, 4e-3),
        schedule=lambda step: 0.985**step,
    )  # fmt: skip


def hearts_told(seed: int) -> Recipe:
    recipe = Recipe(
        Temporal(1, 4, 16), *data.beats(), batch=32, steps=140,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.02),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


def winds_ahead(seed: int) -> Recipe:
    return Recipe(
        Temporal(3, 4, 20, (1, 2, 4), "end"), *data.across(data.seasons(24, 4, (18.0, 48.0), 607)),
        nn.HuberLoss(), fit_of, batch=64, steps=180, schedule=lambda step: 0.985**step,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3, weight_decay=1e-5),
    )  # fmt: skip


TASKS = (
    Task("valves_told", "recurrent", valves_told, {"nadam": w.by("NAdam", 7e-3)},
         (sixth.gates_closed(), silent.left_in_eval())),
    Task("tides_ahead", "recurrent", tides_ahead, {"larger_batches": w.batches_of(80)},
         (fifth.raw_readings(1200.0, 300.0), silent.no_zero_grad())),
    Task("states_tagged", "recurrent", states_tagged, {"dropped": w.dropped(0.4)},
         (fourth.other_rows(), silent.detached("embed"))),
    Task("melodies_next", "recurrent", melodies_next, {"adam": w.by("Adam", 6e-3)},
         (held.clipped_away(), second.set_back(100))),
    Task("pulses_counted", "recurrent", pulses_counted, {"one_cycle": w.one_cycle},
         (fourth.ended_early(25), silent.never_stepped())),
    Task("chains_told", "recurrent", chains_told, {"clipped": w.clipped(1.0)},
         (held.unknown_words(0.96), setup.redundant_softmax("head"))),
    Task("weather_onward", "recurrent", weather_onward, {"adamax": w.by("Adamax", 8e-3)},
         (fourth.nan_gradient("mix", 80), silent.workers_alike(4))),
    Task("loads_bounded", "recurrent", loads_bounded, {"stepped": w.stepped},
         (sixth.stamps_raw(1), setup.diverging(300.0, 110))),
    Task("hearts_told", "convolution", hearts_told, {"nadam": w.by("NAdam", 3e-3)},
         (sagemaker.unbalanced(0.97), silent.stale_optimizer("head"))),
    Task("winds_ahead", "convolution", winds_ahead, {"bf16": w.bf16},
         (silent.stepped_too_often(), fourth.without_gradient("layers.0"))),
)  # fmt: skip
