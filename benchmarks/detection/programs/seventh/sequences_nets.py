"""Recurrent networks, convolutions over words and gated ones in time, of the seventh set."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Gated", "Remembering", "Scanning"]


class _Weighed(nn.Module):
    """The mean of all places (N, L, width), each with a weight that is learnt."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return (self.score(h).softmax(1) * h).sum(1)


class Remembering(nn.Module):
    """A recurrent net over numbers (N, L, inputs) or tokens (N, L), with a dense layer before and behind it.

    Tells at each place (N, L, outputs), for words (N, outputs, L), or of the ``"mean"``, of what is
    ``"weighed"``, or of the ``"end"``: (N, outputs).
    """

    def __init__(
        self, kind: str, inputs: int, outputs: int, width: int = 32, *, words: int = 0, tells: str = "end",
        layers: int = 1, both: bool = False, drop: float = 0.0, act: type[nn.Module] = nn.ReLU,
    ) -> None:  # fmt: skip
        super().__init__()
        self.words, self.tells = words, tells
        self.embed = nn.Embedding(words, inputs, padding_idx=0) if words else nn.Linear(inputs, width)
        self.drop = nn.Dropout(drop)
        self.rnn = getattr(nn, kind)(
            inputs if words else width, width, layers, batch_first=True, bidirectional=both
        )
        wide = width * (1 + both)
        self.weigh = _Weighed(wide) if tells == "weighed" else None
        self.mix, self.act, self.head = nn.Linear(wide, width), act(), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.rnn(self.drop(self.embed(x)))[0]
        if self.weigh is not None:
            h = self.weigh(h)
        elif self.tells == "mean":
            h = h.mean(1)
        elif self.tells == "end":
            h = h[:, -1]
        told = self.head(self.drop(self.act(self.mix(h))))
        return told.transpose(1, 2) if self.words and self.tells == "each" else told


class Scanning(nn.Module):
    """Convolutions of several lengths over words, and the most of each (Kim, 2014)."""

    def __init__(
        self, words: int, outputs: int, width: int = 16, channels: int = 24,
        lengths: tuple[int, ...] = (3, 5, 7), drop: float = 0.3,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(width, channels, one) for one in lengths)
        self.relu, self.drop = nn.ReLU(), nn.Dropout(drop)
        self.head = nn.Linear(channels * len(lengths), outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x).transpose(1, 2)
        return self.head(self.drop(torch.cat([self.relu(conv(h)).amax(2) for conv in self.convs], 1)))


class Gated(nn.Module):
    """Convolutions of the past, half of each opening the other, all added up (WaveNet): (N, L, C)."""

    def __init__(
        self, inputs: int, outputs: int, width: int = 20, gaps: tuple[int, ...] = (1, 2, 4, 8)
    ) -> None:
        super().__init__()
        self.stem = nn.Conv1d(inputs, width, 1)
        self.layers = nn.ModuleList(nn.Conv1d(width, 2 * width, 3, dilation=gap) for gap in gaps)
        self.around = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in gaps)
        self.tanh, self.gate, self.relu = nn.Tanh(), nn.Sigmoid(), nn.ReLU()
        self.head = nn.Conv1d(width, outputs, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.stem(x.transpose(1, 2))
        total = torch.zeros_like(h)
        for conv, around in zip(self.layers, self.around, strict=True):
            bent, gate = conv(nn.functional.pad(h, (2 * conv.dilation[0], 0))).chunk(2, 1)
            found = around(self.tanh(bent) * self.gate(gate))
            h, total = h + found, total + found
        return self.head(self.relu(total)).transpose(1, 2)
