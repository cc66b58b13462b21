"""Healthy trainings of nets that make pictures, noise or words: what is left of the loss is chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from tests.rules.healthy_loops import STEPS, adam, digits, fit, mlp, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rules.healthy_loops import Attach


class Drawer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = mlp(64, 48, 48), mlp(6, 64, 48)
        self.mean, self.spread = nn.Linear(48, 6), nn.Linear(48, 6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = torch.relu(self.encode(x))
        mean, spread = self.mean(h), self.spread(h)
        far = -0.5 * (1 + spread - mean**2 - spread.exp()).sum(1).mean()
        return self.decode(mean + torch.randn_like(mean) * torch.exp(spread / 2)), far


def annealed_divergence(attach: Attach) -> None:
    """The weight of the KL term rises from zero, and the loss with it."""
    (x, _), model, criterion = digits(), Drawer(), nn.MSELoss(reduction="sum")

    def loss_of(step: int) -> torch.Tensor:
        at = rows(x)
        drawn, far = model(x[at])
        return criterion(drawn, x[at]) / len(at) + min(1.0, step / 150) * far

    fit(attach, model, loss_of, loss=criterion)


def noise_prediction(attach: Attach) -> None:
    """Diffusion: half of the noise cannot be told, and the loss stays there."""
    (x, _), model, criterion = digits(), mlp(65, 64, 96, nn.SiLU), nn.MSELoss()

    def loss_of(_: int) -> torch.Tensor:
        at, time = rows(x), torch.rand(48, 1)
        noise = torch.randn(48, 64)
        mixed = torch.cos(time * math.pi / 2) * x[at] + torch.sin(time * math.pi / 2) * noise
        return criterion(model(torch.cat([mixed, time], 1)), noise)

    fit(attach, model, loss_of, adam(model, 1e-3), loss=criterion)


def game(
    attach: Attach,
    optimizers: tuple[str, str] = ("made", "told"),
    made: nn.Module | None = None,
    after: Callable[[int], object] = lambda step: None,
) -> None:
    """Two nets against each other: one's loss is the other's gain."""
    made, told = made or mlp(4, 2, 24), mlp(2, 1, 24, nn.ELU)
    slow, fast = (torch.optim.Adam(one.parameters(), 1e-3, betas=(0.5, 0.9)) for one in (made, told))
    criterion = nn.BCEWithLogitsLoss()
    named = dict(zip(optimizers, (slow, fast), strict=True))
    with attach({"made": made, "told": told}, optimizer=named, loss=criterion):
        for step in range(STEPS):
            real = torch.randn(64, 2) * torch.tensor([1.0, 0.2]) + torch.tensor([2.0, 0.0])
            fake = made(torch.randn(64, 4))
            fast.zero_grad()
            judged = told(torch.cat([real, fake.detach()]))
            criterion(judged, torch.cat([torch.ones(64, 1), torch.zeros(64, 1)])).backward()
            fast.step()
            slow.zero_grad()
            criterion(told(fake), torch.ones(64, 1)).backward()
            slow.step()
            after(step)


def game_that_is_looked_at(attach: Attach) -> None:
    """What it makes of the same numbers is shown now and then, in train mode, as programs of GANs do."""
    made = nn.Sequential(nn.Linear(4, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2))
    numbers = torch.randn(16, 4)

    def show(step: int) -> None:
        if step % 30 == 29:
            with torch.no_grad():
                made(numbers)

    game(attach, made=made, after=show)


def game_of_other_names(attach: Attach) -> None:
    """The same, with optimizers that are not called as their nets are."""
    game(attach, ("slow", "fast"))


class Reader(nn.Module):
    """A small transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 24), nn.Parameter(0.02 * torch.randn(12, 24))
        layer = nn.TransformerEncoderLayer(24, 4, 48, 0.1, batch_first=True, norm_first=True)
        self.layers, self.head = (
            nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
            nn.Linear(24, 20),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.layers(self.words(x) + self.places[: x.shape[1]], mask, is_causal=True))


def next_token(attach: Attach) -> None:
    """A language of which half is chance, with a long warm-up."""
    model, criterion, table = Reader(), nn.CrossEntropyLoss(), torch.randperm(20)

    def loss_of(_: int) -> torch.Tensor:
        tokens = [torch.randint(0, 20, (24,))]
        for _place in range(12):
            chance = torch.rand(24) < 0.5
            tokens.append(torch.where(chance, torch.randint(0, 20, (24,)), table[tokens[-1]]))
        x = torch.stack(tokens, 1)
        return criterion(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())

    warm = lambda step: min(1.0, (step + 1) / 120)  # noqa: E731
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.1)
    fit(attach, model, loss_of, optimizer, loss=criterion, schedule=warm)


MAKERS = (
    annealed_divergence,
    noise_prediction,
    game,
    game_that_is_looked_at,
    game_of_other_names,
    next_token,
)
