"""Networks of the seventh set."""

from __future__ import annotations

import math

import torch
from torch import nn

from benchmarks.detection.programs.sixth.nets import stack

__all__ = [
    "Branches",
    "Embedded",
    "Gated",
    "Grown",
    "Highway",
    "Outline",
    "Periodic",
    "Squeezed",
    "upsampling",
]


class Highway(nn.Module):
    """Layers with a gate that lets through what was there before (Srivastava et al., 2015)."""

    def __init__(self, inside: int, outputs: int, width: int = 48, depth: int = 3) -> None:
        super().__init__()
        self.stem, self.act, self.head = nn.Linear(inside, width), nn.ReLU(), nn.Linear(width, outputs)
        self.change = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.gate = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.opening = nn.Sigmoid()
        for one in self.gate:
            nn.init.constant_(one.bias, -1.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.act(self.stem(x))
        for change, gate in zip(self.change, self.gate, strict=True):
            open_ = self.opening(gate(x))
            x = open_ * self.act(change(x)) + (1 - open_) * x
        return self.head(x)


class Embedded(nn.Module):
    """A vector for each level of each kind beside the numbers (Guo, Berkhahn, 2016)."""

    def __init__(self, numbers: int, levels: tuple[int, ...], outputs: int, drop: float = 0.1) -> None:
        super().__init__()
        self.numbers = numbers
        self.embed = nn.ModuleList(nn.Embedding(one, min(8, one // 2 + 1)) for one in levels)
        inside = numbers + sum(one.embedding_dim for one in self.embed)
        self.body = stack((inside, 64, 32, outputs), nn.ReLU, drop=lambda: nn.Dropout(drop))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kinds = x[:, self.numbers :].long()
        found = [one(kinds[:, place]) for place, one in enumerate(self.embed)]
        return self.body(torch.cat([x[:, : self.numbers], *found], 1))


class Periodic(nn.Module):
    """Sine and cosine of each number at rates that are learnt (Gorishniy et al., 2022)."""

    def __init__(self, inside: int, outputs: int, rates: int = 6, width: int = 64) -> None:
        super().__init__()
        self.rates = nn.Parameter(0.15 * torch.randn(inside, rates))
        self.body = stack(
            (2 * inside * rates, width, width // 2, outputs), nn.ReLU, drop=lambda: nn.Dropout(0.1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turn = (2 * math.pi * x[..., None] * self.rates).flatten(1)
        return self.body(torch.cat([turn.sin(), turn.cos()], 1))


class Grown(nn.Module):
    """Each layer sees the columns and all layers before it (after Huang et al., 2017)."""

    def __init__(self, inside: int, outputs: int, width: int = 28, depth: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(inside + width * place, width) for place in range(depth))
        self.act, self.head = nn.ReLU(), nn.Linear(inside + width * depth, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.cat([x, self.act(layer(x))], 1)
        return self.head(x)


class Gated(nn.Module):
    """Residual blocks of which one half opens the other, smoothly (Shazeer, 2020)."""

    def __init__(self, inside: int, outputs: int, width: int = 40, depth: int = 2) -> None:
        super().__init__()
        self.stem = nn.Linear(inside, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.up = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(depth))
        self.down = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(depth))
        self.act, self.drop = nn.SiLU(), nn.Dropout(0.1)
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for norm, up, down in zip(self.norms, self.up, self.down, strict=True):
            told, open_ = up(norm(x)).chunk(2, 1)
            x = x + self.drop(down(told * self.act(open_)))
        return self.head(self.last(x))


class Squeezed(nn.Module):
    """Convolutions whose channels are weighed by what is in the whole picture (Hu et al., 2018)."""

    def __init__(self, inside: int, outputs: int, width: int = 16) -> None:
        super().__init__()
        self.looks, self.weighs = nn.ModuleList(), nn.ModuleList()
        for wide in (width, 2 * width):
            self.looks.append(nn.Sequential(
                nn.Conv2d(inside, wide, 3, padding=1, bias=False), nn.BatchNorm2d(wide), nn.ReLU(),
                nn.MaxPool2d(2),
            ))  # fmt: skip
            self.weighs.append(nn.Sequential(
                nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, wide // 4), nn.ReLU(),
                nn.Linear(wide // 4, wide), nn.Sigmoid(),
            ))  # fmt: skip
            inside = wide
        self.flat, self.drop, self.head = nn.Flatten(), nn.Dropout(0.3), nn.Linear(18 * width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for look, weigh in zip(self.looks, self.weighs, strict=True):
            x = look(x)
            x = x * weigh(x)[..., None, None]
        return self.head(self.drop(self.flat(x)))


class Branches(nn.Module):
    """Small, middle and wide looks side by side (after Szegedy et al., 2015), and a dense layer."""

    def __init__(self, inside: int, outputs: int, width: int = 6, hidden: int = 48) -> None:
        super().__init__()
        self.first = nn.ModuleList(nn.Conv2d(inside, width, one, padding=one // 2) for one in (1, 3, 5))
        self.second = nn.ModuleList(nn.Conv2d(3 * width, width, one, padding=one // 2) for one in (1, 3, 5))
        self.act, self.pool = nn.ReLU(), nn.MaxPool2d(2)
        self.mix, self.relu, self.head = nn.Linear(27 * width, hidden), nn.ReLU(), nn.Linear(hidden, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for branches in (self.first, self.second):
            x = self.pool(self.act(torch.cat([one(x) for one in branches], 1)))
        return self.head(self.relu(self.mix(x.flatten(1))))


class Outline(nn.Module):
    """Down to half the side and up again, with what was seen before beside it (Ronneberger et al., 2015)."""

    def __init__(self, inside: int, outputs: int, width: int = 10) -> None:
        super().__init__()

        def look(narrow: int, wide: int) -> nn.Sequential:
            return nn.Sequential(nn.Conv2d(narrow, wide, 3, padding=1), nn.GroupNorm(2, wide), nn.ReLU())

        self.near, self.pool, self.far = look(inside, width), nn.MaxPool2d(2), look(width, 2 * width)
        self.up, self.both = nn.ConvTranspose2d(2 * width, width, 2, 2), look(2 * width, width)
        self.head = nn.Conv2d(width, outputs, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        near = self.near(x)
        return self.head(self.both(torch.cat([near, self.up(self.far(self.pool(near)))], 1)))


def upsampling(width: int = 12, code: int = 0) -> nn.Sequential:
    """Convolutions to 7 x 7 and back by repeated pixels; through a dense code where one is asked for."""
    narrow = [nn.Flatten(), nn.Linear(98 * width, code), nn.Linear(code, 98 * width), nn.ReLU(),
              nn.Unflatten(1, (2 * width, 7, 7))] if code else []  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(),
        *narrow, nn.Upsample(scale_factor=2), nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU(),
        nn.Conv2d(width, 1, 3, padding=1),
    )  # fmt: skip
