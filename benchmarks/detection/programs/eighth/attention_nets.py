"""Transformers of the eighth set: attention that fades with distance."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Fading"]


class _Block(nn.Module):
    """Attention with a share of the distance taken off its scores (ALiBi), and a dense net, behind norms."""

    def __init__(self, width: int, heads: int, drop: float, act: type[nn.Module]) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.softmax, self.drop = nn.Softmax(dim=-1), nn.Dropout(drop)
        self.dense = nn.Sequential(nn.Linear(width, 3 * width), act(), nn.Linear(3 * width, width))
        self.heads, self.sharpness = heads, (heads / width) ** 0.5

    def forward(self, x: torch.Tensor, off: torch.Tensor) -> torch.Tensor:
        h = self.norm1(x)
        q, k, v = (
            one(h).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        shares = self.softmax(self.sharpness * q @ k.transpose(2, 3) + off)
        x = x + self.drop(self.out((shares @ v).transpose(1, 2).flatten(2)))
        return x + self.drop(self.dense(self.norm2(x)))


class Fading(nn.Module):
    """Blocks over what a first layer makes of the input (Press et al., 2022); 0 pads where it is of words.

    Tells ``"each"`` place (N, outputs, L), the ``"last"`` or the ``"mean"`` of all: (N, outputs).
    """

    def __init__(
        self, first: nn.Module, outputs: int, width: int = 32, heads: int = 4, depth: int = 2, *,
        tells: str = "mean", causal: bool = False, drop: float = 0.0, act: type[nn.Module] = nn.GELU,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.tells, self.causal, self.heads = first, tells, causal, heads
        self.blocks = nn.ModuleList(_Block(width, heads, drop, act) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def _off(self, x: torch.Tensor, long: int) -> torch.Tensor:
        """What is added to the scores: (1 or N, heads, L, L)."""
        place = torch.arange(long)
        apart = (place[:, None] - place).abs() * 0.5 ** torch.arange(1, self.heads + 1)[:, None, None]
        hidden = (place[:, None] < place) & self.causal
        if not x.is_floating_point():
            hidden = hidden | (x == 0)[:, None, None]
        return torch.where(hidden, -1e4, -apart)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        off = self._off(x, h.shape[1])
        for block in self.blocks:
            h = block(h, off)
        h = self.norm(h)
        if self.tells == "last":
            return self.head(h[:, -1])
        if self.tells == "each":
            return self.head(h).transpose(1, 2)
        there = torch.ones(h.shape[:2]) if x.is_floating_point() else (x != 0).to(h.dtype)
        return self.head((h * there[..., None]).sum(1) / there.sum(1, keepdim=True))
