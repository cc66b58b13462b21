"""Nets of the twelfth set: recurrent ones, convolutions that are parted, attention, and pictures."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

__all__ = ["Between", "Parted", "Recalling", "Shrinking"]


class Recalling(nn.Module):
    """A recurrent net over what a first layer makes of the input, with a way past it, normed.

    Tells of the ``"mean"`` of all places that are there (0 pads) or of the ``"last"`` (N, outputs), or at
    ``"each"`` place (N, outputs, L).
    """

    def __init__(
        self, kind: str, first: nn.Module, width_in: int, outputs: int, width: int = 24, *,
        tells: str = "mean", both: bool = False, layers: int = 1, drop: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.tells, self.drop = first, tells, nn.Dropout(drop)
        self.rnn = getattr(nn, kind)(width_in, width, layers, batch_first=True, bidirectional=both)
        wide = width * (1 + both)
        self.past, self.norm = nn.Linear(width_in, wide), nn.LayerNorm(wide)
        self.mix, self.relu, self.head = nn.Linear(wide, 40), nn.ReLU(), nn.Linear(40, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.drop(self.first(x))
        h = self.norm(self.rnn(h)[0] + self.past(h))
        if self.tells == "last":
            h = h[:, -1]
        elif self.tells == "mean":
            there = torch.ones_like(x[..., :1]) if x.is_floating_point() else (x != 0)[..., None].float()
            h = (h * there).sum(1) / there.sum(1).clamp(min=1)
        told = self.head(self.drop(self.relu(self.mix(h))))
        return told.transpose(1, 2) if self.tells == "each" else told


class _Parted(nn.Module):
    """A convolution in time for each channel alone, and one across them, beside what they are given."""

    def __init__(self, width: int, size: int, drop: float) -> None:
        super().__init__()
        self.along = nn.Conv1d(width, width, size, padding=size // 2, groups=width)
        self.across, self.norm = nn.Conv1d(width, width, 1), nn.BatchNorm1d(width)
        self.relu, self.drop = nn.ReLU(), nn.Dropout(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.relu(self.norm(self.across(self.along(x)))))


class Parted(nn.Module):
    """Parted convolutions over (N, L, inputs) at half the steps; tells of the mean, the most and the last."""

    def __init__(
        self, inputs: int, outputs: int, width: int = 24, depth: int = 3, size: int = 7, drop: float = 0.0
    ) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv1d(inputs, width, 5, 2, 2), nn.BatchNorm1d(width)
        self.layers = nn.Sequential(*(_Parted(width, size, drop) for _ in range(depth)))
        self.mix, self.relu, self.head = nn.Linear(3 * width, 40), nn.ReLU(), nn.Linear(40, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.layers(self.relu(self.norm(self.stem(x.transpose(1, 2)))))
        return self.head(self.relu(self.mix(torch.cat([h.mean(2), h.amax(2), h[:, :, -1]], 1))))


class _Between(nn.Module):
    """Attention and a dense net, each with a norm before it and a norm behind it (Ding et al., 2021)."""

    def __init__(self, width: int, heads: int, drop: float) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3, self.norm4 = (nn.LayerNorm(width) for _ in range(4))
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.gelu, self.down = nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        self.softmax, self.drop = nn.Softmax(dim=-1), nn.Dropout(drop)
        self.heads, self.sharpness = heads, (heads / width) ** 0.5

    def forward(self, x: torch.Tensor, hidden: torch.Tensor | None) -> torch.Tensor:
        h = self.norm1(x)
        q, k, v = (
            layer(h).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = self.sharpness * q @ k.transpose(2, 3)
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        x = x + self.drop(self.norm2(self.out((self.softmax(scores) @ v).transpose(1, 2).flatten(2))))
        return x + self.drop(self.norm4(self.down(self.gelu(self.up(self.norm3(x))))))


class Between(nn.Module):
    """Blocks over what a first layer makes of words (0 pads) or readings, with places that are learnt.

    Tells of the ``"mean"`` of all places (N, outputs), or at each of those before it (``"next"``).
    """

    def __init__(
        self, first: nn.Module, outputs: int, length: int, width: int = 32, heads: int = 4, depth: int = 2, *,
        tells: str = "mean", drop: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.tells, self.drop = first, tells, nn.Dropout(drop)
        self.place = nn.Parameter(0.1 * torch.randn(length, width))
        self.blocks = nn.ModuleList(_Between(width, heads, drop) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)
        self.hidden = torch.ones(length, length).triu(1).bool()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        words = not x.is_floating_point()
        hidden = self.hidden if self.tells == "next" else (x == 0)[:, None, None] if words else None
        h = self.drop(self.first(x) + self.place)
        for block in self.blocks:
            h = block(h, hidden)
        h = self.norm(h)
        if self.tells == "next":
            return self.head(h).transpose(1, 2)
        if not words:
            return self.head(h.mean(1))
        there = (x != 0)[..., None].float()
        return self.head((h * there).sum(1) / there.sum(1).clamp(min=1))


class Shrinking(nn.Module):
    """Three convolutions over pictures of 16 x 16, two of them with a stride of two, and a dense layer."""

    def __init__(self, channels: int, outputs: int, width: int = 12, drop: float = 0.0) -> None:
        super().__init__()
        wide = (channels, width, 2 * width, 3 * width)
        self.conv1, self.conv2, self.conv3 = (
            nn.Conv2d(one, two, 3, 2 if at else 1, 1) for at, (one, two) in enumerate(pairwise(wide))
        )
        self.norm1, self.norm2, self.norm3 = (nn.BatchNorm2d(one) for one in wide[1:])
        self.relu, self.drop = nn.ReLU(), nn.Dropout(drop)
        self.mix, self.head = nn.Linear(48 * width, 32), nn.Linear(32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.relu(self.norm1(self.conv1(x)))
        h = self.relu(self.norm2(self.conv2(h)))
        h = self.relu(self.norm3(self.conv3(h)))
        return self.head(self.relu(self.mix(self.drop(h.flatten(1)))))
