"""Ways of teaching: against attacks, by a teacher, ever harder, class after class, to learn quickly."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import fourth, sagemaker, setup, silent
from benchmarks.detection.loop import begun, steps_of, watched
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fourth import data, losses
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.fourth.networks import Plain
from benchmarks.detection.programs.networks import cnn, mlp
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]


def _flat(split: data.Split) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(x.flatten(1), y) for x, y in split]


def segments_attacked(seed: int) -> Recipe:
    """Pictures are changed a little, so that the net errs most (FGSM): the loss stays high."""

    def attack(recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
        x = x.clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(nn.functional.cross_entropy(recipe.model(x), y), x)
        return (x + 0.15 * slope.sign()).detach(), y

    return Recipe(
        mlp(144, 96, 10, 2), *_flat(data.segments()), batch=64, steps=180, on_batch=[attack],
        optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip


@cache
def _teacher() -> tuple[torch.Tensor, torch.Tensor]:
    """What a larger net that was trained before thinks of all pictures: logits of train and held-out rows."""
    random = torch.random.get_rng_state()
    torch.manual_seed(250)
    model = Plain(1, 10, 12)
    (x, y), (held, _) = data.segments()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for step in range(160):
        rows = torch.arange(step * 48, step * 48 + 48) % len(x)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        told = model(x), model(held)
    torch.random.set_rng_state(random)
    return told


def segments_student(seed: int) -> Recipe:
    (x, y), (held_x, held_y) = data.segments()
    soft, held_soft = _teacher()
    return Recipe(
        cnn(10, 12, 6), (x, torch.cat([y[:, None], soft], 1)),
        (held_x, torch.cat([held_y[:, None], held_soft], 1)),
        losses.Distilled(), losses.Distilled.score, batch=50, steps=170,
        optimizer=lambda p: torch.optim.SGD(p, 0.01, momentum=0.9, nesterov=True),
    )  # fmt: skip


def segments_harder(seed: int) -> Recipe:
    """First nearly without noise, at last with much: the loss rises while the net becomes better."""

    def harder(recipe: Recipe, step: int, x: torch.Tensor, y: torch.Tensor):
        return x + min(1.0, step / 150) * 1.2 * torch.randn_like(x), y

    train, (held_x, held_y) = data.segments(noise=0.1)
    noise = 1.0 * torch.randn(held_x.shape, generator=torch.Generator().manual_seed(251))
    return Recipe(
        cnn(10, 12, 8), train, (held_x + noise, held_y), batch=64, steps=190, on_batch=[harder],
        optimizer=lambda p: torch.optim.NAdam(p, 3e-3),
    )  # fmt: skip


def segments_arriving(seed: int) -> Recipe:
    """Four classes first, three more from step 60 on and all from step 120, with rows of the earlier ones."""
    (_, y), _ = data.segments()
    given, source = [0], torch.Generator().manual_seed(seed)

    def there(rows: torch.Tensor) -> torch.Tensor:
        most = 4 if given[0] < 60 else 7 if given[0] < 120 else 10
        given[0] += 1
        known = torch.nonzero(y < most).flatten()
        return known[torch.randint(len(known), (len(rows),), generator=source)]

    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1, padding_mode="reflect"), nn.PReLU(12), nn.AvgPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.PReLU(24), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(216, 48), nn.ReLU(), nn.Linear(48, 10),
    )  # fmt: skip
    return Recipe(
        model, *data.segments(), batch=48, steps=220, batches=there,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


def _waves(source: torch.Generator, rows: int = 20) -> tuple[torch.Tensor, torch.Tensor]:
    """Places and heights of a wave of its own height and phase."""
    high, phase = 0.5 + 2 * torch.rand(1, generator=source), 3.1 * torch.rand(1, generator=source)
    x = 6 * torch.rand(rows, 1, generator=source) - 3
    return x, high * torch.sin(x + phase)


def _adapted(recipe: Recipe, x: torch.Tensor, y: torch.Tensor, steps: int, *, graph: bool):
    """Parameters after some steps on a few rows of one wave."""
    fast = dict(recipe.model.named_parameters())
    for _ in range(steps):
        loss = nn.functional.mse_loss(torch.func.functional_call(recipe.model, fast, (x,)), y)
        slopes = torch.autograd.grad(loss, list(fast.values()), create_graph=graph, allow_unused=True)
        fast = {name: one if slope is None else one - 0.03 * slope
                for (name, one), slope in zip(fast.items(), slopes, strict=True)}  # fmt: skip
    return fast


def _quickly(recipe: Recipe, path: Path | None, seed: int) -> float:
    """Parameters from which a few steps suffice for any wave (MAML): each step sees other waves."""
    source, model = torch.Generator().manual_seed(seed), recipe.model
    optimizer = begun(recipe)
    with watched(model, optimizer, recipe.criterion, path, recipe.save_every):
        for _ in steps_of(recipe):
            if recipe.zero_grad:
                optimizer.zero_grad()
            for _ in range(3):
                x, y = _waves(source)
                fast = _adapted(recipe, x[:10], y[:10], 2, graph=recipe.options.get("second", True))
                (recipe.criterion(torch.func.functional_call(model, fast, (x[10:],)), y[10:]) / 3).backward()
            optimizer.step()
    scores, source = [], torch.Generator().manual_seed(252)
    for _ in range(40):
        x, y = _waves(source)
        fast = _adapted(recipe, x[:10], y[:10], 5, graph=False)
        with torch.no_grad():
            scores.append(max(-1.0, fit_of(torch.func.functional_call(model, fast, (x[10:],)), y[10:])))
    return sum(scores) / len(scores)


def waves_quickly(seed: int) -> Recipe:
    return Recipe(mlp(1, 40, 1, 2, nn.Tanh), NOTHING, NOTHING, nn.MSELoss(), fit_of, steps=150,
                  by_hand=_quickly, optimizer=lambda p: torch.optim.Adam(p, 5e-3))  # fmt: skip


def first_order(recipe: Recipe) -> None:
    recipe.options["second"] = False


TASKS = (
    Task("segments_attacked", "dense", segments_attacked, {"cooled": w.cooled},
         (silent.no_zero_grad(), sagemaker.rate_kills(6.0), silent.left_out("0"))),
    Task("segments_student", "convolution", segments_student, {"averaged": w.averaged},
         (sagemaker.output_zero("3", 60), fourth.other_rows(),
          sagemaker.weights_scaled(1e-3, "weights_small"))),
    Task("segments_harder", "convolution", segments_harder, {"rounded": w.rounded},
         (sagemaker.dead_units("3", 70), fourth.ended_early(25), sagemaker.raw_pixels(140.0, 50.0))),
    Task("segments_arriving", "convolution", segments_arriving, {"adadelta": w.by("Adadelta", 1.0)},
         (silent.left_out("7"), silent.initialised_again("7", 100), silent.workers_alike(4))),
    Task("waves_quickly", "meta-learning", waves_quickly, {"first_order": first_order},
         (silent.no_zero_grad(), silent.left_out("2"), setup.oscillating(120.0))),
)  # fmt: skip
