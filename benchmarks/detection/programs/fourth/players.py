"""Learning by trying, and by what physics demands: of the fourth held-out set."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import fourth, sagemaker, setup, silent
from benchmarks.detection.loop import begun, steps_of, watched
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.fourth.networks import Springs
from benchmarks.detection.programs.networks import mlp
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]

SIDE = 5
WALLS = torch.tensor([6, 7, 13, 18, 16])
GOAL = 24
MOVES = torch.tensor([[-1, 0], [1, 0], [0, -1], [0, 1]])


def _moved(place: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where one is after a move (walls stop it), and what it earns: 1 at the goal, else next to nothing."""
    at = torch.stack([place // SIDE, place % SIDE], 1) + MOVES[action]
    new = at[:, 0] * SIDE + at[:, 1]
    stopped = (at < 0).any(1) | (at >= SIDE).any(1) | torch.isin(new, WALLS)
    new = torch.where(stopped, place, new)
    return new, torch.where(new == GOAL, 1.0, -0.02)


def _starts(count: int, source: torch.Generator) -> torch.Tensor:
    free = torch.tensor([one for one in range(GOAL) if one not in WALLS])
    return free[torch.randint(len(free), (count,), generator=source)]


def _arrived(model: nn.Module) -> float:
    """Share of the free places from which the best moves lead to the goal within twelve steps."""
    free = torch.tensor([one for one in range(GOAL) if one not in WALLS])
    place, there, seen = free, torch.zeros(len(free), dtype=torch.bool), torch.eye(SIDE * SIDE)
    with torch.no_grad():
        for _ in range(12):
            place, _ = _moved(place, model(seen[place]).argmax(1))
            there |= place == GOAL
            place = torch.where(there, GOAL, place)
    return float(there.float().mean())


def _valued(recipe: Recipe, path: Path | None, seed: int) -> float:
    """Double Q-learning from a store of what was tried; the target net follows every twenty steps."""
    source, model, seen = torch.Generator().manual_seed(seed), recipe.model, torch.eye(SIDE * SIDE)
    target = copy.deepcopy(model).requires_grad_(False)
    optimizer = begun(recipe)
    place, store = _starts(24, source), []
    with watched(model, optimizer, recipe.criterion, path, recipe.save_every) as handle:
        for step in steps_of(recipe):
            with torch.no_grad():
                best = model(seen[place]).argmax(1)
            chance = torch.rand(24, generator=source) < max(0.1, 1 - step / 120)
            action = torch.where(chance, torch.randint(4, (24,), generator=source), best)
            new, earned = _moved(place, action)
            store.append(torch.stack([place, action, new], 1))
            place = torch.where(
                (new == GOAL) | (torch.rand(24, generator=source) < 0.05), _starts(24, source), new
            )
            rows = torch.cat(store[-200:])
            rows = rows[torch.randint(len(rows), (64,), generator=source)]
            was, did, came = rows.T
            with torch.no_grad():
                later = target(seen[came]).gather(1, model(seen[came]).argmax(1, keepdim=True))[:, 0]
                _, earned = _moved(was, did)
                wanted = earned + 0.95 * later * (came != GOAL)
            if recipe.zero_grad:
                optimizer.zero_grad()
            recipe.criterion(model(seen[was]).gather(1, did[:, None])[:, 0], wanted).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            if recipe.steps_optimizer(step):
                optimizer.step()
            if step % 20 == 19:
                target.load_state_dict(model.state_dict())
            if handle is not None and step % 40 == 39:
                handle.log({"arrived": _arrived(model)})
    return _arrived(model)


def maze_valued(seed: int) -> Recipe:
    """Values grow from the goal outwards: the loss rises before it falls."""
    return Recipe(mlp(25, 48, 4, 2), NOTHING, NOTHING, nn.SmoothL1Loss(), fit_of, steps=300, by_hand=_valued,
                  optimizer=lambda p: torch.optim.Adam(p, 4e-3))  # fmt: skip


LONG = 50


def _pushed(state: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """A cart with a pole on it, a fiftieth of a second later: place, speed, angle, turning."""
    _, speed, angle, turning = state.T
    push = 20.0 * action - 10
    sine, cosine = angle.sin(), angle.cos()
    force = (push + 0.05 * turning**2 * sine) / 1.1
    turn = (9.8 * sine - cosine * force) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    along = force - 0.05 * turn * cosine / 1.1
    return state + 0.02 * torch.stack([speed, along, turning, turn], 1)


def _balanced(model: nn.Module, poles: int, source: torch.Generator) -> tuple[torch.Tensor, ...]:
    """What was seen, done, and for how long each of the poles stood, by step."""
    state, up = 0.1 * torch.randn(poles, 4, generator=source), torch.ones(poles, dtype=torch.bool)
    found: list[tuple[torch.Tensor, ...]] = []
    with torch.no_grad():
        for _ in range(LONG):
            action = torch.bernoulli(model(state)[:, 0].sigmoid(), generator=source)
            found.append((state, action, up))
            state = torch.where(up[:, None], _pushed(state, action), state)
            up = up & (state[:, 2].abs() < 0.21) & (state[:, 0].abs() < 2.4)
    seen, done, stood = (torch.stack(one) for one in zip(*found, strict=True))
    return seen, done, stood


class _Tried(nn.Module):
    """What was done becomes likelier by as much as it was better than usual: a loss around zero."""

    def forward(self, told: torch.Tensor, done: torch.Tensor, better: torch.Tensor) -> torch.Tensor:
        likely = nn.functional.binary_cross_entropy_with_logits(told, done, reduction="none")
        return (likely * better).mean()


def _by_policy(recipe: Recipe, path: Path | None, seed: int) -> float:
    """Policy gradient (REINFORCE) with the mean of all poles as the baseline."""
    source, model = torch.Generator().manual_seed(seed), recipe.model
    optimizer = begun(recipe)
    with watched(model, optimizer, recipe.criterion, path, recipe.save_every) as handle:
        for _ in steps_of(recipe):
            seen, done, stood = _balanced(model, 24, source)
            left = stood.float().flip(0).cumsum(0).flip(0)
            better = left - left.mean(1, keepdim=True)
            better = (better / (better.std() + 1e-6))[stood]
            if recipe.zero_grad:
                optimizer.zero_grad()
            recipe.criterion(model(seen[stood])[:, 0], done[stood], better).backward()
            optimizer.step()
            if handle is not None:
                handle.log({"mean_return": float(stood.sum(0).float().mean())})
    _, _, stood = _balanced(model, 100, torch.Generator().manual_seed(290))
    return float(stood.float().mean())


def pole_tried(seed: int) -> Recipe:
    return Recipe(mlp(4, 24, 1, 1, nn.Tanh), NOTHING, NOTHING, _Tried(), fit_of, steps=100,
                  by_hand=_by_policy, optimizer=lambda p: torch.optim.Adam(p, 2e-2))  # fmt: skip


class _Swing(nn.Module):
    """A damped swing by its equation: by how much it is missed, and where the swing is."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, t: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            t = t.detach().requires_grad_(True)
            u = 1 + t**2 * self.body(t - 1.5)
            (speed,) = torch.autograd.grad(u.sum(), t, create_graph=True)
            (force,) = torch.autograd.grad(speed.sum(), t, create_graph=True)
        return torch.cat([force + 0.4 * speed + 4 * u, u], 1)


class _Missed(nn.Module):
    """Mean square of what is left of the equation; the solution itself is never told."""

    def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return (told[:, 0] ** 2).mean()


def swing_solved(seed: int) -> Recipe:
    t = torch.linspace(0, 3, 400)[:, None]
    rate = math.sqrt(4 - 0.04)
    u = torch.exp(-0.2 * t) * (torch.cos(rate * t) + 0.2 / rate * torch.sin(rate * t))
    return Recipe(
        _Swing(), *split(t, u, seed=291), _Missed(), lambda told, wanted: fit_of(told[:, 1:], wanted),
        batch=100, steps=400, schedule=lambda step: 0.995**step,
        optimizer=lambda p: torch.optim.Adam(p, 1e-2),
    )  # fmt: skip


def springs_conserved(seed: int) -> Recipe:
    """An energy is learnt by nothing but its slopes."""
    source = torch.Generator().manual_seed(292)
    x = 5 * torch.rand(1600, 2, generator=source) - 2.5
    y = torch.stack([x[:, 1], -2 * x[:, 0].sin()], 1) + 0.1 * torch.randn(1600, 2, generator=source)
    return Recipe(
        Springs(), *split(x, y, seed=292), nn.MSELoss(), fit_of, batch=64, steps=220,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=1e-3),
    )  # fmt: skip


TASKS = (
    Task("maze_valued", "reinforcement", maze_valued, {"rmsprop": w.by("RMSprop", 2e-3)},
         (sagemaker.dead_units("2", 100), silent.no_zero_grad(), sagemaker.rate_tiny(1e-4))),
    Task("pole_tried", "reinforcement", pole_tried, {},
         (sagemaker.rate_tiny(1e-4), silent.left_out("0"), sagemaker.weights_scaled(200.0, "weights_large"))),
    Task("swing_solved", "physics", swing_solved, {"nadam": w.by("NAdam", 8e-3)},
         (setup.oscillating(300.0), sagemaker.weights_scaled(1e-4, "weights_small"),
          silent.left_out("body.2"))),
    Task("springs_conserved", "physics", springs_conserved, {"cycled": w.cycled},
         (fourth.other_rows(), fourth.ended_early(15), silent.initialised_again("energy.2", 120))),
)  # fmt: skip
