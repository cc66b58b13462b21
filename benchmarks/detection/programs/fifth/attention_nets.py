"""Transformers of the fifth set: decoders, encoders, both together, and over patches."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Block", "Glimpses", "Patched", "Reading", "Rewriting", "Visiting", "Writing"]


class Block(nn.Module):
    """Attention of several heads and a feed-forward net, with dropout in both; normalised before."""

    def __init__(self, width: int, heads: int, drop: float, act: type[nn.Module] = nn.GELU) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.softmax, self.seen, self.out = nn.Softmax(dim=-1), nn.Dropout(drop), nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.Linear(width, 3 * width), act(), nn.Linear(3 * width, width), nn.Dropout(drop)
        )
        self.heads, self.sharpness = heads, (heads / width) ** 0.5

    def forward(self, x: torch.Tensor, hidden: torch.Tensor | None = None) -> torch.Tensor:
        h = self.norm1(x)
        q, k, v = (one(h).unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for one in (self.query, self.key, self.value))  # fmt: skip
        scores = self.sharpness * q @ k.transpose(2, 3)
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        x = x + self.out((self.seen(self.softmax(scores)) @ v).transpose(1, 2).flatten(2))
        return x + self.feed(self.norm2(x))


def _later(length: int) -> torch.Tensor:
    return torch.triu(torch.ones(length, length, dtype=torch.bool), 1)


class Writing(nn.Module):
    """The next character at each place: (N, characters, L)."""

    def __init__(self, letters: int, length: int, width: int = 40, drop: float = 0.1) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.drop = nn.Dropout(drop)
        self.blocks = nn.ModuleList(Block(width, 4, drop) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)
        for one in self.modules():
            if isinstance(one, nn.Linear | nn.Embedding):
                nn.init.normal_(one.weight, std=0.05)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.drop(self.embed(x) + self.place.weight[: x.shape[1]])
        for block in self.blocks:
            h = block(h, _later(x.shape[1]))
        return self.head(self.norm(h)).transpose(1, 2)


class Rewriting(nn.Module):
    """PyTorch's own encoder and decoder: reads the first places, writes what the others begin."""

    def __init__(self, letters: int, read: int, length: int, width: int = 40) -> None:
        super().__init__()
        self.read = read
        self.embed, self.place = nn.Embedding(letters, width), nn.Parameter(0.1 * torch.randn(length, width))
        self.both = nn.Transformer(width, 4, 1, 1, 80, 0.0, batch_first=True, norm_first=True)
        self.both.encoder.enable_nested_tensor = False
        self.head = nn.Linear(width, letters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x) + self.place
        late = _later(x.shape[1] - self.read)
        told = self.both(h[:, : self.read], h[:, self.read :], tgt_mask=late)
        return self.head(told).transpose(1, 2)


class Reading(nn.Module):
    """PyTorch's encoder, normalised after each part, over words; the mean of all that are no padding."""

    def __init__(self, words: int, outputs: int, length: int, width: int = 32, drop: float = 0.1) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.place = nn.Parameter(0.02 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, drop, "relu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.mix, self.act, self.head = nn.Linear(width, width), nn.Tanh(), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        empty = x == 0
        h = self.encoder(self.embed(x) + self.place[: x.shape[1]], src_key_padding_mask=empty)
        there = (~empty)[..., None].float()
        return self.head(self.act(self.mix((h * there).sum(1) / there.sum(1).clamp(min=1))))


class Glimpses(nn.Module):
    """A small vision transformer: 4 x 4 patches, learnt places, the mean of all patches."""

    def __init__(self, outputs: int, patches: int = 16, width: int = 32, drop: float = 0.0) -> None:
        super().__init__()
        self.patch, self.place = nn.Linear(16, width), nn.Parameter(0.02 * torch.randn(patches, width))
        self.drop = nn.Dropout(drop)
        self.blocks = nn.ModuleList(Block(width, 2, drop, nn.ReLU) for _ in range(3))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tiles = x.unfold(2, 4, 4).unfold(3, 4, 4).flatten(4).flatten(1, 3)
        h = self.drop(self.patch(tiles) + self.place)
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h).mean(1))


class Patched(nn.Module):
    """Pieces of six hours, attention between them, and the hours ahead (PatchTST)."""

    def __init__(self, length: int, ahead: int, width: int = 32, drop: float = 0.1) -> None:
        super().__init__()
        self.patch = nn.Linear(6, width)
        self.place = nn.Parameter(0.02 * torch.randn(length // 6, width))
        self.blocks = nn.ModuleList(Block(width, 4, drop) for _ in range(2))
        self.head = nn.Linear(length // 6 * width, ahead)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        level = x.mean(1, keepdim=True)
        h = self.patch((x - level).unflatten(1, (-1, 6))) + self.place
        for block in self.blocks:
            h = block(h)
        return level + self.head(h.flatten(1))


class Visiting(nn.Module):
    """What is looked at next, at each place, by attention to what was before: (N, items, L) (SASRec)."""

    def __init__(self, items: int, length: int, width: int = 32, drop: float = 0.1) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(items + 1, width, padding_idx=0), nn.Embedding(length, width)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.drop, self.norm1, self.norm2 = nn.Dropout(drop), nn.LayerNorm(width), nn.LayerNorm(width)
        self.look = nn.MultiheadAttention(width, 2, drop, batch_first=True)
        self.feed1, self.act, self.feed2 = nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.drop(self.embed(x) + self.place.weight)
        n = self.norm1(h)
        h = h + self.look(n, n, n, attn_mask=_later(x.shape[1]), need_weights=False)[0]
        h = h + self.drop(self.feed2(self.act(self.feed1(self.norm2(h)))))
        return (h @ self.embed.weight.T).transpose(1, 2)
