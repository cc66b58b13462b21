"""Recurrent networks, and convolutions over words and in time, of the seventh set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, sagemaker, second, setup, silent
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Tags
from benchmarks.detection.programs.seventh import sequences_data as data
from benchmarks.detection.programs.seventh.attention_data import LETTERS, manual
from benchmarks.detection.programs.seventh.sequences_nets import Gated, Remembering, Scanning
from benchmarks.detection.programs.sixth.sequences_data import seasons
from benchmarks.detection.programs.sixth.sequences_nets import counted
from benchmarks.detection.recipe import Recipe, fit_of, mean_loss

__all__ = ["TASKS"]


def exercises_told(seed: int) -> Recipe:
    recipe = Recipe(
        Remembering("GRU", 3, 7, tells="weighed", drop=0.2), *data.moves(7, 3, 30, 701, noise=0.9), batch=64,
        steps=180, clip=2.0, optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def tanks_followed(seed: int) -> Recipe:
    recipe = Recipe(
        Remembering("LSTM", 1, 1, tells="each", act=nn.Tanh), *data.tanks(32, 702), nn.MSELoss(), fit_of,
        batch=40, steps=200, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def shelves_stocked(seed: int) -> Recipe:
    return Recipe(
        Remembering("GRU", 3, 4, 28, drop=0.1), *data.shops(20, 4, 703, counts=True), nn.PoissonNLLLoss(),
        counted, batch=64, steps=180, clip=10.0, optimizer=lambda p: torch.optim.Adam(p, 8e-3),
        schedule=lambda step: 0.987**step,
    )  # fmt: skip


def code_coloured(seed: int) -> Recipe:
    recipe = Recipe(
        Remembering("LSTM", 24, 7, 40, words=128, tells="each", both=True, drop=0.1), *data.code(), batch=32,
        steps=180, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.01),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


def slots_filled(seed: int) -> Recipe:
    x, slots, _ = data.requests(705)
    return Recipe(
        Remembering("GRU", 16, data.SLOTS, 24, words=70, tells="each", both=True, drop=0.2),
        *split(x, torch.where(x > 0, slots, -100), seed=705), Tags(), Tags.score, batch=48, steps=160,
        optimizer=lambda p: torch.optim.Adam(p, 5e-3), schedule=lambda step: 0.985**step,
    )  # fmt: skip


def manual_typed(seed: int) -> Recipe:
    recipe = Recipe(
        Remembering("GRU", 24, len(LETTERS), 56, words=len(LETTERS), tells="each"), *manual("cluster", 24),
        score=mean_loss, batch=24, steps=220, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 1e-2),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def tickets_sorted(seed: int) -> Recipe:
    return Recipe(
        Remembering("LSTM", 24, 5, 28, words=202, tells="mean", both=True, drop=0.3),
        *data.tickets(5, 200, 20, 707), batch=40, steps=140, optimizer=lambda p: torch.optim.NAdam(p, 4e-3),
        schedule=lambda step: 0.985**step,
    )  # fmt: skip


def loads_foreseen(seed: int) -> Recipe:
    recipe = Recipe(
        Remembering("GRU", 3, 6, 28, layers=2, drop=0.1), *seasons(28, 6, (20.0, 33.0), 708), nn.HuberLoss(),
        fit_of, batch=50, steps=180, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def promoters_scanned(seed: int) -> Recipe:
    recipe = Recipe(
        Scanning(5, 4, 8, 24, (5, 7, 9)), *data.promoters(44, 709), batch=50, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def tanks_scanned(seed: int) -> Recipe:
    return Recipe(
        Gated(1, 1), *data.tanks(40, 710), nn.SmoothL1Loss(), fit_of, batch=40, steps=180, clip=1.0,
        optimizer=lambda p: torch.optim.Adam(p, 2.5e-3), schedule=lambda step: 0.987**step,
    )  # fmt: skip


TASKS = (
    Task("exercises_told", "recurrent", exercises_told, {"nadam": w.by("NAdam", 4e-3)},
         (fifth.gap_marked(1, 0.2), second.zeroed_before_step())),
    Task("tanks_followed", "recurrent", tanks_followed, {"smaller_batches": w.batches_of(24)},
         (fourth.raised(100.0, 80), fifth.unshuffled(26))),
    Task("shelves_stocked", "recurrent", shelves_stocked, {"nadam": w.by("NAdam", 6e-3)},
         (fourth.tanh_output("head"), silent.no_zero_grad())),
    Task("code_coloured", "recurrent", code_coloured, {"nadam": w.by("NAdam", 4e-3)},
         (fourth.other_rows(), silent.left_in_eval())),
    Task("slots_filled", "recurrent", slots_filled, {"adamax": w.by("Adamax", 1.5e-2)},
         (sagemaker.padded(0.85), fifth.embedding_anew("embed"))),
    Task("manual_typed", "recurrent", manual_typed, {"rmsprop": w.by("RMSprop", 4e-3)},
         (setup.oscillating(40.0), silent.workers_alike(4))),
    Task("tickets_sorted", "recurrent", tickets_sorted, {"dropped": w.dropped(0.4)},
         (sagemaker.classes_confused(1, 3), second.set_back(100))),
    Task("loads_foreseen", "recurrent", loads_foreseen, {"nadam": w.by("NAdam", 4e-3)},
         (sixth.missing_targets(), silent.never_stepped())),
    Task("promoters_scanned", "convolution", promoters_scanned, {"nadam": w.by("NAdam", 4e-3)},
         (sagemaker.unbalanced(0.96), silent.stuck_loader(70))),
    Task("tanks_scanned", "convolution", tanks_scanned, {"bf16": w.bf16},
         (sixth.log_of_nothing(), fourth.without_gradient("stem"))),
)  # fmt: skip
