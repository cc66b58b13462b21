"""Mixed precision and gradients of several batches, in the fifth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth import ways_data as data
from benchmarks.detection.programs.fifth.sequences_texts import opinions
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


class Hearing(nn.Module):
    """Two convolutions over frames, an LSTM, and the mean of all frames; the loss is given floats."""

    def __init__(self, bands: int, outputs: int, width: int = 32) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(bands, width, 3, 1, 1), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 3, 2, 1), nn.BatchNorm1d(width), nn.ReLU(),
        )  # fmt: skip
        self.rnn, self.drop = nn.LSTM(width, width, batch_first=True), nn.Dropout(0.2)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.rnn(self.front(x).transpose(1, 2))[0].mean(1)
        return self.head(self.drop(h)).float()


class Measuring(nn.Module):
    """Convolutions along a spectrum in half precision; amounts in full."""

    def __init__(self, outputs: int, width: int = 12) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, width, 7, 2, 3), nn.ELU(), nn.Conv1d(width, 2 * width, 5, 2, 2), nn.ELU(),
            nn.Flatten(), nn.Linear(48 * width, 48), nn.ELU(),
        )  # fmt: skip
        self.head = nn.Linear(48, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.float16):
            return self.head(self.body(x)).float()


class Liking(nn.Module):
    """Words, convolutions of two and three of them, the largest answers, and a class (KimCNN)."""

    def __init__(self, words: int, outputs: int, width: int = 24) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.two, self.three = nn.Conv1d(width, 32, 2), nn.Conv1d(width, 32, 3)
        self.relu, self.drop, self.head = nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x).transpose(1, 2)
        found = [self.relu(one(h)).amax(2) for one in (self.two, self.three)]
        return self.head(self.drop(torch.cat(found, 1)))


class Following(nn.Module):
    """A GRU over places, and where it leads."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.rnn, self.norm = nn.GRU(2, width, batch_first=True), nn.LayerNorm(width)
        self.mix, self.act, self.head = nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.act(self.mix(self.norm(self.rnn(x)[0][:, -1]))))


def keywords_heard(seed: int) -> Recipe:
    recipe = Recipe(
        Hearing(16, 6), *data.keywords(), batch=48, steps=180, autocast=True,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def spectra_measured(seed: int) -> Recipe:
    return Recipe(
        Measuring(3), *data.spectra(), nn.MSELoss(), fit_of, batch=48, steps=200, clip=5.0,
        scaler={"init_scale": 2.0**12, "growth_interval": 100},
        optimizer=lambda p: torch.optim.Adam(p, 2e-3), schedule=lambda step: 0.99**step,
    )  # fmt: skip


def full_precision(recipe: Recipe) -> None:
    """No mixed precision."""
    recipe.autocast = False


def opinions_gathered(seed: int) -> Recipe:
    return Recipe(
        Liking(100, 2), *opinions(), batch=16, steps=150, accumulate=4,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip


def tracks_gathered(seed: int) -> Recipe:
    recipe = Recipe(
        Following(), *data.tracks(), nn.SmoothL1Loss(), fit_of, batch=24, steps=140, accumulate=2, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.01),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


TASKS = (
    Task("keywords_heard", "mixed precision", keywords_heard, {"full_precision": full_precision},
         (silent.never_eval(), held.broken_rows(0.05, 60), fourth.decay_too_strong(4e-3, 200.0))),
    Task("spectra_measured", "mixed precision", spectra_measured, {"rmsprop": w.by("RMSprop", 1e-3)},
         (silent.scaler_stuck(), third.clipped_before_unscaling(), fifth.zero_start("body.5", "head"))),
    Task("opinions_gathered", "accumulation", opinions_gathered, {"clipped": w.clipped(1.0)},
         (third.discarded_batches(), sagemaker.overfit(60, 150, 0.2), setup.missing_softmax())),
    Task("tracks_gathered", "accumulation", tracks_gathered, {"larger_batches": w.batches_of(48)},
         (silent.no_zero_grad(), setup.collapsed("mix"), fourth.without_gradient("mix"))),
)  # fmt: skip
