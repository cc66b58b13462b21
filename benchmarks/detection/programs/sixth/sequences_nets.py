"""Recurrent networks, convolutions in time, and losses of series of the sixth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.recipe import fit_of

__all__ = ["Pinball", "Recurrent", "Temporal", "counted"]


class Recurrent(nn.Module):
    """A recurrent net over numbers (N, L, inputs), or over tokens (N, L) where there are words.

    Tells of the end (N, outputs), of the largest answers (``"most"``), or at each place (``"each"``):
    (N, L, outputs), and (N, outputs, L) for words as losses of classes ask.
    """

    def __init__(
        self, kind: str, inputs: int, outputs: int, width: int = 32, *, layers: int = 1, both: bool = False,
        words: int = 0, tells: str = "end", drop: float = 0.0, mix: int = 0, normed: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.words, self.tells = words, tells
        if words:
            self.embed = nn.Embedding(words, inputs, padding_idx=0)
        self.rnn = getattr(nn, kind)(inputs, width, layers, batch_first=True, bidirectional=both)
        wide = width * (1 + both)
        parts: list[nn.Module] = [nn.LayerNorm(wide)] if normed else []
        parts += [nn.Linear(wide, mix), nn.ReLU()] if mix else []
        self.mix = nn.Sequential(*parts, nn.Dropout(drop))
        self.head = nn.Linear(mix or wide, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.rnn(self.embed(x) if self.words else x)[0]
        if self.tells == "each":
            told = self.head(self.mix(h))
            return told.transpose(1, 2) if self.words else told
        return self.head(self.mix(h[:, -1] if self.tells == "end" else h.amax(1)))


class _Past(nn.Module):
    """Two convolutions in time that see only the past, and a way around them."""

    def __init__(self, width: int, gap: int, drop: float) -> None:
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * gap, 0), 0.0)
        self.conv1, self.norm = nn.Conv1d(width, width, 3, dilation=gap), nn.GroupNorm(4, width)
        self.relu, self.drop = nn.ReLU(), nn.Dropout(drop)
        self.conv2 = nn.Conv1d(width, width, 3, dilation=gap)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv2(self.pad(self.drop(self.relu(self.norm(self.conv1(self.pad(x)))))))


class Temporal(nn.Module):
    """Ever wider convolutions in time (TCN) over (N, inputs, L); tells of the most or (``"end"``) the end."""

    def __init__(
        self, inputs: int, outputs: int, width: int = 16, gaps: tuple[int, ...] = (1, 2, 4, 8),
        tells: str = "most", drop: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.tells = tells
        self.stem = nn.Conv1d(inputs, width, 3, padding=1)
        self.layers = nn.Sequential(*(_Past(width, gap, drop) for gap in gaps))
        self.mix, self.relu, self.head = nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.layers(self.stem(x))
        return self.head(self.relu(self.mix(h.amax(2) if self.tells == "most" else h[:, :, -1])))


class Pinball(nn.Module):
    """How far three quantiles are off, each with its own price for too much and too little."""

    def __init__(self, shares: tuple[float, ...] = (0.1, 0.5, 0.9)) -> None:
        super().__init__()
        self.shares = torch.tensor(shares)

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        off = wanted - told
        return torch.maximum(self.shares * off, (self.shares - 1) * off).mean()

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        """Share of the variance that the median explains."""
        return fit_of(told[:, 1:2], wanted)


def counted(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """Share of the variance that expected counts explain, given their logarithms."""
    return fit_of(told.clamp(max=10).exp(), wanted)
