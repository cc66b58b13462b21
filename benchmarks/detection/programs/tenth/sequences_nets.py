"""Recurrent nets that weigh their places or tell step by step, and gated convolutions, of the tenth set."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Stepping", "Waved", "Weighing"]


class Weighing(nn.Module):
    """A recurrent net over what a first layer makes of the input, and a weighted mean of all its places.

    The weights are learnt (Bahdanau et al., 2015); padding (0) has none. (N, outputs), or with `each`
    without the mean, at each place (N, outputs, L).
    """

    def __init__(
        self, kind: str, first: nn.Module, width_in: int, outputs: int, width: int = 24, *,
        each: bool = False, both: bool = False, layers: int = 1, drop: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.each, self.drop = first, each, nn.Dropout(drop)
        self.rnn = getattr(nn, kind)(width_in, width, layers, batch_first=True, bidirectional=both)
        wide = width * (1 + both)
        if not each:
            self.worth = nn.Sequential(nn.Linear(wide, width), nn.Tanh(), nn.Linear(width, 1))
        self.mix, self.relu, self.head = nn.Linear(wide, width), nn.ReLU(), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.rnn(self.drop(self.first(x)))[0]
        if not self.each:
            worth = self.worth(h)
            if not x.is_floating_point():
                worth = worth.masked_fill((x == 0)[..., None], -1e4)
            h = (worth.softmax(1) * h).sum(1)
        told = self.head(self.drop(self.relu(self.mix(h))))
        return told.transpose(1, 2) if self.each else told


class Stepping(nn.Module):
    """One recurrent net reads (N, L, inputs), another goes on from its state, fed with what it told last."""

    def __init__(self, inputs: int, ahead: int, width: int = 32) -> None:
        super().__init__()
        self.reader = nn.GRU(inputs, width, batch_first=True)
        self.teller, self.head, self.ahead = nn.GRUCell(1, width), nn.Linear(width, 1), ahead

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, told = self.reader(x)[1][0], x[:, -1, :1]
        found = []
        for _ in range(self.ahead):
            state = self.teller(told, state)
            told = told + self.head(state)
            found.append(told)
        return torch.cat(found, 1)


class _Gated(nn.Module):
    """A gated convolution: what it adds to its input, and what it tells."""

    def __init__(self, width: int, gap: int, drop: float) -> None:
        super().__init__()
        self.conv, self.norm = (
            nn.Conv1d(width, 2 * width, 3, padding=gap, dilation=gap),
            nn.BatchNorm1d(width),
        )
        self.tanh, self.gate, self.drop = nn.Tanh(), nn.Sigmoid(), nn.Dropout(drop)
        self.around, self.skip = nn.Conv1d(width, width, 1), nn.Conv1d(width, width, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        one, two = self.conv(self.norm(x)).chunk(2, 1)
        h = self.drop(self.tanh(one) * self.gate(two))
        return x + self.around(h), self.skip(h)


class Waved(nn.Module):
    """Gated convolutions of wider and wider gaps (WaveNet, looking both ways) over (N, L, inputs).

    Tells of the mean of all places (N, outputs).
    """

    def __init__(
        self, inputs: int, outputs: int, width: int = 16, gaps: tuple[int, ...] = (1, 2, 4), drop: float = 0.0
    ) -> None:
        super().__init__()
        self.stem = nn.Conv1d(inputs, width, 3, padding=1)
        self.layers = nn.ModuleList(_Gated(width, gap, drop) for gap in gaps)
        self.mix, self.relu, self.head = nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, told = self.stem(x.transpose(1, 2)), []
        for layer in self.layers:
            h, one = layer(h)
            told.append(one)
        all_told = torch.stack(told).sum(0)
        return self.head(self.relu(self.mix(torch.cat([all_told.mean(2), all_told.square().mean(2)], 1))))
