"""Networks of the held-out programs."""

from __future__ import annotations

import torch
from torch import nn

__all__ = [
    "Adder",
    "Basket",
    "BracketNet",
    "Counter",
    "Dilated",
    "Gated",
    "PatchReader",
    "Stairs",
    "denoiser",
    "normalised",
    "separable",
    "strided",
]


def normalised(width_in: int, width: int, outputs: int, act: type[nn.Module]) -> nn.Sequential:
    """Two hidden layers, each with a layer normalisation before its activation."""
    return nn.Sequential(
        nn.Linear(width_in, width), nn.LayerNorm(width), act(),
        nn.Linear(width, width), nn.LayerNorm(width), act(), nn.Linear(width, outputs),
    )  # fmt: skip


class Stairs(nn.Module):
    """Dense residual blocks with batch normalisation."""

    def __init__(self, width_in: int, width: int, outputs: int, depth: int = 4) -> None:
        super().__init__()
        self.stem = nn.Linear(width_in, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width)) for _ in range(depth)
        )
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Gated(nn.Module):
    """Gated linear units, with dropout."""

    def __init__(self, width_in: int, width: int, outputs: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width_in, 2 * width), nn.Linear(width, 2 * width)
        self.gate, self.drop, self.head = nn.GLU(), nn.Dropout(0.2), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.gate(self.second(self.gate(self.first(x))))))


def strided(side: int, outputs: int) -> nn.Sequential:
    """Strided convolutions with group normalisation."""
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1), nn.GroupNorm(3, 12), nn.SiLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.GroupNorm(3, 24), nn.SiLU(),
        nn.Flatten(), nn.Linear(24 * (side // 4) ** 2, outputs),
    )  # fmt: skip


def separable(outputs: int) -> nn.Sequential:
    """Depthwise separable convolutions of 8 x 8 pictures."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Hardswish(),
        nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.Conv2d(16, 32, 1), nn.BatchNorm2d(32), nn.Hardswish(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 16, outputs),
    )  # fmt: skip


def denoiser() -> nn.Sequential:
    """Down and up again by transposed convolutions, 8 x 8."""
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.ConvTranspose2d(16, 12, 2, stride=2), nn.ReLU(), nn.Conv2d(12, 1, 3, padding=1),
    )  # fmt: skip


class PatchReader(nn.Module):
    """A vision transformer of 2 x 2 patches of an 8 x 8 picture."""

    def __init__(self, outputs: int, width: int = 24) -> None:
        super().__init__()
        self.cut = nn.Conv2d(1, width, 2, stride=2)
        self.place = nn.Parameter(torch.randn(16, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, 2, 2 * width, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.cut(x).flatten(2).transpose(1, 2) + self.place
        return self.head(self.norm(self.body(tokens).mean(1)))


class Adder(nn.Module):
    """A GRU over pairs of numbers, read out at its end."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(2, width, batch_first=True), nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0][:, -1])


class BracketNet(nn.Module):
    """A bidirectional LSTM over tokens."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 8, padding_idx=0)
        self.rnn = nn.LSTM(8, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(self.embed(x))[0].amax(1))


class Counter(nn.Module):
    """PyTorch's own transformer encoder over tokens."""

    def __init__(self, tokens: int, outputs: int, length: int, width: int = 24) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.place = nn.Parameter(torch.randn(length, width) * 0.3)
        layer = nn.TransformerEncoderLayer(width, 2, 64, 0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.embed(x) + self.place).amax(1))


class Dilated(nn.Module):
    """Convolutions in time, each looking twice as far."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, width, 3, padding=1), nn.LeakyReLU(0.1),
            nn.Conv1d(width, width, 3, padding=2, dilation=2), nn.LeakyReLU(0.1),
            nn.Conv1d(width, width, 3, padding=4, dilation=4), nn.LeakyReLU(0.1),
        )  # fmt: skip
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(x)[..., -1])


class Basket(nn.Module):
    """The mean of item embeddings, and a head."""

    def __init__(self, items: int, outputs: int, width: int = 16) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(items, width, mode="mean")
        self.mix, self.act, self.head = nn.Linear(width, 32), nn.Mish(), nn.Linear(32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.act(self.mix(self.bag(x))))
