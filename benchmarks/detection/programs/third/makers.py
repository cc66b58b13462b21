"""Codes, pairs and learning without labels of the third held-out set."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import sagemaker, setup, silent, third
from benchmarks.detection.loop import steps_of, watched
from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs.networks import divergence, mlp
from benchmarks.detection.programs.third import data
from benchmarks.detection.programs.third import ways as w
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of, likeness, neighbours

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]

CODE = 6


class _Drawer(nn.Module):
    """A convolutional variational autoencoder; gives picture, mean and log-variance side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(1, 12, 3, 2, 1), nn.SiLU(), nn.Conv2d(12, 24, 3, 2, 1), nn.SiLU(), nn.Flatten()
        )
        self.mean, self.spread = nn.Linear(96, CODE), nn.Linear(96, CODE)
        self.widen = nn.Linear(CODE, 96)
        self.decode = nn.Sequential(
            nn.SiLU(), nn.Unflatten(1, (24, 2, 2)), nn.ConvTranspose2d(24, 12, 2, 2), nn.SiLU(),
            nn.ConvTranspose2d(12, 1, 2, 2), nn.Flatten(),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.encode(x)
        mean, spread = self.mean(h), self.spread(h)
        code = mean + torch.randn_like(mean) * torch.exp(spread / 2) if self.training else mean
        return torch.cat([self.decode(self.widen(code)), mean, spread], 1)


class _Bound(nn.Module):
    """Square error of the pixels, added up, and how far the code is from its prior."""

    def __init__(self, weight: float = 0.3) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, told: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        mean, spread = told[:, 64 : 64 + CODE], told[:, 64 + CODE :]
        return ((told[:, :64] - x.flatten(1)) ** 2).sum(1).mean() + self.weight * divergence(mean, spread)


def digits_drawn(seed: int) -> Recipe:
    (x, _), (test, _) = data.whole_digits()
    return Recipe(
        _Drawer(), (x, x), (test, test), _Bound(), lambda told, wanted: fit_of(told[:, :64], wanted),
        batch=50, steps=190, optimizer=lambda p: torch.optim.Adam(p, 5e-3),
    )  # fmt: skip


class _Both(nn.Module):
    """Encoded and decoded by the same weights."""

    def __init__(self, width_in: int, width: int, code: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width_in, width), nn.Linear(width, code)
        self.act = nn.Tanh()
        self.back1, self.back2 = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width_in))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        code = self.second(self.act(self.first(x)))
        h = self.act(code @ self.second.weight + self.back1)
        return h @ self.first.weight + self.back2


def lesions_tied(seed: int) -> Recipe:
    """Thirty numbers through five and back, some of them hidden at first."""
    recipe = Recipe(
        _Both(30, 40, 5), *data.lesions(), nn.MSELoss(), fit_of, batch=10, accumulate=3, steps=150,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip

    def hide(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
        return x * (torch.rand_like(x) > 0.15), y

    recipe.on_batch.append(hide)
    return recipe


class _Views(nn.Module):
    """An encoder, a guess of what a slowly following copy of it says, and that copy (BYOL)."""

    def __init__(self, width_in: int, width: int = 48, code: int = 16) -> None:
        super().__init__()
        self.online = nn.Sequential(
            nn.Linear(width_in, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, code)
        )
        self.guess = nn.Sequential(nn.Linear(code, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, code))
        self.follower = copy.deepcopy(self.online).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return self.online(x)
        with torch.no_grad():
            wanted = self.follower(x)
        return torch.cat([self.guess(self.online(x)), wanted], 1)


class _Agreeing(nn.Module):
    """Each view's guess of the other."""

    def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        guess, wanted = told.chunk(2, 1)
        one, two = guess.chunk(2)
        left, right = wanted.chunk(2)
        return (
            2
            - (
                nn.functional.cosine_similarity(one, right) + nn.functional.cosine_similarity(two, left)
            ).mean()
        )


def _two_views(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
    """Noise, and some pixels hidden."""
    views = [(x + 0.3 * torch.randn_like(x)) * (torch.rand_like(x) > 0.2) for _ in range(2)]
    return torch.cat(views), y


def digits_followed(seed: int) -> Recipe:
    """Codes of digits without labels, told by a copy that follows slowly and is not trained."""
    (x, y), (test, test_y) = data.rows_of_digits()
    recipe = Recipe(
        _Views(64), (x.flatten(1), y), (test.flatten(1), test_y), _Agreeing(), neighbours, batch=64,
        steps=180, eval_every=1000, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip

    def follow(recipe: Recipe, _step: int) -> None:
        with torch.no_grad():
            for slow, fast in zip(
                recipe.model.follower.parameters(), recipe.model.online.parameters(), strict=True
            ):
                slow.lerp_(fast, 0.05)

    recipe.before_step.append(follow)
    recipe.on_batch.append(_two_views)
    return recipe


def one_net(recipe: Recipe) -> None:
    """The copy is the net itself, with its gradient, and nothing is normalised between."""

    class Near(nn.Module):
        def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
            left, right = told.chunk(2, 1)[0].chunk(2)
            return ((left - right) ** 2).sum(1).mean()

    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 16))
    recipe.model, recipe.criterion, recipe.before_step = model, Near(), []
    recipe.steps = 260


class _Triplet(nn.Module):
    """Rows of one class nearer to each other than to the nearest of another, by a margin."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        far = torch.cdist(told, told)
        alike = wanted[:, None] == wanted
        hardest = (far * alike).amax(1) - far.masked_fill(alike, 1e9).amin(1)
        return nn.functional.softplus(hardest).mean()


def points_apart(seed: int) -> Recipe:
    """A map of cloud's kinds by triplets."""
    return Recipe(
        mlp(20, 64, 6, 1), *data.clusters(), _Triplet(), neighbours, batch=72, steps=150,
        optimizer=lambda p: torch.optim.RAdam(p, 3e-3),
    )  # fmt: skip


class _Earth(nn.Module):
    """How far apart the critic sees what is real and what is made; below zero when it sees well."""

    def forward(self, real: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
        return made.mean() - real.mean()


def _stars(count: int, source: torch.Generator) -> torch.Tensor:
    """Points around the corners of a pentagon."""
    angle = torch.randint(0, 5, (count,), generator=source) * 2 * torch.pi / 5
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.12 * torch.randn(count, 2, generator=source)


def _steep(critic: nn.Module, real: torch.Tensor, made: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """How far the critic's slope between real and made points is from 1."""
    between = (share * real + (1 - share) * made).requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((slope.norm(dim=1) - 1) ** 2).mean()


def _rival(recipe: Recipe, path: Path | None, seed: int) -> float:
    """Wasserstein's game with a penalty on the critic's slope."""
    source = torch.Generator().manual_seed(seed)
    maker, critic = recipe.model["maker"], recipe.model["critic"]
    slow = torch.optim.Adam(maker.parameters(), 2e-3, betas=(0.0, 0.9))
    fast = torch.optim.Adam(critic.parameters(), 4e-3, betas=(0.0, 0.9))
    weight = recipe.options.get("penalty", 0.3)
    with watched({"maker": maker, "critic": critic}, {"maker": slow, "critic": fast}, recipe.criterion, path):
        for _ in steps_of(recipe):
            real, noise = _stars(64, source), torch.randn(64, 4, generator=source)
            made = maker(noise)
            if recipe.zero_grad:
                fast.zero_grad()
            loss = recipe.criterion(critic(real), critic(made.detach()))
            penalty = _steep(critic, real, made.detach(), torch.rand(64, 1, generator=source))
            (loss + weight * penalty).backward()
            fast.step()
            if recipe.zero_grad:
                slow.zero_grad()
            (-critic(made).mean()).backward()
            slow.step()
    with torch.no_grad():
        return likeness(maker(torch.randn(500, 4, generator=source)), _stars(500, source))


def stars_rival(seed: int) -> Recipe:
    model = nn.ModuleDict({
        "maker": mlp(4, 40, 2, 2), "critic": mlp(2, 40, 1, 2, lambda: nn.LeakyReLU(0.2))
    })  # fmt: skip
    return Recipe(model, NOTHING, NOTHING, _Earth(), steps=240, by_hand=_rival)


def steeper(recipe: Recipe) -> None:
    recipe.options["penalty"] = 1.0


TASKS = (
    Task("digits_drawn", "autoencoder", digits_drawn, {},
         (third.heavy_divergence(), sagemaker.not_a_number("encode.2", 50))),
    Task("lesions_tied", "autoencoder", lesions_tied, {"triangles": w.triangles},
         (setup.collapsed("second"), setup.oscillating(300.0), third.discarded_batches())),
    Task("digits_followed", "representation", digits_followed, {"ramped": w.ramped},
         (Fault("one_net", one_net, third.COLLAPSED, "setup"), silent.left_out("guess"))),
    Task("points_apart", "representation", points_apart, {"strong_decay": w.strong_decay(3e-3, 1.0)},
         (setup.shuffled_labels(), sagemaker.rate_explodes(1e5))),
    Task("stars_rival", "adversarial", stars_rival, {"steeper": steeper},
         (silent.no_zero_grad(), sagemaker.dead_units("maker.2", 80))),
)  # fmt: skip
