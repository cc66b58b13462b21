"""Networks over kinds and pairs, and losses that compare, of the ninth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.programs.sixth.nets import stack

__all__ = ["Choosing", "Described", "Differing", "Guessed", "Guessing"]


class Choosing(nn.Module):
    """How well each thing shown suits somebody: a product of two vectors, and a liking of its own: (N, S)."""

    def __init__(self, ones: int, things: int, width: int = 12, drop: float = 0.1) -> None:
        super().__init__()
        self.ones, self.things = nn.Embedding(ones, width), nn.Embedding(things, width)
        self.known, self.drop = nn.Embedding(things, 1), nn.Dropout(drop)
        for one in (self.ones, self.things):
            nn.init.normal_(one.weight, std=0.3)
        nn.init.zeros_(self.known.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, shown = self.drop(self.ones(x[:, :1])), self.things(x[:, 1:])
        return (one * shown).sum(2) + self.known(x[:, 1:])[..., 0]


class Described(nn.Module):
    """Dense layers over the vectors of kinds (numbered through, in the first columns) and the numbers."""

    def __init__(
        self, kinds: int, fields: int, numbers: int, act: type[nn.Module], width: int = 8, drop: float = 0.1
    ) -> None:
        super().__init__()
        self.fields, self.kinds = fields, nn.Embedding(kinds, width)
        self.body = stack((fields * width + numbers, 64, 32, 1), act, nn.LayerNorm, lambda: nn.Dropout(drop))
        nn.init.normal_(self.kinds.weight, std=0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kinds = self.kinds(x[:, : self.fields].long()).flatten(1)
        return self.body(torch.cat([kinds, x[:, self.fields :]], 1))


class Differing(nn.Module):
    """How the codes of the two halves of a row differ, weighed: logits of their being alike (Koch, 2015)."""

    def __init__(self, numbers: int, code: int = 16, width: int = 64) -> None:
        super().__init__()
        self.numbers, self.body = numbers, stack((numbers, width, width, code), nn.ReLU)
        self.head = nn.Linear(code, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, two = (self.body(half) for half in x.split(self.numbers, 1))
        return self.head((one - two).abs())


class Guessing(nn.Module):
    """Codes of two views of a signal, (N, L, C) each, and a guess of each from the other: (N, 4 * code)."""

    def __init__(self, sensors: int, length: int, code: int = 24, width: int = 16) -> None:
        super().__init__()
        self.length = length
        self.encode = nn.Sequential(
            nn.Conv1d(sensors, width, 7, 2, 3), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, 2 * width, 5, 2, 2), nn.BatchNorm1d(2 * width), nn.ReLU(),
            nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(2 * width, code), nn.BatchNorm1d(code),
        )  # fmt: skip
        self.guess = nn.Sequential(
            nn.Linear(code, code), nn.BatchNorm1d(code), nn.ReLU(), nn.Linear(code, code)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        codes = [self.encode(one.transpose(1, 2)) for one in x.split(self.length, 1)]
        return torch.cat([*codes, *(self.guess(one) for one in codes)], 1)


class Guessed(nn.Module):
    """Each guess against the other view's code, which is held still (SimSiam; Chen, He, 2021)."""

    def __init__(self) -> None:
        super().__init__()
        self.still = True

    def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        one, two, ahead, back = told.chunk(4, 1)
        if self.still:
            one, two = one.detach(), two.detach()
        alike = nn.functional.cosine_similarity
        return -0.5 * (alike(ahead, two).mean() + alike(back, one).mean())
