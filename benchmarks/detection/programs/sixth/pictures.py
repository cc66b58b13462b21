"""Pictures of the sixth set: told apart, and drawn again from a code."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as unread
from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, sagemaker, second, setup, silent, third
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.pictures import Inked, ink_score
from benchmarks.detection.programs.fifth.pictures_nets import Looking, VariationalConv, VariationalInk
from benchmarks.detection.programs.fifth.tables import area, half_cosine
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.sixth import pictures_data as data
from benchmarks.detection.programs.sixth.nets import Nearby, conv_coder, convs, separable, stack
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS", "leaves_sorted", "signs_told"]


def signs_told(seed: int) -> Recipe:
    return Recipe(
        convs((3, 12, 24, 24), 6, nn.ReLU, nn.BatchNorm2d), *data.signs(631, (3, 4, 30), (0, 1)), batch=48,
        steps=120, schedule=half_cosine(120, 10),
        optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=5e-4),
    )  # fmt: skip


def leaves_sorted(seed: int) -> Recipe:
    return Recipe(
        convs((1, 12, 24), 5, nn.ReLU, hidden=48), *data.leaves(635), batch=40, steps=200,
        optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip


def galaxies_typed(seed: int) -> Recipe:
    return Recipe(
        separable(1, 4), *data.galaxies(), nn.CrossEntropyLoss(label_smoothing=0.05), batch=50, steps=160,
        schedule=half_cosine(160, 10), optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.05),
    )  # fmt: skip


def mirrored(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
    """A crack is a crack from all sides."""
    x = x.flip(2) if torch.rand(()) < 0.5 else x
    return (x.flip(3) if torch.rand(()) < 0.5 else x), y


def cracks_spotted(seed: int) -> Recipe:
    return Recipe(
        convs((1, 16, 24), 1, nn.SiLU, hidden=32), *data.cracks(),
        nn.BCEWithLogitsLoss(), area, batch=48, steps=180, on_batch=[mirrored],
        optimizer=lambda p: torch.optim.SGD(p, 0.03, momentum=0.9), schedule=half_cosine(180),
    )  # fmt: skip


def faces_read(seed: int) -> Recipe:
    return Recipe(
        Nearby(1, 4), *data.faces(), batch=48, steps=130, clip=1.0, schedule=half_cosine(130, 15),
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.1),
    )  # fmt: skip


def light_found(seed: int) -> Recipe:
    return Recipe(
        Looking(2, 8), *data.light(), nn.MSELoss(), fit_of, batch=48, steps=150,
        optimizer=lambda p: torch.optim.Adamax(p, 4e-3), schedule=half_cosine(150),
    )  # fmt: skip


def flat(found: data.Split) -> data.Split:
    """Rows of pixels."""
    return tuple((x.flatten(1), y.flatten(1)) for x, y in found)


def leaves_coded(seed: int) -> Recipe:
    return Recipe(
        stack((196, 160, 24, 160, 196), nn.LeakyReLU), *flat(data.by_themselves("leaves", 691)),
        nn.BCEWithLogitsLoss(), ink_score, batch=50, steps=240, schedule=half_cosine(240, 10),
        optimizer=lambda p: torch.optim.NAdam(p, 4e-3),
    )  # fmt: skip


def faces_cleaned(seed: int) -> Recipe:
    return Recipe(
        conv_coder(1), *data.cleaned(), nn.SmoothL1Loss(), fit_of, batch=40, steps=200,
        schedule=half_cosine(200, 10), optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.01),
    )  # fmt: skip


def faces_varied(seed: int) -> Recipe:
    return Recipe(
        VariationalInk(6, 128), *flat(data.by_themselves("faces", 693)), Inked(0.02), Inked.score, batch=60,
        steps=220, schedule=half_cosine(220), optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip


def galaxies_varied(seed: int) -> Recipe:
    return Recipe(
        VariationalConv(8, 10), *data.by_themselves("galaxies", 692), Inked(0.002), Inked.score, batch=50,
        steps=220, optimizer=lambda p: torch.optim.NAdam(p, 6e-3), schedule=half_cosine(220),
    )  # fmt: skip


TASKS = (
    Task("signs_told", "convolution", signs_told, {"adamw": v.adamw(4e-3, 0.05)},
         (sixth.truncated(), silent.empty_buffer("1"))),
    Task("leaves_sorted", "convolution", leaves_sorted, {"bf16": v.bf16},
         (fourth.mostly_dead("7", 0.9, 70), third.epsilon_large(2e-3, 10.0))),
    Task("galaxies_typed", "convolution", galaxies_typed, {"one_cycle": ways.one_cycle},
         (setup.redundant_softmax("18"), silent.left_in_eval())),
    Task("cracks_spotted", "convolution", cracks_spotted, {"adam": w.by("Adam", 2e-3)},
         (sagemaker.raw_pixels(), silent.workers_alike(4))),
    Task("faces_read", "convolution", faces_read, {"batches": ways.batches_of(32)},
         (setup.shuffled_labels(), fourth.without_gradient("blocks.1"))),
    Task("light_found", "convolution", light_found, {"larger_batches": w.larger_batches(2)},
         (setup.squashed_output("head"), fourth.nan_gradient("mix", 70))),
    Task("leaves_coded", "autoencoder", leaves_coded, {"batches": ways.batches_of(100)},
         (second.bytes_for_shares(), unread.zero_start("2", "4"))),
    Task("faces_cleaned", "autoencoder", faces_cleaned, {"batches": ways.batches_of(80)},
         (sagemaker.output_zero("5", 80), silent.stuck_loader(60))),
    Task("faces_varied", "autoencoder", faces_varied, {"one_cycle": ways.one_cycle},
         (third.heavy_divergence(30.0), setup.oscillating(60.0))),
    Task("galaxies_varied", "autoencoder", galaxies_varied, {"bf16": v.bf16},
         (fifth.l2_in_adam(4e-3, 1.0), silent.initialised_again("mean", 120))),
)  # fmt: skip
