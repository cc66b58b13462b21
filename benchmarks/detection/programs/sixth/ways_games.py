"""Games of a maker and a critic, learning by trying, and two optimizers at once, in the sixth set."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import sagemaker, silent
from benchmarks.detection.loop import begun, steps_of, watched
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.tables_nets import normed
from benchmarks.detection.programs.fifth.ways_games import NonSaturating
from benchmarks.detection.programs.sixth import ways_data as data
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of, likeness

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]


class Opposed(nn.Module):
    """The critic's hinge: real rows above 1, made ones below -1; the maker's: as far up as can be."""

    def forward(self, told: torch.Tensor, real: float, *, makes: bool = False) -> torch.Tensor:
        return -told.mean() if makes else nn.functional.relu(1 - (2 * real - 1) * told).mean()


class Labelled(NonSaturating):
    """Cross-entropy of what is real."""

    def forward(self, told: torch.Tensor, real: float, *, makes: bool = False) -> torch.Tensor:
        return super().forward(told, real)


def _bent(critic: nn.Module, real: torch.Tensor) -> torch.Tensor:
    """Square length of the critic's gradient at real rows (R1)."""
    rows = real.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(rows).sum(), rows, create_graph=True)
    return slope.square().sum(1).mean()


def _forged(recipe: Recipe, path: Path | None, seed: int) -> float:
    """The critic on real and made rows, then the maker against it; rows may come with a kind (in front)."""
    source, real = torch.Generator().manual_seed(seed), recipe.train[0]
    maker, critic = recipe.model["maker"], recipe.model["critic"]
    kinds, smooth = recipe.options["kinds"], recipe.options.get("smooth", 0.0)
    both = {name: recipe.optimizer(list(one.parameters())) for name, one in recipe.model.items()}

    def make(rows: torch.Tensor) -> torch.Tensor:
        noise = torch.randn(len(rows), 8, generator=source)
        return torch.cat([rows[:, :kinds], maker(torch.cat([rows[:, :kinds], noise], 1))], 1)

    with watched(dict(recipe.model.items()), both, recipe.criterion, path, recipe.save_every):
        for _ in steps_of(recipe):
            rows = real[torch.randint(len(real), (recipe.batch,), generator=source)]
            made = make(rows)
            if recipe.zero_grad:
                both["critic"].zero_grad()
            loss = recipe.criterion(critic(rows), 1.0) + recipe.criterion(critic(made.detach()), 0.0)
            (loss + smooth * _bent(critic, rows) if smooth else loss).backward()
            both["critic"].step()
            if recipe.zero_grad:
                both["maker"].zero_grad()
            told = critic(made.detach() if recipe.options.get("detached") else made)
            recipe.criterion(told, 1.0, makes=True).backward()
            both["maker"].step()
    maker.eval()
    with torch.no_grad():
        return likeness(make(real[:800]), real[:800])


def _pair(numbers: int, kinds: int, width: int, leak: float) -> nn.ModuleDict:
    critic = nn.Sequential(
        nn.Linear(kinds + numbers, width), nn.LeakyReLU(leak), nn.Linear(width, width), nn.LeakyReLU(leak),
        nn.Linear(width, 1),
    )  # fmt: skip
    return nn.ModuleDict({"maker": normed(kinds + 8, numbers, (width, width), nn.ReLU), "critic": critic})


def draws_forged(seed: int) -> Recipe:
    """Rows of four kinds, each made for its kind (conditional), by the hinge and spectral norms."""
    model, rows = _pair(6, 4, 48, 0.1), data.kinds_of_draws()
    for at in (0, 2):
        model["critic"][at] = nn.utils.parametrizations.spectral_norm(model["critic"][at])
    return Recipe(
        model, (rows, rows), NOTHING, Opposed(), fit_of, batch=96, steps=300, by_hand=_forged,
        options={"kinds": 4}, optimizer=lambda p: torch.optim.Adam(p, 1.2e-3, betas=(0.0, 0.9)),
    )  # fmt: skip


def bends_forged(seed: int) -> Recipe:
    rows = data.bends()
    return Recipe(
        _pair(10, 0, 64, 0.2), (rows, rows), NOTHING, Labelled(), fit_of, batch=80, steps=300,
        by_hand=_forged, options={"kinds": 0, "smooth": 0.1},
        optimizer=lambda p: torch.optim.Adam(p, 1.5e-3, betas=(0.5, 0.99)),
    )  # fmt: skip


LONG = 20


def _heated(warm: torch.Tensor, on: torch.Tensor, source: torch.Generator) -> tuple[torch.Tensor, ...]:
    """A room's warmth, the weather and the hour after one of three ways of heating, and what it is worth."""
    room, out, hour = warm.T
    room = room + 0.2 * (out - room) + 0.5 * on + 0.05 * torch.randn(len(room), generator=source)
    out = 0.95 * out + 0.1 * torch.randn(len(room), generator=source) - 0.04
    price = 0.15 + 0.1 * (hour * 2 * torch.pi / LONG).sin()
    return torch.stack([room, out, hour + 1], 1), -(room - 0.5).abs() - price * on


def _begun(count: int, source: torch.Generator) -> torch.Tensor:
    start = torch.randn(count, 3, generator=source) * torch.tensor([0.7, 0.4, 0.0])
    return start - torch.tensor([0.0, 0.5, 0.0])


def _seen(warm: torch.Tensor) -> torch.Tensor:
    turn = warm[:, 2:] * 2 * torch.pi / LONG
    return torch.cat([warm[:, :2], turn.sin(), turn.cos()], 1)


def _lived(model: nn.Module, count: int, source: torch.Generator, *, best: bool) -> tuple[torch.Tensor, ...]:
    """What was seen, done and earned, by time: (L, count, ...)."""
    warm, found = _begun(count, source), []
    with torch.no_grad():
        for _ in range(LONG):
            told = model(_seen(warm))[:, :3]
            did = told.argmax(1) if best else torch.distributions.Categorical(logits=told).sample()
            then, earned = _heated(warm, did.float(), source)
            found.append((_seen(warm), did, earned))
            warm = then
    return tuple(torch.stack(one) for one in zip(*found, strict=True))


def _worth(model: nn.Module) -> float:
    _, _, earned = _lived(model, 300, torch.Generator().manual_seed(641), best=True)
    return float(earned.mean())


class Praised(nn.Module):
    """What was done, made likelier by what it earned beyond what was expected; and that expectation (A2C)."""

    def forward(self, told: torch.Tensor, did: torch.Tensor, later: torch.Tensor) -> torch.Tensor:
        likely, expected = told[:, :3].log_softmax(1), told[:, 3]
        gain = (later - expected).detach()
        gain = (gain - gain.mean()) / (gain.std() + 1e-6)
        spread = -(likely.exp() * likely).sum(1).mean()
        praised = -(gain * likely.gather(1, did[:, None])[:, 0]).mean()
        return praised + 0.5 * (later - expected).square().mean() - 0.01 * spread


def _praised_rows(recipe: Recipe, source: torch.Generator, _step: int) -> tuple[torch.Tensor, ...]:
    """Lives by the policy as it is, with what was earned from each place on."""
    seen, did, earned = _lived(recipe.model, 16, source, best=False)
    later = torch.zeros(LONG + 1, 16)
    for at in range(LONG - 1, -1, -1):
        later[at] = earned[at] + 0.9 * later[at + 1]
    return seen.flatten(0, 1), did.flatten(), later[:-1].flatten()


class Valued(nn.Module):
    """How far what was done is from what it earned and what comes after (by the other net), robustly."""

    def forward(self, told: torch.Tensor, did: torch.Tensor, later: torch.Tensor) -> torch.Tensor:
        return nn.functional.smooth_l1_loss(told.gather(1, did[:, None])[:, 0], later)


def _valued_rows(recipe: Recipe, source: torch.Generator, step: int) -> tuple[torch.Tensor, ...]:
    """Of a store of lives, some places, with the other net's worth of the best that can follow (double)."""
    store = recipe.options.setdefault("store", [])
    slow = recipe.options.setdefault("slow", copy.deepcopy(recipe.model).requires_grad_(False))
    warm = recipe.options.setdefault("warm", _begun(32, source))
    with torch.no_grad():
        for one, now in zip(slow.parameters(), recipe.model.parameters(), strict=True):
            one.lerp_(now, 0.05)
        did = recipe.model(_seen(warm)).argmax(1)
        tried = torch.rand(32, generator=source) < max(0.1, 1 - step / 80)
        did = torch.where(tried, torch.randint(3, (32,), generator=source), did)
        then, earned = _heated(warm, did.float(), source)
        store.append((_seen(warm), did, earned, _seen(then)))
        recipe.options["warm"] = _begun(32, source) if step % LONG == LONG - 1 else then
        seen, did, earned, after = (torch.cat(one) for one in zip(*store[-120:], strict=True))
        rows = torch.randint(len(seen), (96,), generator=source)
        best = recipe.model(after[rows]).argmax(1, keepdim=True)
        later = earned[rows] + 0.9 * slow(after[rows]).gather(1, best)[:, 0]
    return seen[rows], did[rows], later


def _tried(recipe: Recipe, path: Path | None, seed: int, rows: str) -> float:
    """Rows of what was tried, again and again."""
    source, model = torch.Generator().manual_seed(seed), recipe.model
    optimizer = begun(recipe)
    with watched(model, optimizer, recipe.criterion, path, recipe.save_every) as handle:
        for step in steps_of(recipe):
            seen, did, later = globals()[rows](recipe, source, step)
            if recipe.zero_grad:
                optimizer.zero_grad()
            recipe.criterion(model(seen), did, later).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if recipe.steps_optimizer(step):
                optimizer.step()
            if handle is not None and step % 40 == 39:
                handle.log({"earned": _worth(model)})
    return _worth(model)


def heating_praised(seed: int) -> Recipe:
    return Recipe(
        stack((4, 40, 40, 4), nn.ReLU), NOTHING, NOTHING, Praised(), fit_of, steps=200,
        by_hand=partial(_tried, rows="_praised_rows"), optimizer=lambda p: torch.optim.Adam(p, 5e-3),
    )  # fmt: skip


def heating_valued(seed: int) -> Recipe:
    return Recipe(
        stack((4, 40, 40, 3), nn.ReLU), NOTHING, NOTHING, Valued(), fit_of, steps=280,
        by_hand=partial(_tried, rows="_valued_rows"), optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


TASKS = (
    Task("draws_forged", "adversarial", draws_forged, {"larger_batches": w.batches_of(128)},
         (fifth.maker_detached(), sagemaker.rate_explodes(1e5))),
    Task("bends_forged", "adversarial", bends_forged, {"rmsprop": w.by("RMSprop", 5e-4)},
         (sagemaker.output_zero("maker.3", 100), silent.no_zero_grad())),
    Task("heating_praised", "reinforcement", heating_praised, {"rmsprop": w.by("RMSprop", 3e-3)},
         (sagemaker.rate_tiny(1e-4), silent.left_out("2"))),
    Task("heating_valued", "reinforcement", heating_valued, {"adamw": w.by("AdamW", 3e-3, weight_decay=0.01)},
         (sagemaker.dead_units("2", 90), silent.other_model())),
)  # fmt: skip
