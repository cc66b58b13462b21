"""Games of a maker and a critic, and learning what to do, in the tenth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import fourth, ninth_tables, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.ninth.games import Foreseen
from benchmarks.detection.programs.seventh.ways_games import Squares, _copied
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.ways_games import Labelled, _forged
from benchmarks.detection.programs.tenth import games_data as data
from benchmarks.detection.programs.tenth import signals_data
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TASKS"]


def _game(
    rows: torch.Tensor, loss: nn.Module, width: int, acts: tuple[type[nn.Module], ...], **how
) -> Recipe:
    numbers = rows.shape[1]
    model = nn.ModuleDict({
        "maker": stack((8, width, width, numbers), acts[0], nn.BatchNorm1d),
        "critic": stack((numbers, width, width, 1), acts[1]),
    })  # fmt: skip
    return Recipe(model, (rows, rows), NOTHING, loss, fit_of, by_hand=_forged, **how)


def digits_forged(seed: int) -> Recipe:
    """The main parts of digits."""
    return _game(
        signals_data.main_parts(), Labelled(), 72, (nn.ReLU, nn.LeakyReLU), batch=96, steps=280,
        options={"kinds": 0, "smooth": 1.0},
        optimizer=lambda p: torch.optim.Adam(p, 1e-3, betas=(0.5, 0.99)),
    )  # fmt: skip


def gaits_forged(seed: int) -> Recipe:
    return _game(
        signals_data.gaits(1042), Squares(), 64, (nn.SiLU, nn.SiLU), batch=80, steps=280,
        options={"kinds": 0, "smooth": 0.2},
        optimizer=lambda p: torch.optim.AdamW(p, 1e-3, betas=(0.5, 0.99), weight_decay=0.01),
    )  # fmt: skip


class Expected(nn.Module):
    """What was better than expected is made likelier; and the expectation, and some spread (A2C)."""

    def forward(self, told: torch.Tensor, tried: torch.Tensor) -> torch.Tensor:
        likely, did, later = told[:, : data.WAYS].log_softmax(1), tried[:, :1].long(), tried[:, 1]
        gain = later - told[:, data.WAYS].detach()
        gain = (gain - gain.mean()) / (gain.std() + 1e-3)
        praised = (gain * likely.gather(1, did)[:, 0]).mean()
        spread = -(likely.exp() * likely).sum(1).mean()
        return 0.5 * (told[:, data.WAYS] - later).square().mean() - praised - 0.02 * spread


def _hours(recipe: Recipe, _step: int, *_: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Six hours of fields by the policy as it is, and what they and what follows were worth."""
    kept, acting = recipe.options, recipe.options["other"]
    acting.load_state_dict(recipe.model.state_dict())
    source, state, found = kept["source"], kept.get("state"), []
    if state is None or float(state[0, 2]) >= data.LONG:
        state = data.began(40, source)
    with torch.no_grad():
        for _hour in range(6):
            known = data.seen(state)
            chances = acting(known)[:, : data.WAYS].softmax(1)
            did = torch.multinomial(chances, 1, generator=source)[:, 0].float()
            state, gain = data.passed(state, did, source)
            found.append((known, did, gain))
        later, sums = acting(data.seen(state))[:, data.WAYS], []
        for *_known, gain in reversed(found):
            later = gain + data.KEPT * later
            sums.insert(0, later)
    kept["state"] = state
    known, did, _gain = (torch.cat(one) for one in zip(*found, strict=True))
    return known, torch.stack([did, torch.cat(sums)], 1)


def _remembered(recipe: Recipe, step: int, *_: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Some hours of a store, and the worth of what is thought best then by a slower net (double DQN)."""
    kept, source = recipe.options, recipe.options["source"]
    slow, state = kept["other"], kept.get("state")
    if state is None or float(state[0, 2]) >= data.LONG:
        state = data.began(40, source)
    with torch.no_grad():
        for one, new in zip(slow.parameters(), recipe.model.parameters(), strict=True):
            one.lerp_(new, 0.1)
        did = recipe.model(data.seen(state)).argmax(1)
        odd = torch.rand(len(did), generator=source) < max(0.1, 1 - step / 80)
        did = torch.where(odd, torch.randint(data.WAYS, did.shape, generator=source), did).float()
        kept["state"], gain = data.passed(state, did, source)
        store = kept.setdefault("store", [])
        store.append((data.seen(state), did, gain, data.seen(kept["state"])))
        known, did, gain, after = (torch.cat(one) for one in zip(*store[-150:], strict=True))
        rows = torch.randint(len(known), (recipe.batch,), generator=source)
        best = recipe.model(after[rows]).argmax(1, keepdim=True)
        later = gain[rows] + data.KEPT * slow(after[rows]).gather(1, best)[:, 0]
    return known[rows], torch.stack([did[rows], later], 1)


def _watered(seed: int, model: nn.Module, loss: nn.Module, rows: Callable, rate: float, steps: int) -> Recipe:
    """Batches are made by trying; the worth of the days is the score, whatever rows are held out."""

    def worth(_told: torch.Tensor, _wanted: torch.Tensor) -> float:
        recipe.options["judged"].load_state_dict(recipe.model.state_dict())
        return data.worth(recipe.options["judged"])

    source = torch.Generator().manual_seed(seed)
    some = data.seen(data.began(512, source)), torch.zeros(512, 2)
    recipe = Recipe(
        model, some, some, loss, worth, clip=1.0, batch=192, steps=steps, on_batch=[rows], eval_every=1000,
        after_optimizer=[_copied], options={"source": source},
        optimizer=lambda p: torch.optim.Adam(p, rate), schedule=lambda step: 1 - 0.95 * step / steps,
    )  # fmt: skip
    return recipe


def fields_watered(seed: int) -> Recipe:
    return _watered(seed, stack((4, 48, 48, data.WAYS + 1), nn.Tanh), Expected(), _hours, 3e-3, 200)


def fields_valued(seed: int) -> Recipe:
    model = stack((4, 64, 64, data.WAYS), nn.ReLU)
    return _watered(seed, model, Foreseen(), _remembered, 3e-3, 280)


TASKS = (
    Task("digits_forged", "adversarial", digits_forged, {"larger_batches": w.batches_of(128)},
         (fourth.mostly_dead("maker.4", 0.9, 100), silent.no_zero_grad())),
    Task("gaits_forged", "adversarial", gaits_forged, {"larger_batches": w.batches_of(112)},
         (ninth_tables.betas_swapped(1e-3), fourth.without_gradient("maker.3"))),
    Task("fields_watered", "reinforcement", fields_watered, {"nadam": w.by("NAdam", 3e-3)},
         (third.saturated_units("0", 100), fourth.older_loaded(10, 140))),
    Task("fields_valued", "reinforcement", fields_valued, {"larger_batches": w.batches_of(256)},
         (third.epsilon_large(3e-3, 1e3), silent.stale_optimizer("2"))),
)  # fmt: skip
