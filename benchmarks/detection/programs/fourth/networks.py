"""Networks of the fourth held-out set for tables and pictures."""

from __future__ import annotations

import torch
from torch import nn

__all__ = [
    "Counting", "Growing", "Masked", "Mixtures", "Modern", "Ordered", "Patches", "Plain", "Ranking",
    "Springs", "Switch", "Tasks", "Together", "UNet", "Waves", "normal_tower",
]  # fmt: skip


def normal_tower(
    width_in: int, outputs: int, widths: tuple[int, ...], act: type[nn.Module], drop: float = 0.0
):
    """Dense layers, each with batch normalisation before its activation."""
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(width_in, width, bias=False), nn.BatchNorm1d(width), act()]
        layers += [nn.Dropout(drop)] if drop else []
        width_in = width
    return nn.Sequential(*layers, nn.Linear(width_in, outputs))


class Ordered(nn.Module):
    """A score, and for each of some rising limits the logit that it is above."""

    def __init__(self, width_in: int, levels: int, width: int = 48) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width_in, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.score, self.first = nn.Linear(width, 1), nn.Parameter(torch.tensor([-1.5]))
        self.gaps = nn.Parameter(torch.zeros(levels - 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = nn.functional.softplus(self.gaps).cumsum(0)
        return self.score(self.body(x)) - torch.cat([self.first, self.first + steps])


class Mixtures(nn.Module):
    """Shares, means and log-spreads of four bells, side by side."""

    def __init__(self, width_in: int, bells: int = 4, width: int = 48) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width_in, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.shares, self.means, self.spreads = (nn.Linear(width, bells) for _ in range(3))
        nn.init.uniform_(self.means.bias, -1.5, 1.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        return torch.cat([self.shares(h), self.means(h), self.spreads(h)], 1)


class Ranking(nn.Module):
    """A score for each of some documents, by itself and by what the others are like."""

    def __init__(self, width_in: int, width: int = 32) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Linear(width_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(2 * width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.each(x)
        return self.head(torch.cat([h, h.mean(1, keepdim=True).expand_as(h)], 2))[..., 0]


class Tasks(nn.Module):
    """One body, and a head for an amount and one for a kind, side by side."""

    def __init__(self, width_in: int, kinds: int, width: int = 48) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width_in, width), nn.Mish(), nn.Linear(width, width), nn.Mish())
        self.amount, self.kind = nn.Linear(width, 1), nn.Linear(width, kinds)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        return torch.cat([self.amount(h), self.kind(h)], 1)


class Switch(nn.Module):
    """Each row goes to one of four experts; what the gate thinks of them is told beside the answer."""

    def __init__(self, width_in: int, outputs: int, count: int = 4, width: int = 24) -> None:
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(width_in, 24), nn.ReLU(), nn.Linear(24, count))
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width_in, width), nn.ReLU(), nn.Linear(width, outputs))
            for _ in range(count)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shares = self.gate(x).softmax(1)
        best, chosen = shares.max(1, keepdim=True)
        told = torch.stack([one(x) for one in self.experts], 1)
        own = told.gather(1, chosen[..., None].expand(-1, -1, told.shape[2]))[:, 0]
        return torch.cat([best * own, shares], 1)


class Waves(nn.Module):
    """Fixed sines of random directions before dense layers (Fourier features)."""

    def __init__(self, width_in: int, outputs: int, waves: int = 32, width: int = 48) -> None:
        super().__init__()
        self.register_buffer("ways", 1.5 * torch.randn(width_in, waves))
        self.body = nn.Sequential(nn.Linear(2 * waves, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turned = x @ self.ways
        return self.head(self.body(torch.cat([turned.sin(), turned.cos()], 1)))


class Masked(nn.Module):
    """Mean and log-spread of each number by those before it (a masked autoregressive net)."""

    def __init__(self, numbers: int, width: int = 48) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(numbers, width), nn.Linear(width, width)
        self.mean, self.spread = nn.Linear(width, numbers), nn.Linear(width, numbers)
        self.act = nn.ELU()
        of = torch.arange(width) % (numbers - 1) + 1
        inputs = torch.arange(1, numbers + 1)
        self.register_buffer("into", (of[:, None] >= inputs).float())
        self.register_buffer("within", (of[:, None] >= of).float())
        self.register_buffer("out", (inputs[:, None] > of).float())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.act(nn.functional.linear(x, self.first.weight * self.into, self.first.bias))
        h = self.act(nn.functional.linear(h, self.second.weight * self.within, self.second.bias))
        mean = nn.functional.linear(h, self.mean.weight * self.out, self.mean.bias)
        spread = nn.functional.linear(h, self.spread.weight * self.out, self.spread.bias).clamp(-5, 3)
        return torch.cat([(x - mean) * torch.exp(-spread), spread], 1)


class Springs(nn.Module):
    """An energy of place and speed, and the motion that follows from its slopes."""

    def __init__(self, width: int = 40) -> None:
        super().__init__()
        self.energy = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            (slope,) = torch.autograd.grad(self.energy(x).sum(), x, create_graph=True)
        return torch.cat([slope[:, 1:], -slope[:, :1]], 1)


class _Two(nn.Sequential):
    """A convolution with group normalisation."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__(nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.SiLU())


class UNet(nn.Module):
    """Down twice, up twice, and across: a logit for each pixel of a 12 x 12 picture."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.down1, self.down2, self.deep = _Two(1, width), _Two(width, 2 * width), _Two(2 * width, 4 * width)
        self.pool = nn.MaxPool2d(2)
        self.up2, self.up1 = (
            nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
            nn.ConvTranspose2d(2 * width, width, 2, 2),
        )
        self.join2, self.join1 = _Two(4 * width, 2 * width), _Two(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.down1(x)
        two = self.down2(self.pool(one))
        h = self.join2(torch.cat([self.up2(self.deep(self.pool(two))), two], 1))
        return self.head(self.join1(torch.cat([self.up1(h), one], 1)))


class _Wide(nn.Module):
    """Depthwise, normalised over channels, widened and narrowed, scaled down at first (ConvNeXt)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.deep = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.norm, self.up, self.act = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.GELU()
        self.down, self.scale = nn.Linear(3 * width, width), nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(self.deep(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(self.act(self.up(h)))).permute(0, 3, 1, 2)


class Modern(nn.Module):
    """Patches of 2 x 2, two blocks, the mean, a normalisation and a head."""

    def __init__(self, inside: int, outputs: int, width: int = 20) -> None:
        super().__init__()
        self.stem, self.blocks = nn.Conv2d(inside, width, 2, 2), nn.Sequential(_Wide(width), _Wide(width))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.stem(x)).mean((2, 3))))


class _Look(nn.Module):
    """Attention of several heads and a feed-forward net, normalised before each."""

    def __init__(self, width: int, heads: int, drop: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.softmax, self.out, self.drop = nn.Softmax(dim=-1), nn.Linear(width, width), nn.Dropout(drop)
        self.up, self.act, self.down = nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        self.heads, self.sharpness = heads, 1.0

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        h, (rows, length, width) = self.norm1(x), x.shape
        q, k, v = (one(h).view(rows, length, self.heads, -1).transpose(1, 2)
                   for one in (self.query, self.key, self.value))  # fmt: skip
        scores = self.sharpness * (q @ k.transpose(2, 3)) / (width / self.heads) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask, -1e9)
        seen = (self.softmax(scores) @ v).transpose(1, 2).reshape(rows, length, width)
        x = x + self.drop(self.out(seen))
        return x + self.drop(self.down(self.act(self.up(self.norm2(x)))))


class Patches(nn.Module):
    """A vision transformer of 3 x 3 patches of a 12 x 12 picture, with a place of its own for the class."""

    def __init__(self, inside: int, outputs: int, width: int = 32, drop: float = 0.0) -> None:
        super().__init__()
        self.patch, self.token = nn.Conv2d(inside, width, 3, 3), nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.place = nn.Parameter(0.02 * torch.randn(1, 17, width))
        self.blocks = nn.ModuleList(_Look(width, 4, drop) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(len(h), -1, -1), h], 1) + self.place
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h[:, 0]))


class Counting(nn.Module):
    """What each place adds to a count, summed up over the picture."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.InstanceNorm2d(width, affine=True), nn.LeakyReLU(0.1),
            nn.Conv2d(width, width, 3, padding=1), nn.LeakyReLU(0.1),
        )  # fmt: skip
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.look(x)).mean((2, 3)) * 10 + 5


class _Around(nn.Module):
    """Two convolutions with batch normalisation and a way around, narrower by half where asked for."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)
        self.conv2, self.norm2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)
        self.relu = nn.ReLU()
        self.skip = nn.Conv2d(inside, outside, 1, stride, bias=False)
        nn.init.zeros_(self.norm2.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        return self.relu(h + self.skip(x))


class Plain(nn.Module):
    """A residual net of two stages; its last normalisation of each block begins at zero."""

    def __init__(self, inside: int, outputs: int, width: int = 10) -> None:
        super().__init__()
        self.stem, self.norm, self.relu = nn.Conv2d(inside, width, 3, 1, 1), nn.BatchNorm2d(width), nn.ReLU()
        self.blocks = nn.Sequential(_Around(width, width, 1), _Around(width, 2 * width, 2))
        self.pool, self.head = nn.AvgPool2d(3), nn.Linear(8 * width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.pool(self.blocks(self.relu(self.norm(self.stem(x))))).flatten(1))


class Growing(nn.Module):
    """Each layer sees all that were before it (DenseNet), without any normalisation."""

    def __init__(self, inside: int, outputs: int, growth: int = 8, depth: int = 3) -> None:
        super().__init__()
        sizes = [inside + growth * place for place in range(depth + 1)]
        self.layers = nn.ModuleList(nn.Conv2d(size, growth, 3, padding=1) for size in sizes[:-1])
        self.act, self.pool = nn.ELU(), nn.AvgPool2d(3)
        self.head = nn.Linear(16 * sizes[-1], outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for one in self.layers:
            x = torch.cat([x, self.act(one(x))], 1)
        return self.head(self.pool(x).flatten(1))


class Together(nn.Module):
    """A frozen dense layer with a low-rank addition to it."""

    def __init__(self, base: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down, self.up = (
            nn.Linear(base.in_features, rank, False),
            nn.Linear(rank, base.out_features, False),
        )
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + 2.0 * self.up(self.down(x))
