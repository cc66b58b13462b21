"""Recurrent networks and residual convolutions in time of the eighth set."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Dilated", "Normed"]


class Normed(nn.Module):
    """A recurrent net over numbers (N, L, inputs) or words (N, L), normed, and a layer of rectifiers.

    Tells at ``"each"`` place (N, L, outputs), for classes (N, outputs, L) (``"classes"``), of the ``"last"``,
    or of the most and the mean of all (``"pooled"``): (N, outputs).
    """

    def __init__(
        self, kind: str, inputs: int, outputs: int, width: int = 32, *, words: int = 0,
        tells: str = "pooled", both: bool = False, layers: int = 1, drop: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embed = nn.Embedding(words, inputs, padding_idx=0) if words else nn.Identity()
        self.rnn = getattr(nn, kind)(inputs, width, layers, batch_first=True, bidirectional=both)
        wide = width * (1 + both)
        self.norm, self.tells = nn.LayerNorm(wide), tells
        self.mix = nn.Linear(wide * (2 if tells == "pooled" else 1), width)
        self.relu, self.drop, self.head = nn.ReLU(), nn.Dropout(drop), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(self.rnn(self.drop(self.embed(x)))[0])
        if self.tells == "pooled":
            h = torch.cat([h.amax(1), h.mean(1)], 1)
        elif self.tells == "last":
            h = h[:, -1]
        told = self.head(self.drop(self.relu(self.mix(h))))
        return told.transpose(1, 2) if self.tells == "classes" else told


class _Step(nn.Module):
    """Two convolutions of a gap, added to what came in."""

    def __init__(self, width: int, gap: int, drop: float) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv1d(width, width, 3, padding=gap, dilation=gap) for _ in range(2))
        self.norm, self.act, self.drop = nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.conv2(self.act(self.norm(self.conv1(x)))))


class Dilated(nn.Module):
    """Residual convolutions of wider and wider gaps (Bai et al., 2018, looking both ways).

    Over (N, L, inputs): at each place (N, outputs, L), or of the mean of all places (N, outputs).
    """

    def __init__(
        self, inputs: int, outputs: int, width: int = 24, gaps: tuple[int, ...] = (1, 2, 4), *,
        each: bool = True, drop: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.stem = nn.Conv1d(inputs, width, 3, padding=1)
        self.steps = nn.Sequential(*(_Step(width, gap, drop) for gap in gaps))
        self.relu, self.each = nn.ReLU(), each
        self.head = nn.Conv1d(width, outputs, 1) if each else nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.relu(self.steps(self.stem(x.transpose(1, 2))))
        return self.head(h if self.each else h.mean(2))
