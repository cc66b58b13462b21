"""Recurrent networks and residual convolutions in time, of the eighth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, held, second, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.eighth import sequences_data as data
from benchmarks.detection.programs.eighth.sequences_nets import Dilated, Normed
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Tags, Yes
from benchmarks.detection.programs.sixth.sequences_nets import counted
from benchmarks.detection.recipe import Recipe, fit_of, mean_loss

__all__ = ["TASKS"]


def hums_named(seed: int) -> Recipe:
    x, kind, _ = data.hums(6, 2, 40, 801)
    recipe = Recipe(
        Normed("GRU", 2, 6, 24, both=True, drop=0.1), *split(x, kind, seed=801), batch=48, steps=200,
        clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def sugar_foreseen(seed: int) -> Recipe:
    recipe = Recipe(
        Normed("LSTM", 3, 4, 32, tells="last"), *data.sugar(24, 4, 802), nn.HuberLoss(), fit_of, batch=64,
        steps=120, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 5e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def words_classed(seed: int) -> Recipe:
    x, tags, _ = data.spoken(6, 90, 16, 803)
    return Recipe(
        Normed("LSTM", 24, 7, 28, words=92, tells="classes", both=True, drop=0.2),
        *split(x, torch.where(x > 0, tags, -100), seed=803), Tags(), Tags.score, batch=40, steps=180,
        clip=5.0, optimizer=lambda p: torch.optim.Adam(p, 5e-3), schedule=lambda step: 0.985**step,
    )  # fmt: skip


def sessions_bought(seed: int) -> Recipe:
    recipe = Recipe(
        Normed("GRU", 16, 1, 28, words=41, tells="last", drop=0.2), *data.sessions(40, 20, 804),
        nn.BCEWithLogitsLoss(), Yes.ranked, batch=64, steps=160,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def calls_counted(seed: int) -> Recipe:
    recipe = Recipe(
        Normed("GRU", 3, 1, 28, tells="each"), *data.calls(28, 805), nn.PoissonNLLLoss(), counted, batch=40,
        steps=140, clip=2.0, optimizer=lambda p: torch.optim.RMSprop(p, 2e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def code_typed(seed: int) -> Recipe:
    letters = len(data.CHARACTERS)
    recipe = Recipe(
        Normed("LSTM", 32, letters, 64, words=letters, tells="classes"), *data.source("statistics", 24),
        score=mean_loss, batch=32, steps=220, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.01),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


def stages_marked(seed: int) -> Recipe:
    recipe = Recipe(
        Dilated(3, 5, 24), *data.stages(5, 3, 60, 807), batch=24, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def hums_pitched(seed: int) -> Recipe:
    x, _, pitch = data.hums(8, 2, 48, 808)
    return Recipe(
        Dilated(2, 1, 20, each=False), *split(x, pitch, seed=808), nn.MSELoss(), fit_of, batch=48, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3), schedule=lambda step: 0.985**step,
    )  # fmt: skip


TASKS = (
    Task("hums_named", "recurrent", hums_named, {"nadam": w.by("NAdam", 3e-3)},
         (setup.symmetric(), silent.skipped(70))),
    Task("sugar_foreseen", "recurrent", sugar_foreseen, {"larger_batches": w.batches_of(96)},
         (fifth.raw_readings(140.0, 45.0), silent.left_out("rnn"))),
    Task("words_classed", "recurrent", words_classed, {"adamax": w.by("Adamax", 1.2e-2)},
         (held.unknown_words(0.95), silent.initialised_again("head", 110))),
    Task("sessions_bought", "recurrent", sessions_bought, {"dropped": w.dropped(0.3)},
         (third.softmax_of_one("head"), silent.workers_alike(4))),
    Task("calls_counted", "recurrent", calls_counted, {"adam": w.by("Adam", 4e-3)},
         (setup.squashed_output("head"), fifth.unshuffled(28))),
    Task("code_typed", "recurrent", code_typed, {"clipped": w.clipped(0.5)},
         (fifth.softmax_kept("head"), second.zeroed_before_step())),
    Task("stages_marked", "convolution", stages_marked, {"nadam": w.by("NAdam", 3e-3)},
         (setup.missing_softmax(), silent.never_stepped())),
    Task("hums_pitched", "convolution", hums_pitched, {"smaller_batches": w.batches_of(32)},
         (fourth.other_rows(), silent.detached("stem"))),
)  # fmt: skip
