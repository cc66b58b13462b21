"""Networks of the fourth held-out set for rows of things and for pairs."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.programs.fourth.networks import _Look

__all__ = ["Ahead", "Filling", "Hearing", "Meeting", "Ordering", "Passing", "Sensing", "Sounding", "Speaking",
           "Stars", "Words"]  # fmt: skip


class Hearing(nn.Module):
    """Which sound (or none) is heard at each place: (N, length, sounds), by a GRU in both directions."""

    def __init__(self, inputs: int, sounds: int, width: int = 32) -> None:
        super().__init__()
        self.front, self.act = nn.Conv1d(inputs, width, 3, padding=1), nn.ReLU()
        self.rnn = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, sounds)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.act(self.front(x.transpose(1, 2))).transpose(1, 2)
        return self.head(self.rnn(h)[0])


class Ahead(nn.Module):
    """What a row of numbers will be, by two layers of GRU with dropout between them."""

    def __init__(self, inputs: int, width: int = 36) -> None:
        super().__init__()
        self.rnn = nn.GRU(inputs, width, 2, batch_first=True, dropout=0.1)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, inputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.rnn(x)[0][:, -1]))


class Ordering(nn.Module):
    """An LSTM that begins by remembering, over tokens."""

    def __init__(self, tokens: int, outputs: int, width: int = 40) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(tokens, 12), nn.LSTM(12, width, batch_first=True)
        self.head = nn.Linear(width, outputs)
        for name, one in self.rnn.named_parameters():
            if "weight_hh" in name:
                nn.init.orthogonal_(one)
            if "bias_ih" in name:
                nn.init.constant_(one[width : 2 * width], 1.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(self.embed(x))[0][:, -1])


class Speaking(nn.Module):
    """The next letter at each place, told by the vectors that read it: (N, letters, L)."""

    def __init__(self, letters: int, length: int, width: int = 32) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(letters, width), nn.Embedding(length, width)
        nn.init.normal_(self.embed.weight, std=0.15)
        self.blocks = nn.ModuleList(_Look(width, 2, 0.1) for _ in range(2))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        late = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
        h = self.embed(x) + self.place.weight[: x.shape[1]]
        for block in self.blocks:
            h = block(h, late)
        return (self.norm(h) @ self.embed.weight.T).transpose(1, 2)


class Filling(nn.Module):
    """PyTorch's own encoder, an answer at each place: (N, tokens, L)."""

    def __init__(self, tokens: int, length: int, width: int = 32) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(tokens, width), nn.Parameter(0.1 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.encoder(self.embed(x) + self.place))).transpose(1, 2)


class _Ring(nn.Module):
    """Two convolutions in time with normalised weights, and a way around."""

    def __init__(self, width: int, apart: int) -> None:
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.one = norm(nn.Conv1d(width, width, 3, padding=apart, dilation=apart))
        self.two, self.act = norm(nn.Conv1d(width, width, 3, padding=apart, dilation=apart)), nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(x + self.two(self.act(self.one(x))))


class Sounding(nn.Module):
    """Ever wider convolutions in time, and the mean of all places."""

    def __init__(self, outputs: int, width: int = 16) -> None:
        super().__init__()
        self.stem, self.act = nn.Conv1d(1, width, 5, padding=2), nn.ReLU()
        self.rings = nn.Sequential(*(_Ring(width, apart) for apart in (1, 2, 4)))
        self.mix, self.head = nn.Linear(width, 32), nn.Linear(32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.rings(self.act(self.stem(x))).mean(2)
        return self.head(self.act(self.mix(h)))


class Sensing(nn.Module):
    """An LSTM over sensors; what each of the answers looks at is learnt (attention pooling)."""

    def __init__(self, inputs: int, outputs: int, width: int = 32) -> None:
        super().__init__()
        self.front, self.act = nn.Linear(inputs, width), nn.Tanh()
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.score, self.softmax = nn.Linear(width, outputs), nn.Softmax(dim=1)
        self.heads = nn.Parameter(0.2 * torch.randn(outputs, width))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.rnn(self.act(self.front(x)))[0]
        seen = self.softmax(self.score(h)).transpose(1, 2) @ h
        return (seen * self.heads).sum(2) + self.bias


class Words(nn.Module):
    """The mean of words' vectors, whose gradients are sparse, and a dense part."""

    def __init__(self, words: int, outputs: int, width: int = 20) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(words, width, mode="mean", sparse=True)
        self.mix, self.act, self.head = nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.act(self.mix(self.words(x))))


class Meeting(nn.Module):
    """Directions of users and of items, side by side: those that met should point the same way."""

    def __init__(self, users: int, items: int, width: int = 16) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
        self.left, self.right = (nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, width))
                                 for _ in range(2))  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u, i = self.left(self.users(x[:, 0])), self.right(self.items(x[:, 1]))
        return torch.cat([nn.functional.normalize(u, dim=1), nn.functional.normalize(i, dim=1)], 1)


class Stars(nn.Module):
    """Factors of users and shops, and how generous and how good each of them is."""

    def __init__(self, users: int, shops: int, width: int = 6) -> None:
        super().__init__()
        self.users, self.shops = nn.Embedding(users, width), nn.Embedding(shops, width)
        self.generous, self.good = nn.Embedding(users, 1), nn.Embedding(shops, 1)
        self.mean = nn.Parameter(torch.zeros(1))
        for one, std in ((self.users, 0.3), (self.shops, 0.3), (self.generous, 0.01), (self.good, 0.01)):
            nn.init.normal_(one.weight, std=std)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u, s = x[:, 0], x[:, 1]
        both = (self.users(u) * self.shops(s)).sum(1, keepdim=True)
        return both + self.generous(u) + self.good(s) + self.mean


class Passing(nn.Module):
    """Three rounds of messages between those who are tied; what all of them know is added up."""

    def __init__(self, outputs: int, width: int = 24) -> None:
        super().__init__()
        self.first = nn.Linear(2, width)
        self.rounds = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(3))
        self.norm, self.act, self.head = nn.LayerNorm(width), nn.ReLU(), nn.Linear(2 * width, outputs)

    def forward(self, ties: torch.Tensor) -> torch.Tensor:
        degree = ties.sum(2, keepdim=True)
        around = (ties @ ties * ties).sum(2, keepdim=True)
        h = self.act(self.first(torch.cat([degree, around], 2) / 4))
        for one in self.rounds:
            h = h + self.act(one(torch.cat([self.norm(h), ties @ h / (degree + 1)], 2)))
        return self.head(torch.cat([h.mean(1), h.amax(1)], 1))
