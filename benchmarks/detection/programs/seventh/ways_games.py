"""Games of a maker and a critic, and learning by trying, in the seventh set."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, sagemaker, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.seventh import ways_data as data
from benchmarks.detection.programs.sixth import ways_games as sixth
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of

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
        by_hand=sixth._forged, options={"kinds": 0, "smooth": 0.2},
        optimizer=lambda p: torch.optim.Adam(p, 1e-3, betas=(0.5, 0.99)),
    )  # fmt: skip


def loans_forged(seed: int) -> Recipe:
    rows = data.loaned()
    return Recipe(
        _game(6, 56, nn.ReLU), (rows, rows), NOTHING, Earth(), fit_of, batch=96, steps=300,
        by_hand=sixth._forged, options={"kinds": 0, "smooth": 0.5},
        optimizer=lambda p: torch.optim.RMSprop(p, 8e-4),
    )  # fmt: skip


class Praised(nn.Module):
    """What was done is made likelier by what it earned beyond the usual; a little for spread (REINFORCE)."""

    def forward(self, told: torch.Tensor, tried: torch.Tensor) -> torch.Tensor:
        likely, did, gain = told.log_softmax(1), tried[:, :1].long(), tried[:, 1]
        spread = -(likely.exp() * likely).sum(1).mean()
        return -(gain * likely.gather(1, did)[:, 0]).mean() - 0.01 * spread


def _lived(recipe: Recipe, _step: int, *_: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Days by the policy as it is, and what was earned from each hour on beyond the mean of that hour."""
    source, other = recipe.options["source"], recipe.options["other"]
    other.load_state_dict(recipe.model.state_dict())
    state, known, did, earned = data.began(24, source), [], [], []
    with torch.no_grad():
        for _hour in range(data.LONG):
            known.append(data.seen(state))
            chances = other(known[-1]).softmax(1)
            did.append(torch.multinomial(chances, 1, generator=source)[:, 0])
            state, gained = data.sold(state, did[-1], source)
            earned.append(gained)
    gain = torch.stack(earned).flip(0).cumsum(0).flip(0)
    gain = (gain - gain.mean(1, keepdim=True)) / (gain.std(1, keepdim=True) + 1e-3)
    return torch.cat(known), torch.stack([torch.cat(did), gain.flatten()], 1)


class Missed(nn.Module):
    """How far what was done is from what it earned and what comes after, robustly."""

    def forward(self, told: torch.Tensor, tried: torch.Tensor) -> torch.Tensor:
        return nn.functional.smooth_l1_loss(told.gather(1, tried[:, :1].long())[:, 0], tried[:, 1])


def _remembered(recipe: Recipe, step: int, *_: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Some hours of a store, and the worth of the best that can follow by a slower net (DQN)."""
    kept, source = recipe.options, recipe.options["source"]
    state = kept["state"] if step % data.LONG else data.began(32, source)
    with torch.no_grad():
        for slow, now in zip(kept["other"].parameters(), recipe.model.parameters(), strict=True):
            slow.lerp_(now, 0.05)
        did = recipe.model(data.seen(state)).argmax(1)
        odd = torch.rand(32, generator=source) < max(0.1, 1 - step / 100)
        did = torch.where(odd, torch.randint(3, (32,), generator=source), did)
        kept["state"], earned = data.sold(state, did, source)
        last = torch.full((32,), step % data.LONG == data.LONG - 1).float()
        kept["store"].append((data.seen(state), did, earned, data.seen(kept["state"]), last))
        known, did, earned, after, last = (torch.cat(one) for one in zip(*kept["store"][-150:], strict=True))
        rows = torch.randint(len(known), (256,), generator=source)
        later = earned[rows] + (1 - last[rows]) * 0.95 * kept["other"](after[rows]).amax(1)
    return known[rows], torch.stack([did[rows], later], 1)


def _copied(recipe: Recipe, _step: int) -> None:
    """Copies of the model to act by and to judge by, neither of which is watched."""
    recipe.options |= {name: copy.deepcopy(recipe.model) for name in ("other", "judged")}


def _power(model: nn.Module, criterion: nn.Module, seed: int, rows: Any, rate: float, steps: int) -> Recipe:
    """Batches are made by trying; a day's worth is the score, whatever rows are held out."""

    def worth(_told: torch.Tensor, _wanted: torch.Tensor) -> float:
        recipe.options["judged"].load_state_dict(recipe.model.state_dict())
        return data.worth(recipe.options["judged"])

    source = torch.Generator().manual_seed(seed)
    some = data.seen(data.began(256, source)), torch.zeros(256, 2)
    recipe = Recipe(
        model, some, some, criterion, worth, clip=5.0, steps=steps, on_batch=[rows],
        after_optimizer=[_copied], options={"source": source, "store": []},
        optimizer=lambda p: torch.optim.Adam(p, rate), schedule=lambda step: 1 - 0.9 * step / steps,
    )  # fmt: skip
    return recipe


def power_praised(seed: int) -> Recipe:
    return _power(stack((4, 32, 32, 3), nn.Tanh), Praised(), seed, _lived, 6e-3, 120)


def power_valued(seed: int) -> Recipe:
    return _power(stack((4, 64, 64, 3), nn.ReLU), Missed(), seed, _remembered, 5e-3, 280)


TASKS = (
    Task("ellipses_forged", "adversarial", ellipses_forged, {"larger_batches": w.batches_of(112)},
         (fourth.rate_of_another(0.3), fifth.maker_detached())),
    Task("loans_forged", "adversarial", loans_forged, {"larger_batches": w.batches_of(128)},
         (sagemaker.output_zero("maker.2", 100), silent.no_zero_grad())),
    Task("power_praised", "reinforcement", power_praised, {"rmsprop": w.by("RMSprop", 3e-3)},
         (third.saturated_units("2", 60), silent.left_out("2"))),
    Task("power_valued", "reinforcement", power_valued, {"nadam": w.by("NAdam", 4e-3)},
         (setup.constant_output("4"), silent.skipped(120))),
)  # fmt: skip
