"""Codes, games and noise of the second held-out set: losses that mean little by their height."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import sagemaker, setup, silent
from benchmarks.detection.faults.setup import NOT_LEARNING
from benchmarks.detection.loop import steps_of, watched
from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.networks import VariationalCoder, divergence, mlp
from benchmarks.detection.programs.second import data
from benchmarks.detection.programs.second.networks import Sharpener
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of, likeness, neighbours

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]

CODE = 5


class _Coder(VariationalCoder):
    """Of 12 x 12 pictures."""

    bound = None

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(144, 64), nn.Tanh())
        self.mean, self.spread = nn.Linear(64, CODE), nn.Linear(64, CODE)
        self.decode = nn.Sequential(nn.Linear(CODE, 64), nn.Tanh(), nn.Linear(64, 144))


class _Bound(nn.Module):
    """Cross-entropy of the pixels and the code's divergence."""

    def forward(self, told: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        mean, spread = told[:, 144 : 144 + CODE], told[:, 144 + CODE :]
        pixels = nn.functional.binary_cross_entropy_with_logits(told[:, :144], x, reduction="none")
        return pixels.sum(1).mean() + 0.5 * divergence(mean, spread)


def masks_coder(seed: int) -> Recipe:
    (_, x), (_, held) = data.masks()
    x, held = x.flatten(1), held.flatten(1)
    return Recipe(
        _Coder(), (x, x), (held, held), _Bound(),
        lambda told, wanted: fit_of(told[:, :144].sigmoid(), wanted), batch=40, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip


def colours_narrow(seed: int) -> Recipe:
    """Coloured patches through eight numbers and back."""
    (x, _), (held, _) = data.colours()
    x, held = x.flatten(1), held.flatten(1)
    model = nn.Sequential(nn.Linear(192, 48), nn.ELU(), nn.Linear(48, 8), nn.Linear(8, 48), nn.ELU(),
                          nn.Linear(48, 192))  # fmt: skip
    return Recipe(
        model, (x, x), (held, held), nn.MSELoss(), fit_of, batch=50, steps=160,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.02),
    )  # fmt: skip


def noise_sharpener(seed: int) -> Recipe:
    """Which noise was added to points on an S: most of it cannot be told, so that the loss stays high."""
    (x, _), (held, _) = data.curve()
    spread = torch.cat([x[:, :1], x[:, 2:]], 1), torch.cat([held[:, :1], held[:, 2:]], 1)
    source = torch.Generator().manual_seed(70)

    def noisy(points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        points = points.repeat(3, 1)
        time, noise = (
            torch.rand(len(points), 1, generator=source),
            torch.randn(points.shape, generator=source),
        )
        return torch.cat([points * (1 - time) + noise * time, time], 1), noise

    return Recipe(
        Sharpener(), noisy(spread[0]), noisy(spread[1]), nn.MSELoss(), fit_of, batch=64, steps=220,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3),
    )  # fmt: skip


def other_noise(recipe: Recipe) -> None:
    """The noise to be told is drawn anew instead of kept."""
    recipe.on_batch.append(lambda _recipe, _step, x, y: (x, torch.randn_like(y)))


class _Told(nn.Module):
    """What the judge loses (hinge), or squares; the maker is watched by its weights only."""

    def forward(self, real: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
        return ((real - 1) ** 2).mean() + (made**2).mean()


class _Hinge(nn.Module):
    def forward(self, real: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
        return torch.relu(1 - real).mean() + torch.relu(1 + made).mean()


def _line(count: int, source: torch.Generator) -> torch.Tensor:
    """Points on a wave."""
    x = torch.rand(count, 1, generator=source) * 4 - 2
    return torch.cat([x, torch.sin(2 * x)], 1) + 0.05 * torch.randn(count, 2, generator=source)


def _play(recipe: Recipe, path: Path | None, seed: int) -> float:
    source = torch.Generator().manual_seed(seed)
    maker, judge = recipe.model["maker"], recipe.model["judge"]
    slow = torch.optim.Adam(maker.parameters(), 1e-3, betas=(0.0, 0.9))
    fast = torch.optim.Adam(judge.parameters(), 2e-3, betas=(0.0, 0.9))
    squares = isinstance(recipe.criterion, _Told)
    with watched({"maker": maker, "judge": judge}, {"maker": slow, "judge": fast}, recipe.criterion, path):
        for _ in steps_of(recipe):
            real, noise = _line(48, source), torch.randn(48, 3, generator=source)
            made = maker(noise)
            if recipe.zero_grad:
                fast.zero_grad()
            recipe.criterion(judge(real), judge(made.detach())).backward()
            fast.step()
            if recipe.zero_grad:
                slow.zero_grad()
            told = judge(made)
            (((told - 1) ** 2).mean() if squares else -told.mean()).backward()
            slow.step()
    with torch.no_grad():
        return likeness(maker(torch.randn(500, 3, generator=source)), _line(500, source))


def wave_hinge(seed: int) -> Recipe:
    judge = nn.Sequential(nn.Linear(2, 40), nn.LeakyReLU(0.2), nn.Linear(40, 40), nn.LeakyReLU(0.2),
                          nn.Linear(40, 1))  # fmt: skip
    model = nn.ModuleDict({"maker": mlp(3, 40, 2), "judge": judge})
    return Recipe(model, NOTHING, NOTHING, _Hinge(), steps=180, by_hand=_play)


def squares(recipe: Recipe) -> None:
    recipe.criterion = _Told()


class _Contrast(nn.Module):
    """Two views of a row are to be nearer to each other than to the views of other rows."""

    def __init__(self, *, others: bool = True) -> None:
        super().__init__()
        self.others = others

    def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        told = told[: len(told) // 2 * 2]
        left, right = nn.functional.normalize(told, dim=1).chunk(2)
        if not self.others:
            return -(left * right).sum(1).mean()
        return nn.functional.cross_entropy(left @ right.T / 0.2, torch.arange(len(left)))


def chirps_contrast(seed: int) -> Recipe:
    """Codes of tones, learnt without labels by two noisy views of each."""
    (x, y), (held, held_y) = data.chirps()
    recipe = Recipe(
        mlp(32, 48, 12, 2), (x[..., 0], y), (held[..., 0], held_y), _Contrast(), neighbours, batch=40,
        steps=160, eval_every=1000, optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip

    def views(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
        return torch.cat([x + 0.25 * torch.randn_like(x), x + 0.25 * torch.randn_like(x)]), y

    recipe.on_batch.append(views)
    return recipe


def no_others(recipe: Recipe) -> None:
    """Views are drawn together and nothing is pushed apart: all codes become one."""
    recipe.criterion = _Contrast(others=False)


TASKS = (
    Task("masks_coder", "autoencoder", masks_coder, {"cosine": v.cosine},
         (silent.left_out("mean"), sagemaker.rate_explodes(), silent.initialised_again("spread", 100))),
    Task("colours_narrow", "autoencoder", colours_narrow, {"sgd": v.sgd(0.2)},
         (setup.collapsed("2"), sagemaker.not_a_number("0", 50), silent.detached("2"))),
    Task("noise_sharpener", "autoencoder", noise_sharpener, {"clipped": v.clipped},
         (Fault("other_noise", other_noise, NOT_LEARNING, "setup"), silent.stuck_loader(60))),
    Task("wave_hinge", "adversarial", wave_hinge, {"squares": squares},
         (silent.no_zero_grad(), sagemaker.dead_units("maker.2", 60))),
    Task("chirps_contrast", "autoencoder", chirps_contrast, {},
         (Fault("no_others", no_others, ("representation_collapse", "constant_output", "tensor_variance"),
                "setup"),)),
)  # fmt: skip
