"""Recurrent networks, convolutions in time and coders of series of the fifth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.programs.networks import VariationalCoder

__all__ = ["Engine", "Forecaster", "Gestures", "Lines", "Metered", "Retold", "Selling", "Shaken", "Stages",
           "Tagger"]  # fmt: skip


class Gestures(nn.Module):
    """Two layers of LSTM, the last state, and a dense layer between it and the classes."""

    def __init__(self, inputs: int, outputs: int, width: int = 32, drop: float = 0.2) -> None:
        super().__init__()
        self.rnn = nn.LSTM(inputs, width, 2, batch_first=True, dropout=drop)
        self.mix, self.act, self.head = nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.act(self.mix(self.rnn(x)[0][:, -1])))


class Forecaster(nn.Module):
    """An LSTM over what is known, and all of the next hours at once."""

    def __init__(self, inputs: int, ahead: int, width: int = 40) -> None:
        super().__init__()
        self.rnn, self.drop = nn.LSTM(inputs, width, batch_first=True), nn.Dropout(0.1)
        self.head = nn.Linear(width, ahead)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.rnn(x)[0][:, -1]))


class Engine(nn.Module):
    """An LSTM over readings, and a share of the longest life by dense layers with ReLU."""

    def __init__(self, inputs: int, width: int = 32) -> None:
        super().__init__()
        self.rnn = nn.LSTM(inputs, width, batch_first=True)
        self.top = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.top(self.rnn(x)[0][:, -1])


class Selling(nn.Module):
    """At each week the mean and the log-spread of the next one's sales: (N, L, 2)."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.rnn = nn.GRU(1, width, batch_first=True)
        self.mean, self.spread = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.rnn(x)[0]
        return torch.cat([self.mean(h), self.spread(h)], 2)


class Lines(nn.Module):
    """Characters read from both ends by an LSTM; the mean of all that are no padding."""

    def __init__(self, letters: int, outputs: int, width: int = 28) -> None:
        super().__init__()
        self.embed = nn.Embedding(letters, 20, padding_idx=0)
        self.rnn = nn.LSTM(20, width, batch_first=True, bidirectional=True)
        self.drop, self.head = nn.Dropout(0.3), nn.Linear(2 * width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        there = (x > 0)[..., None].float()
        h = (self.rnn(self.embed(x))[0] * there).sum(1) / there.sum(1).clamp(min=1)
        return self.head(self.drop(h))


class Tagger(nn.Module):
    """A tag for each word by a GRU in both directions: (N, tags, L)."""

    def __init__(self, words: int, tags: int, width: int = 24) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, 24, padding_idx=0)
        self.drop, self.rnn = nn.Dropout(0.2), nn.GRU(24, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, tags)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(self.drop(self.embed(x)))[0]).transpose(1, 2)


class Shaken(nn.Module):
    """A wide first filter, three blocks of convolution, batch normalisation, ReLU and pooling (WDCNN)."""

    def __init__(self, outputs: int, width: int = 12) -> None:
        super().__init__()

        def block(inside: int, outside: int, size: int, stride: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Conv1d(inside, outside, size, stride, size // 2), nn.BatchNorm1d(outside), nn.ReLU(),
                nn.MaxPool1d(2),
            )  # fmt: skip

        self.blocks = nn.Sequential(
            block(1, width, 15, 2), block(width, 2 * width, 3, 1), block(2 * width, 2 * width, 3, 1)
        )
        self.mix, self.relu, self.head = nn.LazyLinear(48), nn.ReLU(), nn.Linear(48, outputs)
        self(torch.zeros(2, 1, 128))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.relu(self.mix(self.blocks(x).flatten(1))))


class _Dilated(nn.Module):
    """A convolution in time with a gap, dropout, and a way around it."""

    def __init__(self, width: int, gap: int, drop: float) -> None:
        super().__init__()
        self.conv, self.act = nn.Conv1d(width, width, 3, padding=gap, dilation=gap), nn.ReLU()
        self.point, self.drop = nn.Conv1d(width, width, 1), nn.Dropout(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.point(self.act(self.conv(x))))


class Stages(nn.Module):
    """Ever wider convolutions in time, a class at each moment (a stage of MS-TCN): (N, classes, L)."""

    def __init__(self, inputs: int, outputs: int, width: int = 20, drop: float = 0.2) -> None:
        super().__init__()
        self.stem = nn.Conv1d(inputs, width, 1)
        self.layers = nn.Sequential(*(_Dilated(width, gap, drop) for gap in (1, 2, 4, 8)))
        self.head = nn.Conv1d(width, outputs, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.stem(x)))


class Metered(VariationalCoder):
    """A variational autoencoder of days."""

    bound = None

    def __init__(self, hours: int = 24, code: int = 5, width: int = 64) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(hours, width), nn.ReLU(), nn.Linear(width, 32), nn.ReLU())
        self.mean, self.spread = nn.Linear(32, code), nn.Linear(32, code)
        self.decode = nn.Sequential(
            nn.Linear(code, 32), nn.ReLU(), nn.Linear(32, width), nn.ReLU(), nn.Linear(width, hours)
        )


class Retold(nn.Module):
    """An LSTM reads a series into a narrow code; another tells it again from that and where it is."""

    def __init__(self, inputs: int, length: int, width: int = 48, code: int = 8) -> None:
        super().__init__()
        self.read, self.narrow = nn.LSTM(inputs, width, batch_first=True), nn.Linear(width, code)
        self.act, self.place = nn.Tanh(), nn.Parameter(0.3 * torch.randn(length, 8))
        self.tell, self.head = nn.LSTM(code + 8, width, batch_first=True), nn.Linear(width, inputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        code = self.act(self.narrow(self.read(x)[0][:, -1]))
        place = self.place.expand(len(x), -1, -1)
        return self.head(self.tell(torch.cat([code[:, None].expand(-1, place.shape[1], -1), place], 2))[0])
