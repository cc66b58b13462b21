"""Transformers of the sixth set: one made of blocks, one of PyTorch's layers, and one over sets."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.programs.fifth.attention_nets import Block

__all__ = ["Attentive", "Begun", "Gathered", "Tiles", "Windows"]


class Tiles(nn.Module):
    """Squares of a picture (N, C, H, W) as rows: (N, tiles, C * side * side)."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.unfold(x, self.side, stride=self.side).transpose(1, 2)


class Windows(nn.Module):
    """A series (N, L, C) in pieces: (N, L / size, size * C)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(1, (-1, self.size)).flatten(2)


class Attentive(nn.Module):
    """Blocks of attention over what a first layer makes of the input, with learnt places.

    Tells of the mean (N, outputs), or at each place: (N, L, outputs), and (N, outputs, L) for ``"classes"``.
    """

    def __init__(
        self, first: nn.Module, outputs: int, length: int, width: int = 32, heads: int = 4, depth: int = 2,
        *, drop: float = 0.0, causal: bool = False, tells: str = "mean", act: type[nn.Module] = nn.GELU,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.tells = first, tells
        self.place, self.drop = nn.Parameter(0.02 * torch.randn(length, width)), nn.Dropout(drop)
        self.blocks = nn.ModuleList(Block(width, heads, drop, act) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)
        self.hidden = torch.ones(length, length).triu(1).bool() if causal else None
        for one in self.modules():
            if isinstance(one, nn.Embedding):
                nn.init.normal_(one.weight, std=0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.drop(self.first(x) + self.place)
        for block in self.blocks:
            h = block(h, self.hidden)
        h = self.norm(h)
        if self.tells == "mean":
            return self.head(h.mean(1))
        told = self.head(h)
        return told.transpose(1, 2) if self.tells == "classes" else told


class Begun(nn.Module):
    """PyTorch's encoder, normalised before each part, over words; told by the first of them (BERT)."""

    def __init__(
        self, words: int, outputs: int, length: int, width: int = 32, depth: int = 2, drop: float = 0.1,
        act: str = "gelu",
    ) -> None:  # fmt: skip
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.place = nn.Parameter(0.02 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, drop, act, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.encoder(self.embed(x) + self.place, src_key_padding_mask=x == 0)
        return self.head(h[:, 0])


class Gathered(nn.Module):
    """Points one by one, then what a learnt question finds in all of them (pooling by attention)."""

    def __init__(self, inputs: int, outputs: int, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.among = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ask = nn.Parameter(0.1 * torch.randn(1, 2, width))
        self.look = nn.MultiheadAttention(width, heads, batch_first=True)
        self.top = nn.Sequential(nn.Linear(2 * width, 48), nn.ReLU(), nn.Linear(48, outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.each(x)
        n = self.norm1(h)
        h = h + self.among(n, n, n, need_weights=False)[0]
        n = self.norm2(h)
        return self.top(self.look(self.ask.expand(len(x), -1, -1), n, n, need_weights=False)[0].flatten(1))
