"""Recurrent networks, transformers, sparse vectors, pairs and graphs of the fourth held-out set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent, third
from benchmarks.detection.loop import steps_of, watched
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fourth import losses, rows_data
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.fourth.data import unseen
from benchmarks.detection.programs.fourth.readers import (
    Ahead,
    Filling,
    Hearing,
    Meeting,
    Ordering,
    Passing,
    Sensing,
    Sounding,
    Speaking,
    Stars,
    Words,
)
from benchmarks.detection.programs.networks import mlp
from benchmarks.detection.recipe import Recipe, fit_of, mean_loss

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]


def symbols_heard(seed: int) -> Recipe:
    """First nothing but silence is told, and then the sounds."""
    return Recipe(
        Hearing(8, 6), *rows_data.symbols(), losses.Connected(), losses.Connected.score, batch=40, steps=200,
        clip=5.0, optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip


def pendulum_ahead(seed: int) -> Recipe:
    return Recipe(
        Ahead(3), *rows_data.pendulum(), nn.MSELoss(), fit_of, batch=50, steps=160, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.01),
    )  # fmt: skip


def order_remembered(seed: int) -> Recipe:
    """Chance for a hundred steps, until the first of the two is remembered."""
    return Recipe(
        Ordering(9, 4), *rows_data.order(), batch=60, steps=260, clip=1.0,
        optimizer=lambda p: torch.optim.Adam(p, 1e-2),
    )  # fmt: skip


def prose_spoken(seed: int) -> Recipe:
    recipe = Recipe(
        Speaking(29, 24), *rows_data.prose(), score=mean_loss, batch=24, steps=220, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 8e-3, betas=(0.9, 0.95), weight_decay=0.1),
    )  # fmt: skip
    w.inverse_root(recipe)
    return recipe


def _hidden(x: torch.Tensor, source: torch.Generator | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """One of four tokens is hidden (0), and asked for; of the others nothing is."""
    away = torch.rand(x.shape, generator=source) < 0.25
    away[:, 0] |= ~away.any(1)
    return torch.where(away, 0, x), torch.where(away, x, -100)


def progressions_filled(seed: int) -> Recipe:
    (x, y), (held_x, _) = rows_data.progressions()
    return Recipe(
        Filling(12, 9), (x, y), _hidden(held_x, torch.Generator().manual_seed(270)), losses.Named(),
        losses.Named.score, batch=64, steps=240, schedule=lambda step: min(1.0, (step + 1) / 40),
        on_batch=[lambda _recipe, _step, x, _y: _hidden(x)],
        optimizer=lambda p: torch.optim.Adam(p, 4e-3, betas=(0.9, 0.98)),
    )  # fmt: skip


def marked_again(seed: int) -> Recipe:
    """An LSTM and a Nesterov-Adam."""
    return Recipe(
        Ordering(9, 2, 48), *rows_data.marked(), batch=50, steps=240, clip=0.5,
        optimizer=lambda p: torch.optim.NAdam(p, 8e-3),
    )  # fmt: skip


def tones_told(seed: int) -> Recipe:
    return Recipe(
        Sounding(4), *rows_data.tones(), batch=50, steps=180,
        schedule=lambda step: 0.985**step, optimizer=lambda p: torch.optim.SGD(p, 0.08, momentum=0.9),
    )  # fmt: skip


def sensors_pooled(seed: int) -> Recipe:
    return Recipe(
        Sensing(4, 3), *rows_data.sensors(), nn.BCEWithLogitsLoss(), losses.Several.score, batch=45,
        steps=200, optimizer=lambda p: torch.optim.RMSprop(p, 3e-3, centered=True),
    )  # fmt: skip


def _sparsely(recipe: Recipe, path: Path | None, seed: int) -> float:
    """Vectors of words by SparseAdam, all else by Adam."""
    model, (x, y) = recipe.model, recipe.train
    trained = {id(one) for one in recipe.trained(model)}
    sparse = [one for one in model.words.parameters() if id(one) in trained]
    rest = [one for name, one in model.named_parameters() if "words" not in name and id(one) in trained]
    both = {"dense": torch.optim.Adam(rest, 4e-3)}
    if sparse:
        both["sparse"] = torch.optim.SparseAdam(sparse, 3e-2)
    order = torch.Generator().manual_seed(seed)
    with watched(model, both, recipe.criterion, path, recipe.save_every) as handle:
        for _ in steps_of(recipe):
            rows = torch.randint(len(x), (recipe.batch,), generator=order)
            if recipe.zero_grad:
                for one in both.values():
                    one.zero_grad()
            told = model(x[rows])
            recipe.criterion(told, y[rows]).backward()
            if handle is not None:
                handle.record("predictions", told.detach(), labels=y[rows])
            for one in both.values():
                one.step()
    with torch.no_grad():
        return recipe.score(model(recipe.held[0]), recipe.held[1])


def bags_sparse(seed: int) -> Recipe:
    """Rare words get a gradient once in many steps."""
    return Recipe(Words(300, 6), *rows_data.bags(), batch=32, steps=240, by_hand=_sparsely)


def dense_and_slow(recipe: Recipe) -> None:
    """One optimizer for all (Adagrad), which knows sparse gradients, too."""
    recipe.by_hand, recipe.optimizer = None, lambda p: torch.optim.Adagrad(p, 0.1)


def items_met(seed: int) -> Recipe:
    """Which item of the batch was taken? Most of it is chance: the loss hardly falls."""
    return Recipe(
        Meeting(80, 60), *rows_data.liked(), losses.InBatch(), losses.InBatch.score, batch=96, steps=220,
        optimizer=lambda p: torch.optim.Adam(p, 8e-3),
    )  # fmt: skip


def stars_given(seed: int) -> Recipe:
    """Vectors of shops that hardly anyone names get a gradient now and then."""
    return Recipe(
        Stars(70, 45), *rows_data.shops(), nn.MSELoss(), fit_of, batch=64, steps=300,
        optimizer=lambda p: torch.optim.Adagrad(p, 0.12),
    )  # fmt: skip


def groups_told(seed: int) -> Recipe:
    return Recipe(
        Passing(3), *rows_data.graphs(), batch=45, steps=160,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip


def kinds_unseen(seed: int) -> Recipe:
    """Six kinds of the many, eight rows of each: each step is another task."""
    (_, y), _ = unseen()
    source = torch.Generator().manual_seed(seed)
    by_kind = [torch.nonzero(y == one).flatten() for one in y.unique()]

    def task(_rows: torch.Tensor) -> torch.Tensor:
        kinds = torch.randperm(len(by_kind), generator=source)[:6]
        return torch.cat(
            [by_kind[one][torch.randperm(len(by_kind[one]), generator=source)[:8]] for one in kinds]
        )

    return Recipe(
        mlp(16, 64, 8, 2, nn.ELU), *unseen(), losses.Episode(), losses.Episode.score, batch=48, steps=240,
        batches=task, optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


TASKS = (
    Task("symbols_heard", "recurrent", symbols_heard, {"cooled": w.cooled},
         (sagemaker.rate_explodes(1e4), silent.detached("front"), setup.shuffled_labels())),
    Task("pendulum_ahead", "recurrent", pendulum_ahead, {"cycled": w.cycled},
         (setup.oscillating(200.0), silent.stuck_loader(0), silent.initialised_again("head", 100))),
    Task("order_remembered", "recurrent", order_remembered, {"cycled": w.cycled},
         (held.unknown_words(0.98, 4), silent.no_zero_grad(), silent.left_out("embed"))),
    Task("prose_spoken", "transformer", prose_spoken, {},
         (fourth.ended_early(20), silent.skipped(70), setup.attention_sharp(60.0))),
    Task("progressions_filled", "transformer", progressions_filled, {"adafactor": w.by("Adafactor", 1e-2)},
         (silent.never_stepped(), silent.stale_optimizer("head"), fourth.rate_of_another(0.2))),
    Task("marked_again", "recurrent", marked_again, {"inverse_root": w.inverse_root},
         (held.rolled_labels(), silent.other_model(), sagemaker.rate_tiny())),
    Task("tones_told", "convolution", tones_told, {"adamax": w.by("Adamax", 6e-3)},
         (sagemaker.dead_units("mix", 70), setup.redundant_softmax("head"), third.summed_loss())),
    Task("sensors_pooled", "recurrent", sensors_pooled, {"shaken": w.shaken(0.3)},
         (third.labels_one_two(), fourth.average_left(90), fourth.without_gradient("front"))),
    Task("bags_sparse", "embedding", bags_sparse, {"dense_and_slow": dense_and_slow},
         (silent.left_out("words"), sagemaker.dead_units("mix", 60), silent.no_zero_grad())),
    Task("items_met", "embedding", items_met, {"nadam": w.by("NAdam", 5e-3)},
         (silent.left_out("items"), setup.collapsed("right.2"), fourth.plateau_reversed(8))),
    Task("stars_given", "embedding", stars_given, {"adam": w.by("Adam", 1e-2)},
         (silent.stuck_loader(40), second.spread_targets(), held.clipped_away(1e-5))),
    Task("groups_told", "graph", groups_told, {"noisy_gradients": w.noisy_gradients},
         (sagemaker.output_zero("first", 60), setup.missing_softmax(),
          fourth.decay_too_strong(4e-3, 150.0))),
    Task("kinds_unseen", "representation", kinds_unseen, {"momentum": w.by("SGD", 0.03, momentum=0.9)},
         (setup.shuffled_labels(), sagemaker.rate_explodes(1e5), silent.other_model())),
)  # fmt: skip
