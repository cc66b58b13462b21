"""Games of a maker and a critic, and learning by trying, in the seventh set."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, sagemaker, setup, silent, third
from benchmarks.detection.loop import begun, steps_of, watched
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.seventh import ways_data as data
from benchmarks.detection.programs.sixth import ways_games as sixth
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["TASKS"]


class Squares(nn.Module):
    """How far the critic's answer is from what it is to be, squared; the maker's is to be real (LSGAN)."""

    def forward(self, told: torch.Tensor, real: float, *, makes: bool = False) -> torch.Tensor:
        return 0.5 * (told - real).square().mean()


class Earth(nn.Module):
    """The critic's answer, far down for what is made and far up for what is real (Wasserstein)."""

    def forward(self, told: torch.Tensor, real: float, *, makes: bool = False) -> torch.Tensor:
        return (1 - 2 * real) * told.mean()


def _game(numbers: int, width: int, act: type[nn.Module]) -> nn.ModuleDict:
    return nn.ModuleDict({
        "maker": stack((8, width, width, numbers), act), "critic": stack((numbers, width, width, 1), act),
    })  # fmt: skip


def ellipses_forged(seed: int) -> Recipe:
    rows = data.ellipses()
    return Recipe(
        _game(8, 64, nn.ELU), (rows, rows), NOTHING, Squares(), fit_of, batch=80, steps=280,
        by_hand=sixth._forged, options={"kinds": 0, "smooth": 0.05},
        optimizer=lambda p: torch.optim.Adam(p, 2e-3, betas=(0.5, 0.9)),
    )  # fmt: skip


def loans_forged(seed: int) -> Recipe:
    rows = data.loaned()
    return Recipe(
        _game(6, 56, nn.ReLU), (rows, rows), NOTHING, Earth(), fit_of, batch=96, steps=300,
        by_hand=sixth._forged, options={"kinds": 0, "smooth": 0.5},
        optimizer=lambda p: torch.optim.Adam(p, 1.5e-3, betas=(0.0, 0.9)),
    )  # fmt: skip


Rows = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _tried(recipe: Recipe, path: Path | None, seed: int) -> float:
    """Steps on what was tried so far; what they are made of is an option."""
    source, model = torch.Generator().manual_seed(seed), recipe.model
    rows: Callable[[Recipe, torch.Generator, int], Rows] = recipe.options["rows"]
    optimizer = begun(recipe)
    with watched(model, optimizer, recipe.criterion, path, recipe.save_every) as handle:
        for step in steps_of(recipe):
            known, did, later = rows(recipe, source, step)
            if recipe.zero_grad:
                optimizer.zero_grad()
            recipe.criterion(model(known), did, later).backward()
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip or float("inf"))
            if recipe.steps_optimizer(step):
                optimizer.step()
            if handle is not None and step % 40 == 39:
                handle.log({"earned": data.worth(model)})
    return data.worth(model)


class Praised(nn.Module):
    """What was done is made likelier by what it earned beyond the usual; a little for spread (REINFORCE)."""

    def forward(self, told: torch.Tensor, did: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        likely = told.log_softmax(1)
        spread = -(likely.exp() * likely).sum(1).mean()
        return -(gain * likely.gather(1, did[:, None])[:, 0]).mean() - 0.01 * spread


def _lived(recipe: Recipe, source: torch.Generator, _step: int) -> Rows:
    """Days by the policy as it is, and what was earned from each hour on beyond the mean of that hour."""
    state, known, did, earned = data.began(48, source), [], [], []
    with torch.no_grad():
        for _ in range(data.LONG):
            known.append(data.seen(state))
            chances = recipe.model(known[-1]).softmax(1)
            did.append(torch.multinomial(chances, 1, generator=source)[:, 0])
            state, gained = data.sold(state, did[-1], source)
            earned.append(gained)
    gain = torch.stack(earned).flip(0).cumsum(0).flip(0)
    gain = (gain - gain.mean(1, keepdim=True)) / (gain.std(1, keepdim=True) + 1e-3)
    return torch.cat(known), torch.cat(did), gain.flatten()


class Missed(nn.Module):
    """How far what was done is from what it earned and what comes after, squared."""

    def forward(self, told: torch.Tensor, did: torch.Tensor, later: torch.Tensor) -> torch.Tensor:
        return (told.gather(1, did[:, None])[:, 0] - later).square().mean()


def _remembered(recipe: Recipe, source: torch.Generator, step: int) -> Rows:
    """Some hours of a store, and the worth of the best that can follow by a slower net (DQN)."""
    kept = recipe.options
    state = kept["state"] if step % data.LONG else data.began(32, source)
    if step % 10 == 0:
        kept["old"] = copy.deepcopy(recipe.model).requires_grad_(False)
    with torch.no_grad():
        did = recipe.model(data.seen(state)).argmax(1)
        odd = torch.rand(32, generator=source) < max(0.1, 1 - step / 100)
        did = torch.where(odd, torch.randint(3, (32,), generator=source), did)
        then, earned = data.sold(state, did, source)
        last = torch.full((32,), step % data.LONG == data.LONG - 1).float()
        kept["store"].append((data.seen(state), did, earned, data.seen(then), last))
        kept["state"] = then
        known, did, earned, after, last = (torch.cat(one) for one in zip(*kept["store"][-150:], strict=True))
        rows = torch.randint(len(known), (128,), generator=source)
        later = earned[rows] + (1 - last[rows]) * 0.95 * kept["old"](after[rows]).amax(1)
    return known[rows], did[rows], later


def power_praised(seed: int) -> Recipe:
    return Recipe(
        stack((4, 32, 32, 3), nn.Tanh), NOTHING, NOTHING, Praised(), fit_of, steps=160, by_hand=_tried,
        options={"rows": _lived}, optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip


def power_valued(seed: int) -> Recipe:
    return Recipe(
        stack((4, 48, 48, 3), nn.ReLU), NOTHING, NOTHING, Missed(), fit_of, steps=300, by_hand=_tried,
        clip=5.0, options={"rows": _remembered, "store": []}, optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip


TASKS = (
    Task("ellipses_forged", "adversarial", ellipses_forged, {"larger_batches": w.batches_of(112)},
         (fourth.rate_of_another(0.3), fifth.maker_detached())),
    Task("loans_forged", "adversarial", loans_forged, {"rmsprop": w.by("RMSprop", 8e-4)},
         (sagemaker.output_zero("maker.2", 100), silent.no_zero_grad())),
    Task("power_praised", "reinforcement", power_praised, {"rmsprop": w.by("RMSprop", 3e-3)},
         (third.saturated_units("2", 60), silent.left_out("2"))),
    Task("power_valued", "reinforcement", power_valued, {"nadam": w.by("NAdam", 3e-3)},
         (setup.constant_output("4"), silent.skipped(120))),
)  # fmt: skip
