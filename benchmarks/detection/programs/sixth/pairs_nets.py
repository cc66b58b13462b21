"""Networks over pairs and for comparing in the sixth set, and their losses."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.programs.sixth.nets import stack

__all__ = ["Biased", "Bought", "Facing", "Factors", "Gathering", "Likeness", "Tripled", "Walked", "bought",
           "curves", "faced"]  # fmt: skip


def curves(inputs: int, length: int, outputs: int, width: int = 16) -> nn.Sequential:
    """Two convolutions in time with ReLU, and a dense layer over all that is left of it."""
    return nn.Sequential(
        nn.Conv1d(inputs, width, 5, 2, 2), nn.BatchNorm1d(width), nn.ReLU(),
        nn.Conv1d(width, 2 * width, 5, 2, 2), nn.BatchNorm1d(2 * width), nn.ReLU(),
        nn.Flatten(), nn.Linear(2 * width * (length // 4), outputs),
    )  # fmt: skip


class Biased(nn.Module):
    """A product of vectors, and a liking of a user's and of a song's own (SVD with biases)."""

    def __init__(self, users: int, songs: int, width: int = 6) -> None:
        super().__init__()
        self.users, self.songs = nn.Embedding(users, width), nn.Embedding(songs, width)
        self.keen, self.known = nn.Embedding(users, 1), nn.Embedding(songs, 1)
        for one in (self.users, self.songs, self.keen, self.known):
            nn.init.normal_(one.weight, std=0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        user, song = x[:, 0], x[:, 1]
        liked = (self.users(user) * self.songs(song)).sum(1, keepdim=True)
        return liked + self.keen(user) + self.known(song)


class Bought(nn.Module):
    """Cross-entropy of all things that were bought under one softmax (the multinomial of Mult-VAE)."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return -(torch.log_softmax(told, 1) * wanted).sum(1).mean() / 5


def bought(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """Of the ten things named first, the share that was bought, at best 1."""
    first = told.topk(10, 1).indices
    return float((wanted.gather(1, first).sum(1) / wanted.sum(1).clamp(1, 10)).mean())


class Walked(nn.Module):
    """How likely one place follows another: a product of two vectors (skip-gram)."""

    def __init__(self, places: int, width: int = 16) -> None:
        super().__init__()
        self.start, self.end = nn.Embedding(places, width), nn.Embedding(places, width)
        self.head = nn.Linear(1, 1)
        for one in (self.start, self.end):
            nn.init.normal_(one.weight, std=0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head((self.start(x[:, 0]) * self.end(x[:, 1])).sum(1, keepdim=True))


class Factors(nn.Module):
    """A weight for each kind, products of the vectors of every two, and dense layers over all (DeepFM)."""

    def __init__(self, kinds: int, fields: int = 4, width: int = 6) -> None:
        super().__init__()
        self.single, self.kinds = nn.Embedding(kinds, 1), nn.Embedding(kinds, width)
        nn.init.normal_(self.kinds.weight, std=0.1)
        nn.init.zeros_(self.single.weight)
        self.deep = stack((fields * width, 32, 32, 1), nn.ReLU)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        each = self.kinds(x)
        crossed = 0.5 * (each.sum(1) ** 2 - (each**2).sum(1)).sum(1, keepdim=True)
        return self.single(x).sum(1) + crossed + self.deep(each.flatten(1))


class Compared(nn.Module):
    """A loss of directions among the rows of a batch; more rows than a batch has are taken in parts."""

    size = 64

    def among(self, code: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        parts = max(1, len(told) // self.size)
        each = zip(told.chunk(parts), wanted.chunk(parts), strict=True)
        return torch.stack([self.among(code, kinds) for code, kinds in each]).mean()


class Tripled(Compared):
    """Of each row, all of its kind are to be nearer than all of another, by a margin."""

    def __init__(self, margin: float = 0.5) -> None:
        super().__init__()
        self.margin = margin

    def among(self, code: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        code = nn.functional.normalize(code, dim=1)
        far, same = 2 - 2 * code @ code.T, wanted[:, None] == wanted
        short = nn.functional.relu(far[:, :, None] - far[:, None, :] + self.margin)
        return short[same[:, :, None] & ~same[:, None, :]].mean()


class Gathering(Compared):
    """All rows of a kind are drawn to each other and from the others (supervised contrast)."""

    def __init__(self, heat: float = 0.2) -> None:
        super().__init__()
        self.heat = heat

    def among(self, code: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        code, own = nn.functional.normalize(code, dim=1), torch.eye(len(code), dtype=torch.bool)
        near = torch.log_softmax((code @ code.T / self.heat).masked_fill(own, -1e4), 1)
        same = (wanted[:, None] == wanted) & ~own
        return -((near * same).sum(1) / same.sum(1).clamp(min=1)).mean()


class Facing(nn.Module):
    """Directions of two halves of a row by two towers, side by side."""

    def __init__(self, numbers: int, code: int = 12, width: int = 48) -> None:
        super().__init__()
        self.numbers = numbers
        self.left, self.right = (stack((numbers, width, width, code), nn.ReLU) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = self.left(x[:, : self.numbers]), self.right(x[:, self.numbers :])
        return torch.cat([nn.functional.normalize(left, dim=1), nn.functional.normalize(right, dim=1)], 1)


class Likeness(Compared):
    """Each pair for itself: is this right half this left one's? Sharpened by a factor (SigLIP)."""

    def __init__(self, sharp: float = 8.0) -> None:
        super().__init__()
        self.sharp = sharp

    def among(self, code: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        left, right = code.chunk(2, 1)
        near = self.sharp * (left @ right.T) - 0.5 * self.sharp
        own = 2 * torch.eye(len(near)) - 1
        return -nn.functional.logsigmoid(own * near).sum(1).mean()


def faced(told: torch.Tensor, _: torch.Tensor) -> float:
    """Share of the left halves whose own right half is among the five nearest."""
    left, right = told.chunk(2, 1)
    near = (left @ right.T).topk(5, 1).indices
    return float((near == torch.arange(len(near))[:, None]).any(1).float().mean())
