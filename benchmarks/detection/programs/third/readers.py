"""Networks of the third held-out set for rows of things: tokens, numbers, visits."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Beating", "Fields", "Follower", "Lines", "Looking", "Onward", "Preferring",
           "Reading", "Sorter"]  # fmt: skip


class Lines(nn.Module):
    """A recurrent layer over lines of pixels, all its states read with a normalisation."""

    def __init__(self, kind: type[nn.RNNBase], inputs: int, outputs: int, width: int = 40) -> None:
        super().__init__()
        self.rnn, self.norm = kind(inputs, width, batch_first=True), nn.LayerNorm(width)
        self.drop, self.head = nn.Dropout(0.3), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.norm(self.rnn(x)[0][:, -1])))


class Onward(nn.Module):
    """An LSTM that tells by how much the last row will have changed."""

    def __init__(self, inputs: int = 3, width: int = 32) -> None:
        super().__init__()
        self.rnn = nn.LSTM(inputs, width, batch_first=True)
        self.mix, self.act, self.head = nn.Linear(width, width), nn.Tanh(), nn.Linear(width, inputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, -1] + self.head(self.act(self.mix(self.rnn(x)[0][:, -1])))


class Beating(nn.Module):
    """Residual convolutions in time with instance normalisation, the mean and the largest of all places."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Conv1d(1, width, 7, stride=2, padding=3)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm1d(width), nn.ReLU(), nn.Conv1d(width, width, 5, padding=2))
            for _ in range(2)
        )
        self.head = nn.Linear(2 * width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.stem(x)
        for one in self.layers:
            h = h + one(h)
        return self.head(torch.cat([h.mean(2), h.amax(2)], 1))


class Reading(nn.Module):
    """Letters, windows of them by two widths of convolution, and the largest answer of each."""

    def __init__(self, tokens: int, outputs: int, width: int = 16) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, width, padding_idx=0)
        self.narrow, self.wide = nn.Conv1d(width, 24, 3), nn.Conv1d(width, 24, 5)
        self.act, self.drop, self.head = nn.ReLU(), nn.Dropout(0.5), nn.Linear(48, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x).transpose(1, 2)
        found = [self.act(one(h)).amax(2) for one in (self.narrow, self.wide)]
        return self.head(self.drop(torch.cat(found, 1)))


class _Mixing(nn.Module):
    """Attention of several heads and a gated feed-forward net, normalised before by root mean squares."""

    def __init__(self, width: int, heads: int, drop: float) -> None:
        super().__init__()
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.softmax, self.out = nn.Softmax(dim=-1), nn.Linear(width, width)
        self.up, self.gate, self.down = nn.Linear(width, 48), nn.Linear(width, 48), nn.Linear(48, width)
        self.act, self.drop, self.heads = nn.SiLU(), nn.Dropout(drop), heads
        self.sharpness = 1.0

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        x, (rows, length, width) = self.before(h), h.shape
        q, k, v = (one(x).view(rows, length, self.heads, -1).transpose(1, 2)
                   for one in (self.query, self.key, self.value))  # fmt: skip
        weights = self.softmax(self.sharpness * (q @ k.transpose(2, 3)) / (width / self.heads) ** 0.5)
        h = h + self.drop(self.out((weights @ v).transpose(1, 2).reshape(rows, length, width)))
        x = self.between(h)
        return h + self.drop(self.down(self.act(self.gate(x)) * self.up(x)))


class Looking(nn.Module):
    """Blocks of attention over tokens with learnt places: an answer at the last place."""

    def __init__(self, tokens: int, outputs: int, length: int, width: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(tokens, width), nn.Parameter(torch.randn(length, width) * 0.1)
        self.blocks = nn.ModuleList(_Mixing(width, 4, 0.0) for _ in range(depth))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x) + self.place
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h[:, -1]))


class Sorter(nn.Module):
    """The same, with an answer at each place: (N, tokens, L)."""

    def __init__(self, tokens: int, length: int, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(_Mixing(width, heads, 0.05) for _ in range(2))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, tokens)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x) + self.place.weight
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h)).transpose(1, 2)


class Follower(nn.Module):
    """What comes next after some visits: a GRU, and scores of the items by their own vectors."""

    def __init__(self, items: int, width: int = 24) -> None:
        super().__init__()
        self.embed = nn.Embedding(items + 1, width, padding_idx=0)
        self.rnn, self.drop = nn.GRU(width, 48, batch_first=True), nn.Dropout(0.2)
        self.back = nn.Linear(48, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = self.back(self.drop(self.rnn(self.embed(x))[0][:, -1]))
        return state @ self.embed.weight[1:].T


class Fields(nn.Module):
    """A factorisation machine with a small deep part: is it clicked?"""

    def __init__(self, values: int, fields: int = 5, width: int = 6) -> None:
        super().__init__()
        self.alone, self.vectors = nn.Embedding(values, 1), nn.Embedding(values, width)
        nn.init.normal_(self.vectors.weight, std=0.1)
        nn.init.zeros_(self.alone.weight)
        self.deep = nn.Sequential(nn.Linear(fields * width, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = self.vectors(x)
        both = (chosen.sum(1) ** 2 - (chosen**2).sum(1)).sum(1, keepdim=True) / 2
        return self.alone(x).sum(1) + both + self.deep(chosen.flatten(1))


class Preferring(nn.Module):
    """By how much a user prefers one item to another."""

    def __init__(self, users: int, items: int, width: int = 8) -> None:
        super().__init__()
        self.items, self.users = nn.Embedding(items, width), nn.Embedding(users, width)
        self.liked = nn.Embedding(items, 1)
        for one in (self.items, self.users, self.liked):
            nn.init.normal_(one.weight, std=0.1)
        self.size = items

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        taken, left = x[:, 1], x[:, 2] - self.size
        apart = self.items(taken) - self.items(left)
        return (self.users(x[:, 0]) * apart).sum(1, keepdim=True) + self.liked(taken) - self.liked(left)
