"""Codes, densities, flows, games and learning without labels of the fourth held-out set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import fourth, sagemaker, silent, third
from benchmarks.detection.loop import steps_of, watched
from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs.fourth import data
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.fourth.networks import Masked, Waves
from benchmarks.detection.programs.networks import VariationalCoder, divergence, mlp
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of, likeness, neighbours

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]

CODE = 8


class _Painter(VariationalCoder):
    """Of 12 x 12 pictures."""

    def __init__(self, width: int = 72) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(144, width), nn.LayerNorm(width), nn.GELU())
        self.mean, self.spread = nn.Linear(width, CODE), nn.Linear(width, CODE)
        self.decode = nn.Sequential(
            nn.Linear(CODE, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, 144)
        )


class _Annealed(nn.Module):
    """Square error of the pixels, and how far the code is from its prior, which comes to count by and by."""

    def __init__(self, most: float = 1.0) -> None:
        super().__init__()
        self.most, self.share = most, 1.0

    def forward(self, told: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        mean, spread = told[:, 144 : 144 + CODE], told[:, 144 + CODE :]
        far = divergence(mean, spread)
        return ((told[:, :144] - x) ** 2).sum(1).mean() + self.share * self.most * far


def segments_painted(seed: int) -> Recipe:
    """The code's divergence counts nothing at first and all from step 120 on: the loss rises on the way."""
    (x, _), (held, _) = data.segments(noise=0.15)
    x, held = x.flatten(1), held.flatten(1)

    def more(recipe: Recipe, step: int) -> None:
        recipe.criterion.share = min(1.0, step / 120)

    return Recipe(
        _Painter(), (x, x), (held, held), _Annealed(), lambda told, wanted: fit_of(told[:, :144], wanted),
        batch=60, steps=220, before_step=[more], optimizer=lambda p: torch.optim.Adamax(p, 6e-3),
    )  # fmt: skip


class _Coded(nn.Module):
    """Six places, each told by one of 24 vectors of a book (VQ): picture, and both ways' distances."""

    def __init__(self, width: int = 64, codes: int = 24, each: int = 6) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(144, width), nn.ReLU(), nn.Linear(width, 6 * each))
        self.book = nn.Embedding(codes, each)
        self.decode = nn.Sequential(nn.Linear(6 * each, width), nn.ReLU(), nn.Linear(width, 144))
        nn.init.normal_(self.book.weight, std=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.encode(x).view(len(x), 6, -1)
        near = self.book(torch.cdist(h.flatten(0, 1), self.book.weight).argmin(1)).view_as(h)
        passed = h + (near - h).detach()
        to_book, to_code = ((near - h.detach()) ** 2).sum((1, 2)), ((near.detach() - h) ** 2).sum((1, 2))
        return torch.cat([self.decode(passed.flatten(1)), to_book[:, None], to_code[:, None]], 1)


class _Quantised(nn.Module):
    """Square error of the pixels, the book's distance and a quarter of the code's."""

    def forward(self, told: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return ((told[:, :144] - x) ** 2).mean() + (told[:, 144] + 0.25 * told[:, 145]).mean() / 36


def segments_coded(seed: int) -> Recipe:
    """Some vectors of the book are never the nearest, and stay as they were."""
    (x, _), (held, _) = data.segments(noise=0.15)
    x, held = x.flatten(1), held.flatten(1)
    return Recipe(
        _Coded(), (x, x), (held, held), _Quantised(), lambda told, wanted: fit_of(told[:, :144], wanted),
        batch=60, steps=240, optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip


class _Likely(nn.Module):
    """Minus the log-density of numbers by what of them could not be told from those before, per number."""

    def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        left, spread = told.chunk(2, 1)
        return (0.5 * left**2 + spread).mean() + 0.5 * math.log(2 * math.pi)

    def score(self, told: torch.Tensor, wanted: torch.Tensor) -> float:
        """Log-density above that of a bell, at least -5."""
        gain = 0.5 * math.log(2 * math.pi * math.e) - float(self(told, wanted))
        return max(-5.0, gain) if gain == gain else -5.0


def quads_masked(seed: int) -> Recipe:
    loss = _Likely()
    return Recipe(
        Masked(5), *data.quads(), loss, loss.score, batch=60, steps=220,
        optimizer=lambda p: torch.optim.RAdam(p, 6e-3),
    )  # fmt: skip


def _moved(x: torch.Tensor, source: torch.Generator | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on the way from noise to where they are, with the time; and where they go from there."""
    noise, time = torch.randn(x.shape, generator=source), torch.rand(len(x), 1, generator=source)
    return torch.cat([(1 - time) * noise + time * x, time], 1), x - noise


def checkers_flowed(seed: int) -> Recipe:
    """From noise to a board's fields (flow matching): half of it cannot be told, the loss stays high."""
    train, (held, _) = data.checkers()
    return Recipe(
        Waves(3, 2), train, _moved(held, torch.Generator().manual_seed(280)), nn.MSELoss(), fit_of, batch=128,
        steps=260, on_batch=[lambda _recipe, _step, x, _y: _moved(x)],
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.0),
    )  # fmt: skip


class _Views(nn.Module):
    """An encoder, and behind it (in training) a wider net whose codes are compared."""

    def __init__(self, width: int = 64, code: int = 16) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(144, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, code)
        )
        self.widen = nn.Sequential(
            nn.ReLU(), nn.Linear(code, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 48)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.widen(self.encode(x)) if self.training else self.encode(x)


class _Varied(nn.Module):
    """Two views alike, every number of a code spread, and none like another (VICReg)."""

    def __init__(self) -> None:
        super().__init__()
        self.spread, self.apart = 25.0, 1.0

    def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        left, right = told.chunk(2)
        loss = 25.0 * nn.functional.mse_loss(left, right)
        for one in (left, right):
            code = one - one.mean(0)
            loss = loss + self.spread * torch.relu(1 - (code.var(0) + 1e-4).sqrt()).mean() / 2
            both = code.T @ code / (len(code) - 1)
            loss = loss + self.apart * (both - both.diag().diag()).square().sum() / both.shape[0]
        return loss


def _views(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
    """Moved by a pixel or not, other noise, some pixels hidden."""
    found = []
    for _ in range(2):
        down, right = (int(one) for one in torch.randint(-1, 2, (2,)))
        moved = x.view(-1, 12, 12).roll((down, right), (1, 2)).flatten(1)
        found.append((moved + 0.3 * torch.randn_like(x)) * (torch.rand_like(x) > 0.15))
    return torch.cat(found), y


def segments_varied(seed: int) -> Recipe:
    (x, y), (held, held_y) = data.segments(noise=0.15)
    return Recipe(
        _Views(), (x.flatten(1), y), (held.flatten(1), held_y), _Varied(), neighbours, batch=96, steps=200,
        eval_every=1000, on_batch=[_views], optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=1e-3),
    )  # fmt: skip


def _ladder(count: int, source: torch.Generator) -> torch.Tensor:
    """Points on the six rungs' ends of a ladder."""
    place = torch.randint(0, 6, (count,), generator=source)
    at = torch.stack([(place % 2) * 1.6 - 0.8, (place // 2) * 1.2 - 1.2], 1)
    return at + 0.1 * torch.randn(count, 2, generator=source)


class _Lead(nn.Module):
    """By how much what is made seems truer than what is real: below zero while the critic sees well."""

    def forward(self, real: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
        return made.mean() - real.mean()


def _clipped_game(recipe: Recipe, path: Path | None, seed: int) -> float:
    """Wasserstein's game as it was first played: the critic's weights are cut off."""
    source = torch.Generator().manual_seed(seed)
    maker, critic = recipe.model["maker"], recipe.model["critic"]
    slow, fast = torch.optim.RMSprop(maker.parameters(), 1e-3), torch.optim.RMSprop(critic.parameters(), 3e-3)
    with watched({"maker": maker, "critic": critic}, {"maker": slow, "critic": fast}, recipe.criterion, path):
        for _ in steps_of(recipe):
            for _ in range(3):
                if recipe.zero_grad:
                    fast.zero_grad()
                made = maker(torch.randn(64, 4, generator=source)).detach()
                recipe.criterion(critic(_ladder(64, source)), critic(made)).backward()
                fast.step()
                with torch.no_grad():
                    for one in critic.parameters():
                        one.clamp_(-0.25, 0.25)
            if recipe.zero_grad:
                slow.zero_grad()
            (-critic(maker(torch.randn(64, 4, generator=source))).mean()).backward()
            slow.step()
    with torch.no_grad():
        return likeness(maker(torch.randn(500, 4, generator=source)), _ladder(500, source))


def ladder_clipped(seed: int) -> Recipe:
    model = nn.ModuleDict({"maker": mlp(4, 48, 2, 2), "critic": mlp(2, 48, 1, 2)})
    return Recipe(model, NOTHING, NOTHING, _Lead(), steps=200, by_hand=_clipped_game)


def heavy_divergence(recipe: Recipe) -> None:
    """The code's divergence weighs a hundred times too much: it tells nothing of the picture."""
    recipe.criterion.most = 100.0


TASKS = (
    Task("segments_painted", "autoencoder", segments_painted, {"averaged": w.averaged},
         (Fault("heavy_divergence", heavy_divergence, third.COLLAPSED, "setup"),
          silent.left_out("mean"), sagemaker.not_a_number("encode.0", 60))),
    Task("segments_coded", "autoencoder", segments_coded, {"swa": w.swa},
         (fourth.without_gradient("encode"), sagemaker.dead_units("decode.0", 70), sagemaker.rate_tiny())),
    Task("quads_masked", "density", quads_masked, {"on_plateaus": w.on_plateaus},
         (fourth.raised(400.0, 80), silent.left_out("second"), fourth.same_few(2))),
    Task("checkers_flowed", "diffusion", checkers_flowed, {"averaged": w.averaged, "cycled": w.cycled},
         (fourth.other_rows(), silent.skipped(60), fourth.half_overflow("body.0", 60))),
    Task("segments_varied", "representation", segments_varied, {"cooled": w.cooled},
         (fourth.without("spread", spread=0.0, apart=0.0), silent.left_out("encode.0"),
          fourth.rate_of_another(1.0))),
    Task("ladder_clipped", "adversarial", ladder_clipped, {},
         (silent.no_zero_grad(), sagemaker.dead_units("maker.2", 60))),
)  # fmt: skip
