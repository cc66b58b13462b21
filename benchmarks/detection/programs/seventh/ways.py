"""Mixed precision, gradients of several batches, optimizers and questions, in the seventh set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fifth_tables as tables
from benchmarks.detection.faults import fourth, sagemaker, setup, silent, third
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.faults import sixth_tables as unread
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.seventh import sequences_data as data
from benchmarks.detection.programs.seventh.attention_data import columns, scenes
from benchmarks.detection.programs.seventh.attention_nets import Columns, Headed, Sorted
from benchmarks.detection.programs.seventh.sequences_nets import Remembering
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.pairs_nets import curves
from benchmarks.detection.programs.sixth.sequences_data import across
from benchmarks.detection.programs.sixth.ways_precision import Halved
from benchmarks.detection.programs.sixth.ways_tasks import _by_two
from benchmarks.detection.recipe import Recipe, accuracy, balanced_accuracy, fit_of

__all__ = ["TASKS"]


def gaits_told(seed: int) -> Recipe:
    recipe = Recipe(
        curves(4, 36, 6), *across(data.moves(6, 4, 36, 741, noise=1.5)), batch=48, steps=150, autocast=True,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.05),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def surveys_sorted(seed: int) -> Recipe:
    recipe = Recipe(
        Headed(Columns(8, 24), 3, 8, 24, 3, 1, 0.05), *columns(8, 742, 5000, 3), batch=80, steps=200,
        autocast=True, optimizer=lambda p: torch.optim.Adam(p, 5e-3, betas=(0.9, 0.98)),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def surveys_halved(seed: int) -> Recipe:
    body = nn.Sequential(nn.Linear(7, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
    recipe = Recipe(
        Halved(body, 64, 1), *columns(7, 743, 4000), nn.HuberLoss(), fit_of, batch=64, steps=240,
        scaler={"init_scale": 2.0**13, "growth_interval": 100},
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def scenes_halved(seed: int) -> Recipe:
    body = nn.Sequential(
        nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 20, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    )  # fmt: skip
    return Recipe(
        Halved(body, 320, 5), *scenes(5, 744, noise=0.9), batch=40, steps=130, clip=1.0,
        scaler={"init_scale": 2.0**12, "growth_interval": 80},
        optimizer=lambda p: torch.optim.Adam(p, 2.5e-3, weight_decay=1e-3), schedule=lambda step: 0.98**step,
    )  # fmt: skip


def shops_gathered(seed: int) -> Recipe:
    return Recipe(
        Remembering("LSTM", 3, 3, 28, tells="weighed", drop=0.1), *data.shops(16, 3, 745), nn.MSELoss(),
        fit_of, batch=16, steps=140, accumulate=4, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 3e-3),
        schedule=lambda step: 0.985**step,
    )  # fmt: skip


def tickets_gathered(seed: int) -> Recipe:
    recipe = Recipe(
        Sorted(182, 4, 18), *data.tickets(4, 180, 18, 746, 2400, clear=0.25, rare=(1, 3)),
        nn.CrossEntropyLoss(torch.tensor([0.3, 1.7, 0.3, 1.7])), balanced_accuracy, batch=20, steps=120,
        accumulate=3, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(12)(recipe)
    return recipe


def callers_routed(seed: int) -> Recipe:
    """The recurrent layer by RMSprop, all else by AdamW."""
    x, _, wanted = data.requests(747, 2000)
    return Recipe(
        Remembering("GRU", 20, 4, 28, words=70, tells="mean", drop=0.2), *split(x, wanted, seed=747),
        batch=40, steps=160, by_hand=_by_two,
        options={"layer": "rnn", "own": lambda p: torch.optim.RMSprop(p, 2e-3)},
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip


def surveys_split(seed: int) -> Recipe:
    """The last layer by SGD, all else by Adam."""
    return Recipe(
        stack((10, 64, 48, 3), nn.ReLU), *columns(10, 748, 4000, 3), batch=64, steps=240, by_hand=_by_two,
        options={"layer": "4", "own": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9)},
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip


class Understanding(nn.Module):
    """A GRU over words, one head for what is wanted (4) and one for each word's slot, side by side."""

    def __init__(self, width: int = 28) -> None:
        super().__init__()
        self.embed, self.drop = nn.Embedding(70, 20, padding_idx=0), nn.Dropout(0.1)
        self.rnn = nn.GRU(20, width, batch_first=True, bidirectional=True)
        self.wanted, self.slots = nn.Linear(2 * width, 4), nn.Linear(2 * width, data.SLOTS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.drop(self.rnn(self.embed(x))[0])
        return torch.cat([self.wanted(h.amax(1)), self.slots(h).flatten(1)], 1)


class Understood(nn.Module):
    """Cross-entropy of what is wanted (the first target) and of each word's slot (those behind it)."""

    def forward(self, told: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        slots = told[:, 4:].unflatten(1, (-1, data.SLOTS)).transpose(1, 2)
        return nn.functional.cross_entropy(told[:, :4], right[:, 0]) + nn.functional.cross_entropy(
            slots, right[:, 1:], ignore_index=-100
        )

    @staticmethod
    def score(told: torch.Tensor, right: torch.Tensor) -> float:
        """Mean of both shares told rightly."""
        best, there = told[:, 4:].unflatten(1, (-1, data.SLOTS)).argmax(2), right[:, 1:] >= 0
        slots = float((best == right[:, 1:])[there].float().mean())
        return (accuracy(told[:, :4], right[:, 0]) + slots) / 2


def requests_understood(seed: int) -> Recipe:
    x, slots, wanted = data.requests(749)
    right = torch.cat([wanted[:, None], torch.where(x > 0, slots, -100)], 1)
    recipe = Recipe(
        Understanding(), *split(x, right, seed=749), Understood(), Understood.score, batch=48, steps=160,
        optimizer=lambda p: torch.optim.Adam(p, 5e-3),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def surveys_twice(seed: int) -> Recipe:
    """One number of a survey, and another that hangs on other pairs of its columns."""
    (x, one), (held_x, held_one) = columns(8, 750, 5000)
    both = [torch.cat([told, (rows[:, :1] * rows[:, 1:2] + told).tanh()], 1)
            for rows, told in ((x, one), (held_x, held_one))]  # fmt: skip
    recipe = Recipe(
        stack((8, 64, 64, 2), nn.Mish), (x, both[0]), (held_x, both[1]), nn.MSELoss(), fit_of, batch=128,
        steps=260, optimizer=lambda p: torch.optim.AdamW(p, 1.2e-2, weight_decay=0.01),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("gaits_told", "mixed precision", gaits_told, {"larger_batches": w.batches_of(72)},
         (setup.missing_softmax(), silent.never_stepped())),
    Task("surveys_sorted", "mixed precision", surveys_sorted, {"nadam": w.by("NAdam", 4e-3)},
         (fifth.softmax_kept("head"), fourth.older_loaded(30, 120))),
    Task("surveys_halved", "mixed precision", surveys_halved, {"nadam": w.by("NAdam", 4e-3)},
         (silent.scaler_stuck(), tables.in_raw_units(400.0, 3000.0))),
    Task("scenes_halved", "mixed precision", scenes_halved, {"adamw": w.by("AdamW", 2e-3, weight_decay=0.05)},
         (fourth.half_overflow("mix", 70), setup.symmetric())),
    Task("shops_gathered", "accumulation", shops_gathered, {"larger_batches": w.batches_of(24)},
         (third.discarded_batches(), fifth.raw_readings(900.0, 400.0))),
    Task("tickets_gathered", "accumulation", tickets_gathered, {"dropped": w.dropped(0.2)},
         (unread.weights_upside_down(), sagemaker.overfit(60, 200, 0.1))),
    Task("callers_routed", "several optimizers", callers_routed, {"larger_batches": w.batches_of(56)},
         (sixth.never_stepped_one("rnn", "rest"), sixth.gates_closed())),
    Task("surveys_split", "several optimizers", surveys_split, {"nadam": w.by("NAdam", 3e-3)},
         (sagemaker.deep_sigmoid(6), sagemaker.tanh_saturated())),
    Task("requests_understood", "multi-task", requests_understood, {"clipped": w.clipped(0.5)},
         (fourth.forgotten("slots", slice(4, 88)), fifth.zero_start("wanted"))),
    Task("surveys_twice", "multi-task", surveys_twice, {"larger_batches": w.batches_of(192)},
         (setup.squashed_output("4"), fourth.ended_early(20))),
)  # fmt: skip
