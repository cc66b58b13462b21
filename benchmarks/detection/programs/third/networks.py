"""Networks of the third held-out set for tables, pictures and points."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import nn

__all__ = [
    "Adapted", "Circles", "Clouds", "Compared", "Couplings", "Experts", "Few", "Moments", "Preactivated",
    "Sines", "Squeezed", "selfish", "tower",
]  # fmt: skip


def selfish(width_in: int, width: int, outputs: int, depth: int = 3) -> nn.Sequential:
    """SELUs, begun as they are meant to be, with the dropout that belongs to them."""
    layers: list[nn.Module] = []
    for place in range(depth):
        layers += [nn.Linear(width_in if place == 0 else width, width), nn.SELU(), nn.AlphaDropout(0.02)]
    layers.append(nn.Linear(width, outputs))
    for one in layers:
        if isinstance(one, nn.Linear):
            nn.init.normal_(one.weight, std=one.in_features**-0.5)
            nn.init.zeros_(one.bias)
    return nn.Sequential(*layers)


def tower(width_in: int, outputs: int, widths: tuple[int, ...], act: type[nn.Module], drop: float = 0.0):
    """Dense layers that become narrower, with dropout behind each."""
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(width_in, width), act(), nn.Dropout(drop)]
        width_in = width
    return nn.Sequential(*layers, nn.Linear(width_in, outputs))


class Few(nn.Module):
    """A wide layer of which only the eight largest units pass."""

    def __init__(self, width_in: int, width: int, outputs: int, most: int = 8) -> None:
        super().__init__()
        self.spread, self.relu, self.head = nn.Linear(width_in, width), nn.ReLU(), nn.Linear(width, outputs)
        self.most = most

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.relu(self.spread(x))
        least = h.topk(self.most, 1).values[:, -1:]
        return self.head(h * (h >= least))


class Experts(nn.Module):
    """Four small nets, and a gate that takes the best two for each row."""

    def __init__(self, width_in: int, outputs: int, count: int = 4, width: int = 16) -> None:
        super().__init__()
        self.gate = nn.Linear(width_in, count)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width_in, width), nn.SiLU(), nn.Linear(width, outputs))
            for _ in range(count)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.gate(x)
        low = scores.topk(2, 1).values[:, -1:]
        shares = scores.masked_fill(scores < low, -math.inf).softmax(1)
        told = torch.stack([one(x) for one in self.experts], 1)
        return (shares[..., None] * told).sum(1)


class Moments(nn.Module):
    """A mean and the logarithm of a variance, by two heads of one body."""

    def __init__(self, width_in: int, width: int = 40) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width_in, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.mean, self.spread = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        return torch.cat([self.mean(h), self.spread(h)], 1)


class Couplings(nn.Module):
    """A flow of points in the plane: where they come from, and by how much space was stretched."""

    def __init__(self, layers: int = 4, width: int = 24) -> None:
        super().__init__()
        self.nets = nn.ModuleList(
            nn.Sequential(
                nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)
            )
            for _ in range(layers)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        stretched = torch.zeros(len(x), 1)
        for place, net in enumerate(self.nets):
            kept, moved = (x[:, :1], x[:, 1:]) if place % 2 else (x[:, 1:], x[:, :1])
            scale, shift = net(kept).chunk(2, 1)
            scale = 2 * torch.tanh(scale / 2)
            moved = moved * scale.exp() + shift
            x = torch.cat([kept, moved] if place % 2 else [moved, kept], 1)
            stretched = stretched + scale
        return torch.cat([x, stretched], 1)


class Sines(nn.Module):
    """Sines of sines of a place (SIREN), begun as its authors do."""

    def __init__(self, width: int = 64, depth: int = 3, first: float = 8.0) -> None:
        super().__init__()
        sizes = [2, *[width] * depth]
        self.layers = nn.ModuleList(nn.Linear(one, two) for one, two in pairwise(sizes))
        self.head, self.first = nn.Linear(width, 1), first
        for place, one in enumerate(self.layers):
            bound = 0.5 if place == 0 else (6 / width) ** 0.5 / first
            nn.init.uniform_(one.weight, -bound, bound)
        nn.init.uniform_(self.head.weight, -((6 / width) ** 0.5) / first, (6 / width) ** 0.5 / first)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for one in self.layers:
            x = torch.sin(self.first * one(x))
        return self.head(x)


class _Bend(nn.Module):
    """Normalised and rectified before each convolution, with a way around."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(inside), nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(outside), nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.act, self.around = nn.ReLU(), nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.act(self.norm1(x))
        return self.around(h) + self.conv2(self.act(self.norm2(self.conv1(h))))


class Preactivated(nn.Module):
    """Two residual blocks, each halving the side of a picture."""

    def __init__(self, outputs: int, width: int = 12) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.blocks = nn.Sequential(_Bend(width, width, 2), _Bend(width, 2 * width, 2))
        self.norm, self.act = nn.BatchNorm2d(2 * width), nn.ReLU()
        self.head = nn.Linear(18 * width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.act(self.norm(self.blocks(self.stem(x)))).flatten(1))


class Squeezed(nn.Module):
    """Depthwise convolutions whose channels are weighed by what the whole picture shows."""

    def __init__(self, outputs: int, width: int = 24) -> None:
        super().__init__()
        self.stem, self.deep = (
            nn.Conv2d(1, width, 3, padding=1),
            nn.Conv2d(width, width, 3, 2, 1, groups=width),
        )
        self.norm, self.act = nn.GroupNorm(4, width), nn.GELU()
        self.weigh = nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, width), nn.Sigmoid())
        self.mix, self.head = nn.Conv2d(width, 32, 1), nn.Linear(32 * 4, outputs)
        self.pool = nn.AvgPool2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.act(self.norm(self.deep(self.act(self.stem(x)))))
        h = h * self.weigh(h.mean((2, 3)))[..., None, None]
        return self.head(self.pool(self.act(self.mix(h))).flatten(1))


class Compared(nn.Module):
    """One net for both of two pictures, and a judgement of how they differ."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.LeakyReLU(0.1), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.LeakyReLU(0.1), nn.Flatten(),
            nn.Linear(32 * width, 24),
        )  # fmt: skip
        self.mix, self.act, self.head = nn.Linear(24, 32), nn.LeakyReLU(0.1), nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        apart = (self.look(x[:, :1]) - self.look(x[:, 1:])).abs()
        return self.head(self.act(self.mix(apart)))


class Clouds(nn.Module):
    """A net for each point, the largest of all points, and a head."""

    def __init__(self, outputs: int, width: int = 32) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 2 * width), nn.ReLU())
        self.norm = nn.BatchNorm1d(2 * width)
        self.mix, self.act, self.head = nn.Linear(2 * width, 32), nn.ReLU(), nn.Linear(32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.act(self.mix(self.norm(self.each(x).amax(1)))))


class Circles(nn.Module):
    """Graph convolutions over all people at once; answers for those that are asked for."""

    def __init__(self, known: torch.Tensor, whom: torch.Tensor, outputs: int, width: int = 24) -> None:
        super().__init__()
        self.register_buffer("known", known)
        self.register_buffer("whom", whom)
        self.first, self.act, self.drop = nn.Linear(known.shape[1], width), nn.ReLU(), nn.Dropout(0.5)
        self.second = nn.Linear(width, outputs)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        h = self.drop(self.act(self.whom @ self.first(self.drop(self.known))))
        return (self.whom @ self.second(h))[rows]


class Adapted(nn.Module):
    """A frozen trunk and small trained bottlenecks beside its layers, zero at first."""

    def __init__(self, trunk: nn.Sequential, outputs: int, narrow: int = 12) -> None:
        super().__init__()
        self.trunk = trunk.requires_grad_(False)
        width = trunk[0].out_features
        self.beside = nn.ModuleList(
            nn.Sequential(nn.Linear(width, narrow), nn.GELU(), nn.Linear(narrow, width)) for _ in range(2)
        )
        for one in self.beside:
            nn.init.zeros_(one[2].weight)
            nn.init.zeros_(one[2].bias)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.trunk[1](self.trunk[0](x))
        h = h + self.beside[0](h)
        h = self.trunk[3](self.trunk[2](h))
        return self.head(h + self.beside[1](h))
