"""Silent errors: nothing is raised, the loss may even fall, and it is not the training that was meant."""

from __future__ import annotations

from dataclasses import replace as replace_fields
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults.parts import Wrapped, module, replace, under
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

NO_GRADIENT = ("parameters_without_gradient",)
NO_OPTIMIZER = ("parameters_without_optimizer",)


def _silent(name, change, rules, trigger=0, where=""):
    return Fault(name, change, rules, "silent", trigger, where, by_construction=True)


def no_zero_grad() -> Fault:
    """Gradients of all earlier steps are added up."""

    def change(recipe: Recipe) -> None:
        recipe.zero_grad = False

    return _silent("no_zero_grad", change, ("stale_gradients",))


def detached(layer: str) -> Fault:
    """A detach() behind one layer: it and all before it get no gradient."""

    def change(recipe: Recipe) -> None:
        replace(recipe.model, layer, Wrapped(module(recipe, layer), lambda x: x.detach()))

    return _silent("detached", change, NO_GRADIENT, where=under(layer))


def left_out(layer: str) -> Fault:
    """The optimizer is not given the parameters of one layer."""

    def change(recipe: Recipe) -> None:
        def rest(model: nn.Module) -> list[nn.Parameter]:
            out = {id(one) for one in model.get_submodule(layer).parameters()}
            return [one for one in model.parameters() if one.requires_grad and id(one) not in out]

        recipe.trained = rest

    return _silent("left_out", change, NO_OPTIMIZER, where=under(layer))


def stale_optimizer(layer: str) -> Fault:
    """One layer is replaced after the optimizer was made."""

    def change(recipe: Recipe) -> None:
        def anew(recipe: Recipe, _: int) -> None:
            layer_now = module(recipe, layer)
            new = type(layer_now)(layer_now.in_features, layer_now.out_features)
            replace(recipe.model, layer, new)

        recipe.after_optimizer.append(anew)

    return _silent("stale_optimizer", change, NO_OPTIMIZER, where=under(layer))


def other_model() -> Fault:
    """The optimizer holds the parameters of a copy."""

    def change(recipe: Recipe) -> None:
        def copies(model: nn.Module) -> list[nn.Parameter]:
            made = [nn.Parameter(one.detach().clone()) for one in model.parameters() if one.requires_grad]
            for one in made:
                one.grad = torch.zeros_like(one)
            return made

        recipe.trained = copies

    return _silent("other_model", change, NO_OPTIMIZER)


def skipped(trigger: int = 60) -> Fault:
    """From a step on the optimizer steps only now and then."""

    def change(recipe: Recipe) -> None:
        recipe.zero_grad = True
        recipe.steps_optimizer = lambda step: step < trigger or step % 4 == 0

    return _silent("skipped", change, ("skipped_steps",), trigger)


def stuck_loader(trigger: int) -> Fault:
    """From a step on the loader gives the same batch again and again."""

    def change(recipe: Recipe) -> None:
        kept: list[tuple[torch.Tensor, torch.Tensor]] = []

        def again(_: Recipe, step: int, x: torch.Tensor, y: torch.Tensor):
            if step < trigger:
                return x, y
            kept.append((x, y))
            return kept[0]

        recipe.on_batch.append(again)

    return _silent("stuck_loader", change, ("same_batches",), trigger)


def workers_alike(workers: int = 4) -> Fault:
    """All workers of the loader read the same part of the data: each batch comes once from each of them."""

    def change(recipe: Recipe) -> None:
        kept: list[tuple[torch.Tensor, torch.Tensor]] = []

        def again(_: Recipe, step: int, x: torch.Tensor, y: torch.Tensor):
            if step % workers == 0:
                kept[:] = [(x, y)]
            return kept[0]

        recipe.on_batch.append(again)

    return _silent("workers_alike", change, ("same_batches",), 1)


def left_in_eval() -> Fault:
    """After the first evaluation nobody calls train()."""

    def change(recipe: Recipe) -> None:
        recipe.back_to_train = False

    return _silent("left_in_eval", change, ("training_in_eval_mode",), 40)


def never_eval() -> Fault:
    """Evaluation with dropout and batch statistics."""

    def change(recipe: Recipe) -> None:
        recipe.to_eval = False

    return _silent("never_eval", change, ("evaluation_in_train_mode",), 39)


def empty_buffer(layer: str) -> Fault:
    """Running statistics that were never filled: what was in the memory."""

    def change(recipe: Recipe) -> None:
        norm = module(recipe, layer)
        norm.momentum = 0.0
        with torch.no_grad():
            norm.running_var.copy_(
                torch.tensor([1e-38, 3e30] * len(norm.running_var))[: len(norm.running_var)]
            )
            norm.running_mean.fill_(-7e18)

    return _silent("empty_buffer", change, ("uninitialised_values",), where=under(layer))


def initialised_again(layer: str, trigger: int = 120) -> Fault:
    """The weights of a layer are drawn anew in mid-run."""

    def change(recipe: Recipe) -> None:
        def again(recipe: Recipe, step: int) -> None:
            if step == trigger:
                module(recipe, layer).reset_parameters()

        recipe.before_step.append(again)
        recipe.steps = trigger + 40

    return _silent("initialised_again", change, ("replaced_weights",), trigger, under(layer))


def scaler_stuck() -> Fault:
    """A scale that became infinite: backing off leaves it infinite, and every step is skipped."""

    def change(recipe: Recipe) -> None:
        recipe.scaler = {"init_scale": float("inf"), "growth_interval": 100000}

    fault = _silent("scaler_stuck", change, ("stuck_scaler", "skipped_steps"))
    return replace_fields(fault, causes=("stuck_scaler",))


def never_stepped(start: float = 1e-4) -> Fault:
    """A scheduler that warms up from nothing or nearly nothing, and is never stepped.

    From nearly nothing it can be seen when the first epoch ends without a step of it.
    """

    def change(recipe: Recipe) -> None:
        recipe.schedule = lambda step: min(1.0, start + step / 50)
        recipe.step_schedule = False

    name = "never_stepped" if start else "never_begun"
    return _silent(name, change, ("frozen_schedule",), 40 if start else 0)


def stepped_too_often() -> Fault:
    """A decay meant for epochs is stepped with every batch: nothing is left of the learning rate."""

    def change(recipe: Recipe) -> None:
        recipe.schedule = lambda step: 0.7**step

    rules = (
        "scheduler_stepped_too_often",
        "learning_rate_scale",
        "learning_rate_too_low",
        "learning_rate_collapsed",
        "learning_rate_frozen",
        "weight_update_ratio",
        "loss_not_decreasing",
        "unchanged_tensor",
    )
    return Fault("stepped_too_often", change, rules, "setup", 30)
