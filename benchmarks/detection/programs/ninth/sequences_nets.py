"""Recurrent nets that pack their rows, inception in time, and residual convolutions of the ninth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Inception", "Listening", "Residual"]


class Listening(nn.Module):
    """A recurrent net over what a first layer makes of the input, and a dense layer.

    Rows of tokens (0 pads) are packed where the last ``"state"`` tells: (N, outputs). Else it tells at
    ``"each"`` place, (N, L, outputs), or for classes (N, outputs, L).
    """

    def __init__(
        self, kind: str, first: nn.Module, width_in: int, outputs: int, width: int = 32, *,
        tells: str = "state", both: bool = False, layers: int = 1, drop: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.tells, self.drop = first, tells, nn.Dropout(drop)
        self.rnn = getattr(nn, kind)(width_in, width, layers, batch_first=True, bidirectional=both)
        self.mix, self.act = nn.Linear(width * (1 + both), width), nn.SiLU()
        self.head, self.ends = nn.Linear(width, outputs), 1 + both

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.drop(self.first(x))
        if self.tells == "state":
            if not x.is_floating_point():
                long = (x != 0).sum(1).clamp(min=1)
                h = nn.utils.rnn.pack_padded_sequence(h, long, batch_first=True, enforce_sorted=False)
            state = self.rnn(h)[1]
            state = state[0] if isinstance(state, tuple) else state
            return self.head(self.drop(self.act(self.mix(torch.cat([*state[-self.ends :]], 1)))))
        told = self.head(self.drop(self.act(self.mix(self.rnn(h)[0]))))
        return told.transpose(1, 2) if self.tells == "classes" else told


class _Lengths(nn.Module):
    """Convolutions of several lengths, and the most of three places, side by side."""

    def __init__(self, inputs: int, width: int, lengths: tuple[int, ...]) -> None:
        super().__init__()
        self.narrow = nn.Conv1d(inputs, width, 1, bias=False)
        self.convs = nn.ModuleList(
            nn.Conv1d(width, width, one, padding=one // 2, bias=False) for one in lengths
        )
        self.pool = nn.Sequential(nn.MaxPool1d(3, 1, 1), nn.Conv1d(inputs, width, 1, bias=False))
        self.norm, self.act = nn.BatchNorm1d(width * (len(lengths) + 1)), nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        narrow = self.narrow(x)
        return self.act(self.norm(torch.cat([*(conv(narrow) for conv in self.convs), self.pool(x)], 1)))


class Inception(nn.Module):
    """InceptionTime (Fawaz et al., 2020), small, over numbers (N, L, C) or letters (N, L).

    At each place (N, outputs, L), or of the mean of all places (N, outputs).
    """

    def __init__(
        self, first: nn.Module, inputs: int, outputs: int, width: int = 10, depth: int = 2,
        lengths: tuple[int, ...] = (3, 7, 13), *, each: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        wide = width * (len(lengths) + 1)
        self.first, self.each = first, each
        self.layers = nn.Sequential(
            *(_Lengths(wide if at else inputs, width, lengths) for at in range(depth))
        )
        self.head = nn.Conv1d(wide, outputs, 1) if each else nn.Linear(wide, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.layers(self.first(x).transpose(1, 2))
        return self.head(h if self.each else h.mean(2))


class _Twice(nn.Module):
    """Two convolutions, halving the picture, beside a way around them."""

    def __init__(self, inputs: int, width: int, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, 2, 1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm1, self.norm2, self.act = norm(width), norm(width), nn.ReLU()
        self.around = nn.Conv2d(inputs, width, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.norm2(self.conv2(self.act(self.norm1(self.conv1(x))))) + self.around(x))


class Residual(nn.Module):
    """A residual net over pictures (N, C, side, side): what they are (N, outputs)."""

    def __init__(
        self, inputs: int, outputs: int, width: int = 12, drop: float = 0.0,
        norm: Callable[[int], nn.Module] = nn.BatchNorm2d,
    ) -> None:  # fmt: skip
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(), _Twice(width, width, norm),
            _Twice(width, 2 * width, norm), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(drop),
        )  # fmt: skip
        self.mix, self.relu, self.head = nn.Linear(8 * width, 32), nn.ReLU(), nn.Linear(32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.relu(self.mix(self.body(x))))
