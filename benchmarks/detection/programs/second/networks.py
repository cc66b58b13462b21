"""Networks of the second held-out set."""

from __future__ import annotations

import torch
from torch import nn

__all__ = [
    "Causal", "Classifier", "Mixer", "Neighbours", "Recaller", "Refined", "Sharpener", "Skipping", "Stacked",
    "Tagger", "Towers", "dropping", "gentle", "pooling",
]  # fmt: skip


def dropping(width_in: int, width: int, outputs: int, share: float) -> nn.Sequential:
    """Two layers, each with batch normalisation and much dropout."""
    return nn.Sequential(
        nn.Linear(width_in, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(share),
        nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(share),
        nn.Linear(width, outputs),
    )  # fmt: skip


class Refined(nn.Module):
    """Residual dense blocks, the last layer of each zero at first."""

    def __init__(self, width_in: int, width: int, outputs: int, depth: int = 3) -> None:
        super().__init__()
        self.stem = nn.Linear(width_in, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
            for _ in range(depth)
        )
        for block in self.blocks:
            nn.init.zeros_(block[3].weight)
            nn.init.zeros_(block[3].bias)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(self.norm(x))


def pooling(outputs: int, width: int = 10) -> nn.Sequential:
    """Two convolutions with batch normalisation, pooled over the whole picture."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 3 * width, 3, padding=1), nn.BatchNorm2d(3 * width), nn.ReLU(),
        nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(3 * width, outputs),
    )  # fmt: skip


def gentle(outputs: int, end: type[nn.Module] = nn.Identity) -> nn.Sequential:
    """ELUs, mean pooling and dropout of whole channels, no normalisation."""
    return nn.Sequential(
        nn.Conv2d(1, 12, 5, padding=2), nn.ELU(), nn.AvgPool2d(2), nn.Dropout2d(0.1),
        nn.Conv2d(12, 16, 3, padding=1), nn.ELU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(16 * 9, 32), nn.ELU(), nn.Linear(32, outputs), end(),
    )  # fmt: skip


class Skipping(nn.Module):
    """A small U: down, up again, with a way across."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.enter, self.down = nn.Conv2d(1, width, 3, padding=1), nn.Conv2d(width, 2 * width, 2, stride=2)
        self.deep = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.leave, self.relu = nn.Conv2d(2 * width, 1, 3, padding=1), nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        near = self.relu(self.enter(x))
        far = self.relu(self.deep(self.relu(self.down(near))))
        return self.leave(torch.cat([near, self.relu(self.up(far))], 1))


class Mixer(nn.Module):
    """Mixes patches, then channels, of an 8 x 8 picture with three colours."""

    def __init__(self, outputs: int, width: int = 20, depth: int = 2) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, width, 2, stride=2)
        self.places = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 24), nn.GELU(), nn.Linear(24, 16)) for _ in range(depth)
        )
        self.channels = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 40), nn.GELU(), nn.Linear(40, width))
            for _ in range(depth)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.cut(x).flatten(2).transpose(1, 2)
        for place, channel in zip(self.places, self.channels, strict=True):
            x = x + place(x.transpose(1, 2)).transpose(1, 2)
            x = x + channel(x)
        return self.head(self.norm(x).mean(1))


class Stacked(nn.Module):
    """Recurrent layers over numbers, with dropout between them, read out at the end."""

    def __init__(self, kind: type[nn.RNNBase], inputs: int, outputs: int, layers: int, width: int) -> None:
        super().__init__()
        self.rnn = kind(inputs, width, layers, batch_first=True, dropout=0.1 if layers > 1 else 0.0)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0][:, -1])


class Tagger(nn.Module):
    """A tag for each token, by a GRU in both directions: (N, tags, L)."""

    def __init__(self, tokens: int, outputs: int, width: int = 20) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, 10)
        self.rnn = nn.GRU(10, width, batch_first=True, bidirectional=True)
        self.drop, self.head = nn.Dropout(0.2), nn.Linear(2 * width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.rnn(self.embed(x))[0])).transpose(1, 2)


class Recaller(nn.Module):
    """PyTorch's transformer, normalised after each part, one answer for each place: (N, tokens, L)."""

    def __init__(self, tokens: int, length: int, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.place = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 48, 0.0, "relu", batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, tokens)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x) + self.place(torch.arange(x.shape[1]))
        return self.head(self.body(h)).transpose(1, 2)


class Classifier(nn.Module):
    """Attention of one head, written out, around a token that stands for the class."""

    def __init__(self, tokens: int, outputs: int, length: int, width: int = 24) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.place = nn.Parameter(torch.randn(length + 1, width) * 0.1)
        self.blocks = nn.ModuleList(_Attending(width) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.cat([torch.zeros(len(x), 1, self.place.shape[1]), self.embed(x)], 1) + self.place
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h[:, 0]))


class _Attending(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.weights, self.drop = nn.Softmax(dim=-1), nn.Dropout(0.1)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        x = self.before(h)
        scores = self.query(x) @ self.key(x).transpose(1, 2) / x.shape[-1] ** 0.5
        h = h + self.drop(self.weights(scores) @ self.value(x))
        return h + self.drop(self.feed(self.between(h)))


class Causal(nn.Module):
    """The next letter at each place by gated convolutions that look back only: (N, letters, L)."""

    def __init__(self, tokens: int = 27, width: int = 24) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.layers = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**one) for one in range(3))
        self.gate, self.head = nn.GLU(dim=1), nn.Conv1d(width, tokens, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x).transpose(1, 2)
        for place, layer in enumerate(self.layers):
            h = h + self.gate(layer(nn.functional.pad(h, (2**place, 0))))
        return self.head(h)


class Towers(nn.Module):
    """A tower for the user, one for the item, and a score of both."""

    def __init__(self, users: int, items: int, width: int = 12) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
        self.left, self.right = nn.Linear(width, 16), nn.Linear(width, 16)
        self.act, self.score = nn.ReLU(), nn.Linear(48, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        user, item = self.act(self.left(self.users(x[:, 0]))), self.act(self.right(self.items(x[:, 1])))
        return self.score(torch.cat([user, item, user * item], 1))


class Neighbours(nn.Module):
    """Vectors of words, with sparse gradients: how near are two?"""

    def __init__(self, words: int, width: int = 10) -> None:
        super().__init__()
        self.word = nn.Embedding(words, width, sparse=True)
        self.context = nn.Embedding(words, width, sparse=True)
        nn.init.normal_(self.word.weight, std=0.3)
        nn.init.normal_(self.context.weight, std=0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.word(x[:, 0]) * self.context(x[:, 1])).sum(1, keepdim=True)


class Sharpener(nn.Module):
    """Which noise was added to a point? By the noisy point and the time (three columns)."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.enter, self.middle = nn.Linear(7, width), nn.Linear(width, width)
        self.act, self.leave = nn.SiLU(), nn.Linear(width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time = x[:, 2:] * torch.tensor([1.0, 3.0, 9.0])
        h = torch.cat([x[:, :2], time.sin(), x[:, 2:], x[:, 2:] ** 2], 1)
        return self.leave(self.act(self.middle(self.act(self.enter(h)))))
