"""Transformers of the tenth set: one key for all heads, rectifiers squared; and encoder with decoder."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Sharing", "Translating"]


class _Block(nn.Module):
    """Attention whose heads share keys and values (Shazeer, 2019), and a dense net (So et al., 2021).

    `fused`: attention by PyTorch's own function.
    """

    def __init__(self, width: int, heads: int, drop: float, *, fused: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.key, self.value = (nn.Linear(width, width // heads) for _ in range(2))
        self.up, self.relu, self.down = nn.Linear(width, 3 * width), nn.ReLU(), nn.Linear(3 * width, width)
        self.softmax, self.drop = nn.Softmax(dim=-1), nn.Dropout(drop)
        self.heads, self.sharpness, self.fused = heads, (heads / width) ** 0.5, fused

    def forward(self, x: torch.Tensor, hidden: torch.Tensor | None) -> torch.Tensor:
        h = self.norm1(x)
        q = self.query(h).unflatten(2, (self.heads, -1)).transpose(1, 2)
        k, v = self.key(h)[:, None], self.value(h)[:, None]
        if self.fused:
            k, v = (one.expand(-1, self.heads, -1, -1) for one in (k, v))
            shown = None if hidden is None else ~hidden
            seen = nn.functional.scaled_dot_product_attention(q, k, v, shown, scale=self.sharpness)
        else:
            scores = self.sharpness * q @ k.transpose(2, 3)
            if hidden is not None:
                scores = scores.masked_fill(hidden, float("-inf"))
            seen = self.softmax(scores) @ v
        x = x + self.drop(self.out(seen.transpose(1, 2).flatten(2)))
        return x + self.drop(self.down(self.relu(self.up(self.norm2(x))).square()))


class Sharing(nn.Module):
    """Blocks over what a first layer makes of the input, with places that are learnt; 0 pads words.

    Tells at ``"each"`` place (N, outputs, L) of those before it, or of the ``"mean"`` of all (N, outputs).
    """

    def __init__(
        self, first: nn.Module, outputs: int, length: int, width: int = 32, heads: int = 4, depth: int = 2, *,
        tells: str = "mean", drop: float = 0.0, fused: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.tells, self.drop = first, tells, nn.Dropout(drop)
        self.place = nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.ModuleList(_Block(width, heads, drop, fused=fused) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)
        self.hidden = torch.ones(length, length).triu(1).bool() if tells == "each" else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        there = None if x.is_floating_point() or self.tells == "each" else x != 0
        hidden = self.hidden if there is None else ~there[:, None, None]
        h = self.drop(self.first(x) + self.place)
        for block in self.blocks:
            h = block(h, hidden)
        h = self.norm(h)
        if self.tells == "each":
            return self.head(h).transpose(1, 2)
        if there is None:
            return self.head(h.mean(1))
        return self.head((h * there[..., None]).sum(1) / there.sum(1, keepdim=True).clamp(min=1))


class Translating(nn.Module):
    """PyTorch's encoder and decoder over symbols: what is asked, and behind it what is known of the answer.

    Tells the next symbol of the answer at each of its places (N, symbols, known).
    """

    def __init__(
        self, symbols: int, asked: int, known: int, width: int = 48, heads: int = 4, depth: int = 2,
        drop: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.asked, self.drop = asked, nn.Dropout(drop)
        self.embed, self.head = nn.Embedding(symbols, width, padding_idx=0), nn.Linear(width, symbols)
        self.place = nn.Parameter(0.02 * torch.randn(asked + known, width))
        shape = (width, heads, 2 * width, drop, "gelu")
        one = nn.TransformerEncoderLayer(*shape, batch_first=True, norm_first=True)
        two = nn.TransformerDecoderLayer(*shape, batch_first=True, norm_first=True)
        self.reader = nn.TransformerEncoder(one, depth, nn.LayerNorm(width), enable_nested_tensor=False)
        self.teller = nn.TransformerDecoder(two, depth, nn.LayerNorm(width))
        self.later = torch.ones(known, known).triu(1).bool()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, empty = self.drop(self.embed(x) + self.place), x[:, : self.asked] == 0
        asked = self.reader(h[:, : self.asked], src_key_padding_mask=empty)
        told = self.teller(h[:, self.asked :], asked, tgt_mask=self.later, memory_key_padding_mask=empty)
        return self.head(told).transpose(1, 2)
