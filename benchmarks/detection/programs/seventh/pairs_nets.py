"""Networks over pairs and for comparing in the seventh set, and their losses."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.pairs_nets import Compared

__all__ = [
    "Apart",
    "Chosen",
    "Linked",
    "Margin",
    "Margined",
    "Met",
    "Siamese",
    "Towers",
    "Twinned",
    "Twins",
    "Wide",
]


class Met(nn.Module):
    """Dense layers over the vectors of two (numbered each for itself) and their product (NeuMF)."""

    def __init__(self, ones: int, others: int, width: int = 12, drop: float = 0.1) -> None:
        super().__init__()
        self.ones, self.others = nn.Embedding(ones, width), nn.Embedding(others, width)
        self.deep = stack((2 * width, 32, 16), nn.ReLU, drop=lambda: nn.Dropout(drop))
        self.relu, self.head = nn.ReLU(), nn.Linear(16 + width, 1)
        for one in (self.ones, self.others):
            nn.init.normal_(one.weight, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, other = self.ones(x[:, 0]), self.others(x[:, 1])
        deep = self.relu(self.deep(torch.cat([one, other], 1)))
        return self.head(torch.cat([deep, one * other], 1))


class Wide(nn.Module):
    """A weight for each kind, and dense layers over the kinds' vectors and the numbers (Wide & Deep)."""

    def __init__(self, kinds: int, fields: int, numbers: int, width: int = 8, drop: float = 0.2) -> None:
        super().__init__()
        self.fields = fields
        self.wide, self.kinds = nn.Embedding(kinds, 1), nn.Embedding(kinds, width)
        nn.init.zeros_(self.wide.weight)
        self.deep = stack((fields * width + numbers, 48, 24, 1), nn.ReLU, drop=lambda: nn.Dropout(drop))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kinds, numbers = x[:, : self.fields].long(), x[:, self.fields :]
        return self.wide(kinds).sum(1) + self.deep(torch.cat([self.kinds(kinds).flatten(1), numbers], 1))


class Linked(nn.Module):
    """How well each thing answers a thing and a link: products of three vectors (like DistMult)."""

    def __init__(self, things: int, links: int, width: int = 24, drop: float = 0.2) -> None:
        super().__init__()
        self.ask, self.drop = nn.Embedding(things + links, width), nn.Dropout(drop)
        self.answer = nn.Linear(width, things)
        nn.init.normal_(self.ask.weight, std=0.6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.answer(self.drop(self.ask(x).prod(1)))


class Margined(nn.Module):
    """Cosines between a row's code and one direction for each kind."""

    def __init__(self, body: nn.Module, code: int, kinds: int) -> None:
        super().__init__()
        self.body, self.kinds = body, nn.Parameter(torch.randn(kinds, code))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(
            nn.functional.normalize(self.body(x), dim=1), nn.functional.normalize(self.kinds, dim=1)
        )


class Margin(nn.Module):
    """Cross-entropy of sharpened cosines, after a margin is taken from the right ones (CosFace)."""

    def __init__(self, margin: float = 0.2, sharp: float = 12.0) -> None:
        super().__init__()
        self.margin, self.sharp = margin, sharp

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        off = self.margin * nn.functional.one_hot(wanted, told.shape[1])
        return nn.functional.cross_entropy(self.sharp * (told - off), wanted)


class Twins(nn.Module):
    """Codes of the two halves of a row by one encoder, side by side: (N, 2 * code)."""

    def __init__(self, numbers: int, width: int = 64, code: int = 24) -> None:
        super().__init__()
        self.numbers = numbers
        self.body = stack((numbers, width, width), nn.ReLU, nn.BatchNorm1d)
        self.relu, self.project = nn.ReLU(), nn.Linear(width, code)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        halves = (self.project(self.relu(self.body(half))) for half in x.split(self.numbers, 1))
        return torch.cat(list(halves), 1)


class Twinned(nn.Module):
    """Both codes alike in each number, and no number like another (Barlow Twins)."""

    def __init__(self, apart: float = 0.02) -> None:
        super().__init__()
        self.apart = apart

    def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        one, two = ((half - half.mean(0)) / (half.std(0) + 1e-4) for half in told.chunk(2, 1))
        alike = one.T @ two / len(told)
        off = alike - torch.diag(alike.diagonal())
        return (1 - alike.diagonal()).square().sum() + self.apart * off.square().sum()


class Siamese(nn.Module):
    """How far apart the codes of the two halves of a row are: (N, 1)."""

    def __init__(self, numbers: int, code: int = 12) -> None:
        super().__init__()
        self.numbers, self.body = numbers, stack((numbers, 64, 32, code), nn.ReLU)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, two = (self.body(half) for half in x.split(self.numbers, 1))
        return ((one - two).square().sum(1, keepdim=True) + 1e-6).sqrt()


class Apart(nn.Module):
    """The same are drawn together, others are pushed beyond a margin (Hadsell et al., 2006)."""

    def __init__(self, margin: float = 2.0) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, far: torch.Tensor, same: torch.Tensor) -> torch.Tensor:
        short = nn.functional.relu(self.margin - far)
        return (same * far.square() + (1 - same) * short.square()).mean()


class Towers(nn.Module):
    """Directions of both halves of a row by two towers, as long as a learnt sharpness says (CLIP)."""

    def __init__(self, numbers: int, code: int = 12, width: int = 64) -> None:
        super().__init__()
        self.numbers = numbers
        self.left, self.right = (stack((numbers, width, code), nn.GELU, nn.LayerNorm) for _ in range(2))
        self.sharp = nn.Parameter(torch.tensor(1.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = self.left(x[:, : self.numbers]), self.right(x[:, self.numbers :])
        both = torch.cat([nn.functional.normalize(left, dim=1), nn.functional.normalize(right, dim=1)], 1)
        return both * self.sharp.exp()


class Chosen(Compared):
    """Which right half is a left one's, among those of the batch, and the other way round (InfoNCE)."""

    def among(self, code: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        left, right = code.chunk(2, 1)
        near, own = left @ right.T, torch.arange(len(code))
        return (nn.functional.cross_entropy(near, own) + nn.functional.cross_entropy(near.T, own)) / 2
