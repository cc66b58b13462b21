"""Networks over pairs and for comparing in the fifth set, and their losses."""

from __future__ import annotations

import math

import torch
from torch import nn

from benchmarks.detection.recipe import ranked

__all__ = ["Alike", "Apart", "Clicking", "Contrasted", "Leading", "Matched", "Middle", "Questions",
           "Speakers", "Verified", "Views", "Watching", "verified"]  # fmt: skip


class Watching(nn.Module):
    """Products of vectors, and dense layers over others, of a user and a film (NeuMF)."""

    def __init__(self, users: int, films: int, width: int = 8) -> None:
        super().__init__()
        self.users, self.films = nn.Embedding(users, width), nn.Embedding(films, width)
        self.users_deep, self.films_deep = nn.Embedding(users, width), nn.Embedding(films, width)
        for one in (self.users, self.films, self.users_deep, self.films_deep):
            nn.init.normal_(one.weight, std=0.2)
        self.deep = nn.Sequential(
            nn.Linear(2 * width, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 16), nn.ReLU()
        )
        self.head = nn.Linear(width + 16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        user, film = x[:, 0], x[:, 1]
        deep = self.deep(torch.cat([self.users_deep(user), self.films_deep(film)], 1))
        return self.head(torch.cat([self.users(user) * self.films(film), deep], 1))


class Middle(nn.Module):
    """The word between four others by the mean of their vectors (CBOW)."""

    def __init__(self, words: int, width: int = 32) -> None:
        super().__init__()
        self.words, self.head = nn.EmbeddingBag(words, width, mode="mean"), nn.Linear(width, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.words(x))


class Clicking(nn.Module):
    """Numbers and vectors of kinds, crossed twice, beside dense layers (DCN-v2)."""

    def __init__(self, sizes: tuple[int, ...] = (12, 8, 20, 5), numbers: int = 3, each: int = 6) -> None:
        super().__init__()
        self.numbers, width = numbers, numbers + each * len(sizes)
        self.kinds = nn.ModuleList(nn.Embedding(size, each) for size in sizes)
        self.cross = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.deep = nn.Sequential(nn.Linear(width, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16),
                                  nn.BatchNorm1d(16), nn.ReLU())  # fmt: skip
        self.head = nn.Linear(width + 16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ids = x[:, self.numbers :].long()
        first = torch.cat(
            [x[:, : self.numbers], *(one(ids[:, place]) for place, one in enumerate(self.kinds))], 1
        )
        h = first
        for one in self.cross:
            h = first * one(h) + h
        return self.head(torch.cat([h, self.deep(first)], 1))


class Leading(nn.Module):
    """Where a relation leads: turned vectors of the thing against those of all things (ComplEx)."""

    def __init__(self, things: int, relations: int, width: int = 16) -> None:
        super().__init__()
        self.things, self.relations = nn.Embedding(things, 2 * width), nn.Embedding(relations, 2 * width)
        self.drop = nn.Dropout(0.1)
        for one in (self.things, self.relations):
            nn.init.normal_(one.weight, std=0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        real, imaginary = self.drop(self.things(x[:, 0])).chunk(2, 1)
        along, across = self.relations(x[:, 1]).chunk(2, 1)
        turned = torch.cat([real * along - imaginary * across, real * across + imaginary * along], 1)
        return turned @ self.things.weight.T


class Views(nn.Module):
    """Convolutions in time, and behind them (in training) a small net whose codes are compared (SimCLR)."""

    def __init__(self, width: int = 16, code: int = 24) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv1d(1, width, 5, 2, 2), nn.ReLU(), nn.Conv1d(width, 2 * width, 5, 2, 2), nn.ReLU(),
            nn.Flatten(), nn.Linear(2 * width * 12, 48),
        )  # fmt: skip
        self.project = nn.Sequential(nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, code))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.project(self.encode(x)) if self.training else self.encode(x)


class Contrasted(nn.Module):
    """Which other row is the second view of this one (NT-Xent)? Divided by a temperature."""

    def __init__(self, heat: float = 0.2) -> None:
        super().__init__()
        self.heat = heat

    def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        code = nn.functional.normalize(told, dim=1)
        near = (code @ code.T / self.heat).masked_fill(torch.eye(len(code), dtype=torch.bool), -1e9)
        half = len(code) // 2
        return nn.functional.cross_entropy(near, torch.arange(len(code)).roll(half))


class Matched(nn.Module):
    """Directions of measures and of words, side by side, sharpened by a learnt factor (CLIP)."""

    def __init__(self, numbers: int = 12, words: int = 41, code: int = 16) -> None:
        super().__init__()
        self.numbers = numbers
        self.measures = nn.Sequential(nn.Linear(numbers, 64), nn.GELU(), nn.Linear(64, code))
        self.words = nn.EmbeddingBag(words, 32, mode="mean")
        self.text = nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, code))
        self.factor = nn.Parameter(torch.tensor(math.log(1 / 0.1)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = nn.functional.normalize(self.measures(x[:, : self.numbers]), dim=1)
        two = nn.functional.normalize(self.text(self.words(x[:, self.numbers :].long())), dim=1)
        return torch.cat([one, two], 1) * (self.factor / 2).exp()


class Alike(nn.Module):
    """Which description of the batch is this thing's, and which thing is this description's?"""

    def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        one, two = told.chunk(2, 1)
        near, own = one @ two.T, torch.arange(len(told))
        both = nn.functional.cross_entropy(near, own) + nn.functional.cross_entropy(near.T, own)
        return both / 2

    @staticmethod
    def score(told: torch.Tensor, _: torch.Tensor) -> float:
        """How often the own description is nearer than another (half of the times by chance)."""
        one, two = told.chunk(2, 1)
        near = one @ two.T
        other = ~torch.eye(len(near), dtype=torch.bool)
        return float((near.diag()[:, None] > near)[other].float().mean())


class Speakers(nn.Module):
    """Directions of recordings against one direction for each speaker: cosines."""

    def __init__(self, numbers: int, speakers: int, width: int = 64, code: int = 16) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(numbers, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(width, code),
        )
        self.centres = nn.Parameter(torch.randn(speakers, code) / code**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        code = nn.functional.normalize(self.body(x), dim=1)
        return code @ nn.functional.normalize(self.centres, dim=1).T


class Apart(nn.Module):
    """Cross-entropy of cosines, where the right one has to be larger by a margin (AM-softmax)."""

    def __init__(self, margin: float = 0.2, scale: float = 12.0) -> None:
        super().__init__()
        self.margin, self.scale = margin, scale

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        less = self.margin * nn.functional.one_hot(wanted, told.shape[1])
        return nn.functional.cross_entropy(self.scale * (told - less), wanted)


class Questions(nn.Module):
    """Codes of both questions by the same net, side by side: words, a GRU, the mean of all places."""

    def __init__(self, words: int = 61, width: int = 24) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(words, 24, padding_idx=0), nn.GRU(24, width, batch_first=True)
        self.mix = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        told = self.mix(self.rnn(self.embed(x.flatten(0, 1)))[0].mean(1))
        return told.view(len(x), 2, -1)


class Verified(nn.Module):
    """Codes that mean the same point the same way, others do not (by a margin)."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = nn.CosineEmbeddingLoss(margin=0.2)

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return self.plain(told[:, 0], told[:, 1], wanted)


def verified(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """How often two that mean the same are nearer than two that do not."""
    near = nn.functional.cosine_similarity(told[:, 0], told[:, 1])
    return ranked(near[wanted > 0], near[wanted < 0])
