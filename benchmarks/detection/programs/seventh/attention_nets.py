"""Transformers of the seventh set: blocks as in Llama, encoders, and what comes before."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Columns", "Headed", "Llama", "Patches", "Scanned", "Sorted"]


def _turned(x: torch.Tensor) -> torch.Tensor:
    """Rotary places: pairs of numbers (N, heads, L, size) turned by how far along they are."""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[2])[:, None] * 100.0 ** (-torch.arange(half) / half)
    one, two = x.chunk(2, -1)
    return torch.cat([one * angle.cos() - two * angle.sin(), one * angle.sin() + two * angle.cos()], -1)


class _Block(nn.Module):
    """Attention with rotary places, and a gated feed-forward net, each behind a norm."""

    def __init__(self, width: int, heads: int, drop: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.softmax, self.drop, self.act = nn.Softmax(dim=-1), nn.Dropout(drop), nn.SiLU()
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)
        self.heads, self.sharpness = heads, (heads / width) ** 0.5

    def forward(self, x: torch.Tensor, hidden: torch.Tensor | None) -> torch.Tensor:
        h = self.norm1(x)
        q, k, v = (
            one(h).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        scores = self.sharpness * _turned(q) @ _turned(k).transpose(2, 3)
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        x = x + self.drop(self.out((self.softmax(scores) @ v).transpose(1, 2).flatten(2)))
        h = self.norm2(x)
        return x + self.drop(self.down(self.act(self.gate(h)) * self.up(h)))


class Llama(nn.Module):
    """Blocks over what a first layer makes of it: (N, outputs, L), or of the last place (N, outputs)."""

    def __init__(
        self, first: nn.Module, outputs: int, width: int = 32, heads: int = 4, depth: int = 2, *,
        tells: str = "each", causal: bool = True, drop: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.tells, self.causal = first, tells, causal
        self.blocks = nn.ModuleList(_Block(width, heads, drop) for _ in range(depth))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        hidden = torch.ones(h.shape[1], h.shape[1]).triu(1).bool() if self.causal else None
        for block in self.blocks:
            h = block(h, hidden)
        if self.tells == "last":
            return self.head(self.norm(h[:, -1]))
        return self.head(self.norm(h)).transpose(1, 2)


class Patches(nn.Module):
    """Squares of a picture (N, C, H, W) by a convolution: (N, squares, width)."""

    def __init__(self, inputs: int, side: int, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, width, side, side)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x).flatten(2).transpose(1, 2)


class Columns(nn.Module):
    """Each column of a table as a vector of its own (Gorishniy et al., 2021): (N, columns, width)."""

    def __init__(self, columns: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns, width) / width**0.5)
        self.bias = nn.Parameter(torch.randn(columns, width) / width**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[..., None] * self.weight + self.bias


class Scanned(nn.Module):
    """Letters (N, L) seen by a convolution, and the most of every few places: (N, L / pool, width)."""

    def __init__(self, letters: int, width: int, size: int = 7, pool: int = 4) -> None:
        super().__init__()
        self.embed, self.conv = nn.Embedding(letters, 8), nn.Conv1d(8, width, size, padding=size // 2)
        self.relu, self.pool = nn.ReLU(), nn.MaxPool1d(pool)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(self.relu(self.conv(self.embed(x).transpose(1, 2)))).transpose(1, 2)


class Headed(nn.Module):
    """PyTorch's encoder over what a first layer makes of the input, told by a token of its own (ViT)."""

    def __init__(
        self, first: nn.Module, outputs: int, length: int, width: int = 32, heads: int = 4, depth: int = 2,
        drop: float = 0.0, act: str = "gelu",
    ) -> None:  # fmt: skip
        super().__init__()
        self.first = first
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.place = nn.Parameter(0.02 * torch.randn(length + 1, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, drop, act, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        h = torch.cat([self.token.expand(len(h), -1, -1), h], 1) + self.place
        return self.head(self.norm(self.encoder(h)[:, 0]))


class Sorted(nn.Module):
    """PyTorch's encoder over words (0 pads), and the mean of all that are there, through a dense layer."""

    def __init__(self, words: int, outputs: int, length: int, width: int = 32, drop: float = 0.1) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.place = nn.Parameter(0.02 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(
            width, 2, 3 * width, drop, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.mix, self.relu, self.head = nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        empty = x == 0
        h = self.encoder(self.embed(x) + self.place, src_key_padding_mask=empty)
        h = h.masked_fill(empty[..., None], 0.0).sum(1) / (~empty).sum(1, keepdim=True).clamp(min=1)
        return self.head(self.relu(self.mix(h)))
