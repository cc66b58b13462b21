"""The one training loop of the programs."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch

import tdbg_lab as tdbg

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.detection.recipe import Recipe

__all__ = ["begun", "steps_of", "train", "watched"]

QUIET = {"profiler": False, "rules": "none", "if_exists": "error"}
"""No companions: the rules are asked after the fact."""


def watched(model: Any, optimizer: Any, criterion: Any, path: Path | None, save_every: int = 2) -> Any:
    """Attach, or for no path nothing: only the score is wanted then."""
    if path is None:
        return nullcontext()
    return tdbg.attach(model, optimizer=optimizer, loss=criterion, store=path, save_every=save_every, **QUIET)


def _batches(recipe: Recipe, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches for ever, in a new order every epoch."""
    inputs, targets = recipe.train
    order = torch.Generator().manual_seed(seed)
    while True:
        rows = torch.randperm(len(inputs), generator=order)
        size = min(recipe.batch, len(inputs))
        for start in range(0, len(rows) - size + 1, size):
            chosen = recipe.batches(rows[start : start + size])
            yield inputs[chosen], targets[chosen]


def _told(recipe: Recipe, x: torch.Tensor, y: torch.Tensor) -> tuple[Any, torch.Tensor]:
    """What the criterion and the score are given."""
    output = recipe.model(x)
    return (output, y) if recipe.compare is None else recipe.compare(output, x, y)


def _loss(recipe: Recipe, handle: Any | None, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16) if recipe.autocast else nullcontext():
        told, wanted = _told(recipe, x, y)
        loss: torch.Tensor = recipe.criterion(told, wanted)
    if handle is not None and isinstance(recipe.criterion, torch.nn.CrossEntropyLoss) and told.ndim == 2:
        handle.record("predictions", told.detach(), labels=wanted)  # as rules on classes ask for
    recipe.recent.append((told.detach(), wanted, loss.item()))
    return loss


def _evaluate(recipe: Recipe, handle: Any | None, step: int = -1) -> float:
    """Score on the held-out rows, and log what trainings usually log."""
    model, (x, y) = recipe.model, recipe.held
    if recipe.to_eval:
        model.eval()
    with torch.no_grad():
        told, wanted = _told(recipe, x, y)
        loss = float(recipe.criterion(told, wanted))
        score = recipe.score(told, wanted)
    if handle is not None:
        handle.log({"val_score": score, "val_loss": loss})
        recipe.told.append({"step": step, "val_score": score, "val_loss": loss} | _on_train(recipe))
    if recipe.back_to_train:
        model.train()
    return score


def _on_train(recipe: Recipe) -> dict[str, float]:
    """The same over the last train batches."""
    with torch.no_grad():
        scores = [recipe.score(told, wanted) for told, wanted, _ in recipe.recent]
    losses = [loss for *_, loss in recipe.recent]
    return {"train_score": sum(scores) / len(scores), "train_loss": sum(losses) / len(losses)}


def _optimizer(recipe: Recipe) -> torch.optim.Optimizer:
    optimizer = recipe.optimizer(recipe.trained(recipe.model))
    if recipe.rate is not None:
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate
    return optimizer


def begun(recipe: Recipe) -> torch.optim.Optimizer:
    """Make the optimizer of a training, and do what is to be done once it is there."""
    recipe.made_optimizer = optimizer = _optimizer(recipe)
    for hook in recipe.after_optimizer:
        hook(recipe, -1)
    return optimizer


def steps_of(recipe: Recipe) -> Iterator[int]:
    """Steps of a training, each after what is to be done before it."""
    for step in range(recipe.steps):
        for hook in recipe.before_step:
            hook(recipe, step)
        yield step


def train(recipe: Recipe, path: Path | None, seed: int) -> float:
    """Train as a recipe says, captured into a new run directory (or not, for None); gives the final score."""
    if recipe.by_hand is not None:
        return recipe.by_hand(recipe, path, seed)
    optimizer = begun(recipe)
    schedule = None
    if recipe.schedule is not None:
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, recipe.schedule)
    scaler = None if recipe.scaler is None else torch.amp.GradScaler("cpu", **recipe.scaler)
    batches = _batches(recipe, seed)
    with watched(recipe.model, optimizer, recipe.criterion, path, recipe.save_every) as handle:
        recipe.model.train()
        for step in steps_of(recipe):
            _step(recipe, handle, step, batches, optimizer, scaler)
            if schedule is not None and recipe.step_schedule:
                schedule.step()
            if (step + 1) % recipe.eval_every == 0:
                _evaluate(recipe, handle, step)
    recipe.model.eval()
    return _evaluate(recipe, None)


def _step(
    recipe: Recipe,
    handle: Any | None,
    step: int,
    batches: Iterator[tuple[torch.Tensor, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler | None,
) -> None:
    if recipe.zero_grad:
        optimizer.zero_grad()
    for _ in range(recipe.accumulate):
        x, y = next(batches)
        for change in recipe.on_batch:
            x, y = change(recipe, step, x, y)
        loss = _loss(recipe, handle, x, y) / recipe.accumulate
        (loss if scaler is None else scaler.scale(loss)).backward()
    if recipe.clip is not None:
        if scaler is not None:
            scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(recipe.model.parameters(), recipe.clip)
    if not recipe.steps_optimizer(step):
        return
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()
