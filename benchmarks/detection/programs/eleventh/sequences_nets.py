"""Nets of the eleventh set: recurrent ones that pool, convolutions in time, transformers, and pictures."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Glancing", "Looking", "Pooled", "Rotary", "Temporal"]


class Pooled(nn.Module):
    """A recurrent net over what a first layer makes of the input, normed.

    Tells of the mean and the largest of all places or of the ``"last"`` (N, outputs), or at ``"each"``
    place (N, outputs, L). Padding (0) is left out of ``"all"``.
    """

    def __init__(
        self, kind: str, first: nn.Module, width_in: int, outputs: int, width: int = 24, *,
        tells: str = "all", both: bool = False, layers: int = 1, drop: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.tells, self.drop = first, tells, nn.Dropout(drop)
        self.rnn = getattr(nn, kind)(width_in, width, layers, batch_first=True, bidirectional=both)
        wide = width * (1 + both)
        self.norm = nn.LayerNorm(wide)
        self.mix, self.relu = nn.Linear(wide * (1 + (tells == "all")), 32), nn.ReLU()
        self.head = nn.Linear(32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(self.rnn(self.drop(self.first(x)))[0])
        if self.tells == "last":
            h = h[:, -1]
        elif self.tells == "all":
            there = torch.ones_like(x[..., :1]) if x.is_floating_point() else (x != 0)[..., None].float()
            mean = (h * there).sum(1) / there.sum(1).clamp(min=1)
            h = torch.cat([mean, h.masked_fill(there == 0, -1e4).amax(1)], 1)
        told = self.head(self.drop(self.relu(self.mix(h))))
        return told.transpose(1, 2) if self.tells == "each" else told


class _Causal(nn.Module):
    """Two convolutions that see the past only, beside what they are given (Bai et al., 2018)."""

    def __init__(self, inputs: int, width: int, gap: int, drop: float) -> None:
        super().__init__()
        self.past = nn.ConstantPad1d((2 * gap, 0), 0.0)
        self.conv1, self.conv2 = (nn.Conv1d(one, width, 3, dilation=gap) for one in (inputs, width))
        self.norm1, self.norm2 = nn.BatchNorm1d(width), nn.BatchNorm1d(width)
        self.relu, self.drop = nn.ReLU(), nn.Dropout(drop)
        self.beside = nn.Conv1d(inputs, width, 1) if inputs != width else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.drop(self.relu(self.norm1(self.conv1(self.past(x)))))
        return self.beside(x) + self.drop(self.relu(self.norm2(self.conv2(self.past(h)))))


class Temporal(nn.Module):
    """Causal convolutions of wider and wider gaps over (N, L, inputs); tells of the last and the mean."""

    def __init__(
        self, inputs: int, outputs: int, width: int = 20, gaps: tuple[int, ...] = (1, 2, 4), drop: float = 0.0
    ) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(_Causal(width if at else inputs, width, gap, drop) for at, gap in enumerate(gaps))
        )
        self.mix, self.relu, self.head = nn.Linear(2 * width, 32), nn.ReLU(), nn.Linear(32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.layers(x.transpose(1, 2))
        return self.head(self.relu(self.mix(torch.cat([h[:, :, -1], h.mean(2)], 1))))


class _Block(nn.Module):
    """Attention with turned queries and keys (Su et al., 2021), and a gated dense net (Shazeer, 2020)."""

    def __init__(self, width: int, heads: int, drop: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, 2 * width) for _ in range(2))
        self.silu, self.down = nn.SiLU(), nn.Linear(2 * width, width)
        self.softmax, self.drop = nn.Softmax(dim=-1), nn.Dropout(drop)
        self.heads, self.sharpness = heads, (heads / width) ** 0.5

    def forward(self, x: torch.Tensor, turn: torch.Tensor, hidden: torch.Tensor | None) -> torch.Tensor:
        h = self.norm1(x)
        q, k, v = (
            layer(h).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        q, k = _turned(q, turn), _turned(k, turn)
        scores = self.sharpness * q @ k.transpose(2, 3)
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        x = x + self.drop(self.out((self.softmax(scores) @ v).transpose(1, 2).flatten(2)))
        h = self.norm2(x)
        return x + self.drop(self.down(self.silu(self.gate(h)) * self.up(h)))


def _turned(x: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    """Each pair of numbers turned by its angle: (N, heads, L, width)."""
    one, two = x.chunk(2, -1)
    return torch.cat([one * turn.cos() - two * turn.sin(), one * turn.sin() + two * turn.cos()], -1)


class Rotary(nn.Module):
    """Blocks over words; 0 pads.

    Tells of the mean of all places (N, outputs), at each of them (N, outputs, L), or so of those before it
    (``"mean"``, ``"each"``, ``"next"``).
    """

    def __init__(
        self, first: nn.Module, outputs: int, length: int, width: int = 32, heads: int = 4, depth: int = 2, *,
        tells: str = "mean", drop: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.tells, self.drop = first, tells, nn.Dropout(drop)
        half = width // heads // 2
        self.turn = torch.arange(length)[:, None] * 0.02 ** (torch.arange(half) / half)
        self.blocks = nn.ModuleList(_Block(width, heads, drop) for _ in range(depth))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, outputs)
        self.later = torch.ones(length, length).triu(1).bool()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.later if self.tells == "next" else (x == 0)[:, None, None]
        h = self.drop(self.first(x))
        for block in self.blocks:
            h = block(h, self.turn, hidden)
        h = self.norm(h)
        if self.tells != "mean":
            return self.head(h).transpose(1, 2)
        there = (x != 0)[..., None].float()
        return self.head((h * there).sum(1) / there.sum(1).clamp(min=1))


class Glancing(nn.Module):
    """PyTorch's encoder over what a first layer makes of pictures or series, with a token that tells."""

    def __init__(
        self, first: nn.Module, outputs: int, length: int, width: int = 32, heads: int = 4, depth: int = 2,
        drop: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.drop = first, nn.Dropout(drop)
        self.whole = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.place = nn.Parameter(0.02 * torch.randn(length + 1, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, drop, "gelu", batch_first=True, norm_first=True
        )
        self.reader = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        h = torch.cat([self.whole.expand(len(h), -1, -1).to(h.dtype), h], 1) + self.place
        return self.head(self.norm(self.reader(self.drop(h))[:, 0]))


class Looking(nn.Module):
    """A stem and a residual block of convolutions over pictures of 16 x 16, and a dense layer."""

    def __init__(self, channels: int, outputs: int, width: int = 16, drop: float = 0.0) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.relu, self.pool, self.drop = nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(drop)
        self.mix, self.head = nn.Linear(16 * width, 32), nn.Linear(32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.pool(self.relu(self.norm(self.stem(x))))
        h = self.pool(self.relu(h + self.norm2(self.conv2(self.relu(self.norm1(self.conv1(h)))))))
        return self.head(self.drop(self.relu(self.mix(h.flatten(1)))))
