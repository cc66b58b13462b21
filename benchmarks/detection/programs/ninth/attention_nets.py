"""Transformers of the ninth set: relative places with parts side by side, and PyTorch's own, normed last."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Encoded", "Leaning"]


class _Block(nn.Module):
    """Attention with a weight that is learnt for each distance, beside a dense net, behind one norm."""

    def __init__(self, width: int, heads: int, length: int, drop: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        apart = torch.arange(1 - length, length).abs()
        self.lean = nn.Parameter(-apart * 2.0 ** -torch.arange(1, heads + 1)[:, None])
        self.softmax, self.drop = nn.Softmax(dim=-1), nn.Dropout(drop)
        self.dense = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))
        self.heads, self.sharpness = heads, (heads / width) ** 0.5

    def forward(self, x: torch.Tensor, apart: torch.Tensor, hidden: torch.Tensor | None) -> torch.Tensor:
        h = self.norm(x)
        q, k, v = (
            one(h).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        scores = self.sharpness * q @ k.transpose(2, 3) + self.lean[:, apart]
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        seen = self.out((self.softmax(scores) @ v).transpose(1, 2).flatten(2))
        return x + self.drop(seen + self.dense(h))


class Leaning(nn.Module):
    """Blocks with relative places (Raffel et al., 2020) and parts side by side (Wang and Komatsuzaki, 2021).

    Tells at each place (N, outputs, L), or of the last one (N, outputs).
    """

    def __init__(
        self, first: nn.Module, outputs: int, length: int, width: int = 32, heads: int = 4, depth: int = 2, *,
        causal: bool = True, each: bool = True, drop: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.each = first, each
        self.blocks = nn.ModuleList(_Block(width, heads, length, drop) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)
        place = torch.arange(length)
        self.apart = place[:, None] - place + length - 1
        self.hidden = torch.ones(length, length).triu(1).bool() if causal else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        for block in self.blocks:
            h = block(h, self.apart, self.hidden)
        told = self.head(self.norm(h if self.each else h[:, -1]))
        return told.transpose(1, 2) if self.each else told


class Encoded(nn.Module):
    """PyTorch's encoder, normed behind each part (Vaswani et al., 2017), with places as waves; 0 pads words.

    Tells at each place (N, outputs, L), or of the mean of all (N, outputs).
    """

    def __init__(
        self, first: nn.Module, outputs: int, length: int, width: int = 32, heads: int = 4, depth: int = 2, *,
        each: bool = False, drop: float = 0.1, act: str = "relu",
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.each, self.drop = first, each, nn.Dropout(drop)
        angle = torch.arange(length)[:, None] * 1e4 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("place", torch.cat([angle.sin(), angle.cos()], 1), persistent=False)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, drop, act, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        empty = None if x.is_floating_point() else x == 0
        h = self.encoder(self.drop(self.first(x) + self.place), src_key_padding_mask=empty)
        if self.each:
            return self.head(h).transpose(1, 2)
        if empty is None:
            return self.head(h.mean(1))
        there = (~empty)[..., None].to(h.dtype)
        return self.head((h * there).sum(1) / there.sum(1).clamp(min=1))
