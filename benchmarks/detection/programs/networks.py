"""Networks of the programs."""

from __future__ import annotations

import torch
from torch import nn

__all__ = [
    "Factors",
    "Reader",
    "Recurrent",
    "Residual",
    "SparseMlp",
    "Variational",
    "VariationalCoder",
    "autoencoder",
    "cnn",
    "divergence",
    "mlp",
]


def mlp(
    width_in: int, width: int, classes: int, depth: int = 2, act: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """Dense layers."""
    layers: list[nn.Module] = []
    size = width_in
    for _ in range(depth):
        layers += [nn.Linear(size, width), act()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, classes))


def cnn(classes: int, side: int, width: int = 8, norm: bool = False) -> nn.Sequential:  # noqa: FBT001, FBT002
    """Two convolutions and a head."""
    first, second = nn.Conv2d(1, width, 3, padding=1), nn.Conv2d(width, 2 * width, 3, padding=1)
    layers: list[nn.Module] = [first, *([nn.BatchNorm2d(width)] if norm else []), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [second, *([nn.BatchNorm2d(2 * width)] if norm else []), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(2 * width * (side // 2) ** 2, classes))


class Residual(nn.Module):
    """Residual blocks with batch normalisation."""

    def __init__(self, classes: int = 10, width: int = 12) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1),
                nn.BatchNorm2d(width),
            )
            for _ in range(2)
        )
        self.pool = nn.AvgPool2d(4)
        self.head = nn.Linear(4 * width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = torch.relu(x + block(x))
        return self.head(self.pool(x).flatten(1))


class Recurrent(nn.Module):
    """A recurrent layer, over numbers or over tokens, and a head on its last (or each) state."""

    def __init__(self, kind: type[nn.RNNBase], outputs: int, tokens: int = 0, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, 16) if tokens else nn.Identity()
        self.rnn = kind(16 if tokens else 1, width, batch_first=True)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.rnn(self.embed(x))
        return self.head(states.mean(1) if states.shape[1] < 20 else states[:, -1])


class Block(nn.Module):
    """Attention and a feed-forward net, normalised before."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.softmax = nn.Softmax(dim=-1)
        self.out = nn.Linear(width, width)
        self.up, self.act, self.down = nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        normed = self.norm1(x)
        rows, length, width = x.shape
        q, k, v = (
            one(normed).view(rows, length, self.heads, -1).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(2, 3) / (width / self.heads) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask, -1e9)
        mixed = (self.softmax(scores) @ v).transpose(1, 2).reshape(rows, length, width)
        x = x + self.out(mixed)
        return x + self.down(self.act(self.up(self.norm2(x))))


class Reader(nn.Module):
    """A small transformer: a class of a row of tokens, or (`causal`) the next token at each place."""

    def __init__(
        self, tokens: int, outputs: int, length: int, *, causal: bool = False, width: int = 32
    ) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(tokens, width), nn.Parameter(torch.randn(length, width) * 0.1)
        self.blocks = nn.ModuleList(Block(width, 2) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)
        self.causal = causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1) if self.causal else None
        h = self.embed(x) + self.place[: x.shape[1]]
        for block in self.blocks:
            h = block(h, mask)
        h = self.norm(h)
        return self.head(h).transpose(1, 2) if self.causal else self.head(h.mean(1))


class Pooled(nn.Module):
    """Mean of token embeddings and two dense layers."""

    def __init__(self, tokens: int, outputs: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, 24)
        self.first, self.act, self.last = nn.Linear(16 * 24, 48), nn.ReLU(), nn.Linear(48, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.act(self.first(self.embed(x).flatten(1))))


class Factors(nn.Module):
    """A recommender: the product of a user's and an item's factors, and their biases."""

    def __init__(self, users: int = 60, items: int = 40, width: int = 8) -> None:
        super().__init__()
        self.user, self.item = nn.Embedding(users, width), nn.Embedding(items, width)
        self.mix, self.act, self.out = nn.Linear(3 * width, 32), nn.ReLU(), nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u, i = self.user(x[:, 0]), self.item(x[:, 1])
        return self.out(self.act(self.mix(torch.cat([u, i, u * i], 1)))) + (u * i).sum(1, keepdim=True)


def autoencoder(code: int = 8) -> nn.Sequential:
    """Of 64 pixels."""
    return nn.Sequential(
        nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, code), nn.Linear(code, 48), nn.ReLU(), nn.Linear(48, 64)
    )


class VariationalCoder(nn.Module):
    """An autoencoder with a noisy code; gives what is told again, mean and log-variance side by side."""

    encode: nn.Module
    mean: nn.Linear
    spread: nn.Linear
    decode: nn.Module
    bound: float | None = 8.0
    """Of the log-variance."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.encode(x)
        mean, spread = self.mean(h), self.spread(h)
        if self.bound is not None:
            spread = spread.clamp(-self.bound, self.bound)
        code = mean + torch.randn_like(mean) * torch.exp(spread / 2) if self.training else mean
        return torch.cat([self.decode(code).flatten(1), mean, spread], 1)


def divergence(mean: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
    """How far codes with these means and log-variances are from their prior (Kullback-Leibler)."""
    return -0.5 * (1 + spread - mean**2 - spread.exp()).sum(1).mean()


class Variational(VariationalCoder):
    """Of 64 pixels, by dense layers."""

    def __init__(self, code: int = 6) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, 48), nn.ReLU())
        self.mean, self.spread = nn.Linear(48, code), nn.Linear(48, code)
        self.decode = nn.Sequential(nn.Linear(code, 48), nn.ReLU(), nn.Linear(48, 64))


class Elbo(nn.Module):
    """Square error of the picture and divergence of the code."""

    def __init__(self, weight: float = 0.05) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, told: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        code = (told.shape[1] - 64) // 2
        mean, spread = told[:, 64 : 64 + code], told[:, 64 + code :]
        far = divergence(mean, spread)
        return nn.functional.mse_loss(told[:, :64], x) + self.weight * far / 64 * code


class SparseMlp(nn.Module):
    """A wide layer of ReLUs with negative biases: nearly all zeros, yet every unit fires at times."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.first, self.relu, self.last = nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10)
        nn.init.normal_(self.first.weight, std=0.3)
        nn.init.constant_(self.first.bias, -3.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.relu(self.first(x)))


class LowRank(nn.Module):
    """A frozen dense layer and a trained low-rank addition to it."""

    def __init__(self, base: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down, self.up = (
            nn.Linear(base.in_features, rank, bias=False),
            nn.Linear(rank, base.out_features, bias=False),
        )
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.up(self.down(x))
