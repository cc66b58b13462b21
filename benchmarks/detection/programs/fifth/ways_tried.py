"""Learning by trying in the fifth set: orders for a store, and flights."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.loop import begun, steps_of, watched
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["flights_tried", "stock_ordered"]

WEEK = 24


class Stocking(nn.Module):
    """What it is worth to order nothing, some, more or most, by what is in store and what day it is."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.worth, self.better = nn.Linear(width, 1), nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        better = self.better(h)
        return self.worth(h) + better - better.mean(1, keepdim=True)


def _seen(stock: torch.Tensor, day: torch.Tensor) -> torch.Tensor:
    turn = 2 * torch.pi * day / 7
    return torch.stack([stock / 5 - 1, turn.sin(), turn.cos()], 1)


def _sold(stock: torch.Tensor, day: torch.Tensor, order: torch.Tensor, source: torch.Generator):
    """What is left the day after, and what was earned: sales, less what ordering and storing cost."""
    there = (stock + 3 * order).clamp(max=12)
    asked = torch.poisson(3 + 2 * torch.sin(2 * torch.pi * day / 7), generator=source)
    sold = torch.minimum(there, asked)
    earned = sold - 0.4 * (there - stock) - 0.3 * (order > 0) - 0.12 * (there - sold)
    return there - sold, earned / 2


def _earned(model: nn.Module) -> float:
    """Mean earnings of a day by the best orders."""
    source = torch.Generator().manual_seed(340)
    stock, day, total = torch.full((200,), 5.0), torch.arange(200) % 7.0, 0.0
    with torch.no_grad():
        for _ in range(WEEK):
            stock, earned = _sold(stock, day, model(_seen(stock, day)).argmax(1).float(), source)
            day, total = (day + 1) % 7, total + float(earned.mean())
    return total / WEEK


def _by_worth(recipe: Recipe, path: Path | None, seed: int) -> float:
    """Q-learning from a store of days, with a target that follows slowly (duelling DQN)."""
    source, model = torch.Generator().manual_seed(seed), recipe.model
    target = copy.deepcopy(model).requires_grad_(False)
    optimizer = begun(recipe)
    stock, day = torch.full((32,), 5.0), torch.arange(32) % 7.0
    kept: list[torch.Tensor] = []
    with watched(model, optimizer, recipe.criterion, path, recipe.save_every) as handle:
        for step in steps_of(recipe):
            with torch.no_grad():
                order = model(_seen(stock, day)).argmax(1).float()
            tried = torch.rand(32, generator=source) < max(0.1, 1 - step / 100)
            order = torch.where(tried, torch.randint(4, (32,), generator=source).float(), order)
            left, earned = _sold(stock, day, order, source)
            kept.append(torch.stack([stock, day, order, earned, left], 1))
            stock, day = left, (day + 1) % 7
            rows = torch.cat(kept[-150:])
            was, when, did, gained, then = rows[torch.randint(len(rows), (64,), generator=source)].T
            with torch.no_grad():
                later = target(_seen(then, (when + 1) % 7)).amax(1)
            wanted = recipe.options.get("scale", 1.0) * gained + 0.9 * later
            if recipe.zero_grad:
                optimizer.zero_grad()
            told = model(_seen(was, when)).gather(1, did.long()[:, None])[:, 0]
            recipe.criterion(told, wanted).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            if recipe.steps_optimizer(step):
                optimizer.step()
            with torch.no_grad():
                for slow, now in zip(target.parameters(), model.parameters(), strict=True):
                    slow.lerp_(now, 0.05)
            if handle is not None and step % 40 == 39:
                handle.log({"earned": _earned(model)})
    return _earned(model)


def stock_ordered(seed: int) -> Recipe:
    """Worth grows for long, as days ahead come to count: so does the loss."""
    return Recipe(
        Stocking(), NOTHING, NOTHING, nn.SmoothL1Loss(), fit_of, steps=300, by_hand=_by_worth,
        optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip


class Steering(nn.Module):
    """Mean thrust in both directions, and what a place is worth, side by side."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)
        )
        self.critic = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))
        self.spread = nn.Parameter(torch.full((2,), -0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.actor(x), self.critic(x)], 1)


class Surrogate(nn.Module):
    """PPO's clipped gain, the square error of the worth, and a little for spread."""

    def forward(self, likelier: torch.Tensor, gain: torch.Tensor, missed: torch.Tensor) -> torch.Tensor:
        held = torch.minimum(likelier * gain, likelier.clamp(0.8, 1.2) * gain)
        return -held.mean() + 0.5 * missed.square().mean()


def _flown(model: nn.Module, count: int, source: torch.Generator, *, sure: bool = False):
    """Place and speed, thrust, and reward (how near the middle, less what thrust costs), by time."""
    state, found = torch.randn(count, 4, generator=source) * torch.tensor([1, 1, 0.2, 0.2]), []
    with torch.no_grad():
        for _ in range(WEEK):
            noise = torch.zeros(count, 2) if sure else torch.randn(count, 2, generator=source)
            thrust = model(state)[:, :2] + noise * model.spread.exp()
            push = thrust.clamp(-2, 2)
            speed = 0.9 * state[:, 2:] + 0.25 * push
            new = torch.cat([state[:, :2] + 0.4 * speed, speed], 1)
            reward = -new[:, :2].norm(dim=1) - 0.05 * push.square().sum(1)
            found.append((state, thrust, reward))
            state = new
    return tuple(torch.stack(one) for one in zip(*found, strict=True))


def _likely(model: nn.Module, told: torch.Tensor, thrust: torch.Tensor) -> torch.Tensor:
    apart = (thrust - told[:, :2]) * torch.exp(-model.spread)
    return (-0.5 * apart.square() - model.spread).sum(1)


def _by_trying(recipe: Recipe, path: Path | None, seed: int) -> float:
    """PPO: each flight is used for four steps."""
    source, model = torch.Generator().manual_seed(seed), recipe.model
    optimizer = begun(recipe)
    rows: tuple[torch.Tensor, ...] = ()
    with watched(model, optimizer, recipe.criterion, path, recipe.save_every) as handle:
        for step in steps_of(recipe):
            if step % 4 == 0:
                state, thrust, reward = _flown(model, 24, source)
                returns, later = torch.zeros_like(reward), torch.zeros(24)
                for at in range(WEEK - 1, -1, -1):
                    later = reward[at] + 0.9 * later
                    returns[at] = later
                state, thrust, returns = state.flatten(0, 1), thrust.flatten(0, 1), returns.flatten() / 5
                with torch.no_grad():
                    told = model(state)
                gain = returns - told[:, 2]
                gain = (gain - gain.mean()) / (gain.std() + 1e-6)
                rows = (state, thrust, returns, gain, _likely(model, told, thrust).detach())
                if handle is not None:
                    handle.log({"mean_reward": float(reward.mean())})
            some = torch.randint(len(rows[0]), (192,), generator=source)
            state, thrust, returns, gain, before = (one[some] for one in rows)
            if recipe.zero_grad:
                optimizer.zero_grad()
            told = model(state)
            likelier = (_likely(model, told, thrust) - before).clamp(-10, 10).exp()
            recipe.criterion(likelier, gain, told[:, 2] - returns).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            if recipe.steps_optimizer(step):
                optimizer.step()
    _, _, reward = _flown(model, 100, torch.Generator().manual_seed(341), sure=True)
    return float(reward.mean())


def flights_tried(seed: int) -> Recipe:
    return Recipe(
        Steering(), NOTHING, NOTHING, Surrogate(), fit_of, steps=280, by_hand=_by_trying,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3, eps=1e-5),
    )  # fmt: skip
