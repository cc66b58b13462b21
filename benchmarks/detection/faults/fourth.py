"""Faults that were declared with the fourth held-out set."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults.held import WRONG_OUTPUT
from benchmarks.detection.faults.parts import (
    Wrapped,
    change_inputs,
    module,
    put_behind,
    replace,
    under,
    under_or_behind,
    wrap_from_step,
)
from benchmarks.detection.faults.sagemaker import DEAD, LOST, THROWN_OFF
from benchmarks.detection.faults.second import NOT_SCALED
from benchmarks.detection.faults.setup import NOT_LEARNING, SHRUNK
from benchmarks.detection.faults.third import COLLAPSED, TOO_SLOW
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

ENDED = (
    "scheduler_stepped_too_often", *TOO_SLOW, "learning_rate_too_low", "learning_rate_collapsed",
    "learning_rate_frozen",
)  # fmt: skip
"""What is seen where a schedule came to its end too early."""


class _Unwatched(nn.Module):
    """A module that is run as if nothing were to be learnt."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.inner(x)


def without_gradient(layer: str) -> Fault:
    """One layer runs under `no_grad`, as it did where it was taken from."""

    def change(recipe: Recipe) -> None:
        replace(recipe.model, layer, _Unwatched(module(recipe, layer)))

    return Fault("without_gradient", change, ("parameters_without_gradient",), "silent", 0, under(layer),
                 by_construction=True)  # fmt: skip


def forgotten(layer: str, columns: slice) -> Fault:
    """What one head tells never comes to the loss."""

    def change(recipe: Recipe) -> None:
        plain = recipe.criterion

        class Part(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.plain = plain

            def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
                told = torch.cat([told[:, : columns.start], told[:, columns].detach(),
                                  told[:, columns.stop :]], 1)  # fmt: skip
                return self.plain(told, wanted)

        recipe.criterion = Part()

    return Fault("forgotten", change, ("parameters_without_gradient",), "silent", 0, under(layer),
                 by_construction=True)  # fmt: skip


def older_loaded(kept: int, trigger: int) -> Fault:
    """In mid-run the weights of a much earlier step are loaded, without a word."""

    def change(recipe: Recipe) -> None:
        state: dict[str, torch.Tensor] = {}

        def load(recipe: Recipe, step: int) -> None:
            if step == kept:
                state.update(copy.deepcopy(recipe.model.state_dict()))
            if step == trigger:
                recipe.model.load_state_dict(state)

        recipe.before_step.append(load)

    return Fault("older_loaded", change, ("replaced_weights",), "silent", trigger, by_construction=True)


def average_left(trigger: int = 80, decay: float = 0.98) -> Fault:
    """The averaged weights are put in for an evaluation, and the trained ones never back."""

    def change(recipe: Recipe) -> None:
        mean: dict[str, torch.Tensor] = {}

        def follow(recipe: Recipe, step: int) -> None:
            with torch.no_grad():
                for name, one in recipe.model.named_parameters():
                    mean.setdefault(name, one.detach().clone()).lerp_(one, 1 - decay)
                    if step == trigger:
                        one.copy_(mean[name])

        recipe.before_step.append(follow)

    return Fault("average_left", change, ("replaced_weights",), "silent", trigger, by_construction=True)


def same_few(count: int = 3) -> Fault:
    """The loader's iterator is made anew every few steps, unshuffled: only its first batches are seen."""

    def change(recipe: Recipe) -> None:
        kept: list[tuple[torch.Tensor, torch.Tensor]] = []

        def again(_: Recipe, step: int, x: torch.Tensor, y: torch.Tensor):
            if len(kept) < count:
                kept.append((x, y))
            return kept[step % count]

        recipe.on_batch.append(again)

    rules = ("same_batches", "batches_repeated", "unshuffled_epochs", "overfit", "overtraining")
    return Fault("same_few", change, rules, "silent", count, by_construction=True)


def nan_gradient(layer: str, trigger: int = 60) -> Fault:
    """The root of a distance of nothing: what comes out is right, and its gradient is no number."""

    def change(recipe: Recipe) -> None:
        wrap_from_step(recipe, layer, trigger, lambda h: h + 0.0 * (h - h.detach()).square().sqrt())
        recipe.steps = min(recipe.steps, trigger + 50)

    return Fault("nan_gradient", change, ("exploding_tensor",), "sagemaker", trigger, under(layer))


def half_overflow(layer: str, trigger: int = 50) -> Fault:
    """One layer's output is cast to half precision after a factor that was meant for another: infinite."""

    def change(recipe: Recipe) -> None:
        wrap_from_step(recipe, layer, trigger, lambda h: (h * 1e6).half().float())
        recipe.steps = min(recipe.steps, trigger + 50)

    return Fault("half_overflow", change, ("exploding_tensor",), "sagemaker", trigger, under(layer))


def mostly_dead(layer: str, share: float = 0.75, trigger: int = 50) -> Fault:
    """Biases of most units of a layer pushed down, so that only some are left."""

    def change(recipe: Recipe) -> None:
        def push(recipe: Recipe, step: int) -> None:
            if step == trigger:
                bias = module(recipe, layer).bias
                with torch.no_grad():
                    bias[: int(share * len(bias))] = -80.0

        recipe.before_step.append(push)

    return Fault("mostly_dead", change, DEAD, "sagemaker", trigger,
                 under_or_behind(layer, "act|relu"))  # fmt: skip


def ended_early(at: int = 25) -> Fault:
    """A cosine of the rate counted in epochs, stepped with batches: after some of them it is zero."""

    def change(recipe: Recipe) -> None:
        recipe.schedule = lambda step: (
            0.5 * (1 + float(torch.cos(torch.tensor(3.14159265 * min(step, at) / at))))
        )

    causes = (*ENDED, "frozen_schedule")
    return Fault("ended_early", change, (*causes, "loss_not_decreasing"), "setup", at, causes=causes)


def plateau_reversed(every: int = 12, factor: float = 0.1) -> Fault:
    """A schedule that waits for the loss to rise: the rate falls to a tenth while all goes well."""

    def change(recipe: Recipe) -> None:
        recipe.schedule = lambda step: factor ** (step // every)

    rules = (*ENDED, "loss_not_decreasing")
    return Fault("plateau_reversed", change, rules, "setup", 2 * every, causes=ENDED)


def sigmoid_for_classes(head: str) -> Fault:
    """A sigmoid behind the last layer, before a loss that has a softmax of its own."""

    def change(recipe: Recipe) -> None:
        put_behind(recipe, head, nn.Sigmoid())

    rules = ("redundant_softmax", "softmax", *WRONG_OUTPUT)
    return Fault("sigmoid_for_classes", change, rules, "setup")


def tanh_output(head: str) -> Fault:
    """A tanh at the end, and targets that it cannot reach."""

    def change(recipe: Recipe) -> None:
        put_behind(recipe, head, nn.Tanh())

    rules = (*WRONG_OUTPUT, "output_range", "labels_out_of_range", "saturated_activation")
    return Fault("tanh_output", change, rules, "setup")


def exponent_twice(head: str) -> Fault:
    """The model gives a rate, and the loss takes it for the logarithm of one."""

    def change(recipe: Recipe) -> None:
        replace(recipe.model, head, Wrapped(module(recipe, head), torch.exp))

    return Fault("exponent_twice", change, (*WRONG_OUTPUT, *LOST), "setup")


def other_rows() -> Fault:
    """Inputs are shuffled, and their targets are not."""

    def change(recipe: Recipe) -> None:
        recipe.on_batch.append(lambda _recipe, _step, x, y: (x[torch.randperm(len(x))], y))
        recipe.steps = max(recipe.steps, 250)

    return Fault("other_rows", change, NOT_LEARNING, "setup")


def marked_missing(column: int = 0, share: float = 0.1, mark: float = -9999.0) -> Fault:
    """Values that are missing in one column are written as -9999."""

    def change(recipe: Recipe) -> None:
        source = torch.Generator().manual_seed(8)

        def mark_some(x: torch.Tensor) -> torch.Tensor:
            x = x.clone()
            x[torch.rand(len(x), generator=source) < share, column] = mark
            return x

        change_inputs(recipe, mark_some)

    return Fault("marked_missing", change, NOT_SCALED, "setup", causes=NOT_SCALED[:1])


def both_zero(*layers: str) -> Fault:
    """Both matrices of a low-rank addition begin at zero, so that neither ever gets a gradient."""

    def change(recipe: Recipe) -> None:
        with torch.no_grad():
            for layer in layers:
                for one in module(recipe, layer).parameters():
                    if one.requires_grad:
                        one.zero_()

    rules = ("symmetric_initialisation", "poor_weight_initialization", "all_zero", "vanishing_gradient",
             "unchanged_tensor", "parameters_without_gradient", "tensor_variance")  # fmt: skip
    return Fault("both_zero", change, rules, "setup")


def decay_too_strong(rate: float = 3e-3, decay: float = 200.0) -> Fault:
    """Decay as it is written where it is not multiplied by the rate: the weights shrink to nothing."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.AdamW(p, rate, weight_decay=decay)
        recipe.schedule = None

    return Fault("decay_too_strong", change, SHRUNK, "setup")


def rate_of_another(rate: float, name: str = "rate_of_another") -> Fault:
    """Adam with a learning rate that was plain SGD's."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.Adam(p, rate)
        recipe.schedule = recipe.clip = None

    return Fault(name, change, (*THROWN_OFF, "saturated_units"), "setup")


def raised(factor: float, trigger: int = 80) -> Fault:
    """A learning rate multiplied in mid-run, whatever the optimizer is."""

    def change(recipe: Recipe) -> None:
        def faster(recipe: Recipe, step: int) -> None:
            if step == trigger:
                for group in recipe.made_optimizer.param_groups:
                    group["lr"] *= factor
                    group["initial_lr"] = group["lr"]

        recipe.before_step.append(faster)
        recipe.schedule = recipe.clip = None
        recipe.steps = max(recipe.steps, trigger + 100)

    return Fault("raised", change, THROWN_OFF, "setup", trigger)


def without(part: str, **weights: float) -> Fault:
    """A loss without the term that keeps codes apart: all of them become one."""

    def change(recipe: Recipe) -> None:
        for name, weight in weights.items():
            setattr(recipe.criterion, name, weight)

    return Fault(f"without_{part}", change, COLLAPSED, "setup")
