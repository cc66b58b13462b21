"""Faults of data and set-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults.parts import module, multiply_rate, put_behind
from benchmarks.detection.faults.sagemaker import LOST, TOO_FAST
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

NOT_LEARNING = ("loss_not_decreasing", "labels_shuffled", "labels_unrelated")
SHRUNK = (
    "loss_not_decreasing", "weight_decay_dominates", "vanishing_gradient", "constant_output",
    "representation_collapse", "all_zero", "tensor_variance", "poor_weight_initialization",
)  # fmt: skip
"""What is seen where weights go to nothing."""


def shuffled_labels() -> Fault:
    """Labels that belong to other rows."""

    def change(recipe: Recipe) -> None:
        x, y = recipe.train
        recipe.on_batch.append(lambda _recipe, _step, x, y: (x, y[torch.randperm(len(y))]))
        recipe.train = (x, y)
        recipe.steps = max(recipe.steps, 250)

    return Fault("shuffled_labels", change, NOT_LEARNING, "setup")


def redundant_softmax(head: str, times: float = 1.0) -> Fault:
    """Softmax at the end of the model, and again in the loss."""

    def change(recipe: Recipe) -> None:
        put_behind(recipe, head, nn.Softmax(dim=1))
        recipe.optimizer = lambda p: torch.optim.SGD(p, 0.05)
        recipe.schedule = None

    rules = ("redundant_softmax", "output_loss_mismatch", "softmax", "wrong_loss")
    return Fault("redundant_softmax", change, rules, "setup")


def missing_softmax() -> Fault:
    """The loss is given scores where it expects log-probabilities."""

    def change(recipe: Recipe) -> None:
        recipe.criterion = nn.NLLLoss()

    rules = (
        "missing_softmax",
        "redundant_softmax",
        "output_loss_mismatch",
        "wrong_loss",
        "loss_negative",
        "softmax",
    )
    return Fault("missing_softmax", change, rules, "setup")


def squashed_output(head: str) -> Fault:
    """A sigmoid at the end, and targets that it cannot reach."""

    def change(recipe: Recipe) -> None:
        put_behind(recipe, head, nn.Sigmoid())

    rules = (
        "output_loss_mismatch",
        "wrong_loss",
        "output_range",
        "labels_out_of_range",
        "redundant_softmax",
        "saturated_activation",
    )
    return Fault("squashed_output", change, rules, "setup")


def targets_out_of_range() -> Fault:
    """Binary cross-entropy with targets of -1 and 1."""

    def change(recipe: Recipe) -> None:
        signs = torch.where(recipe.train[1] > 0, 1.0, -1.0)
        held = torch.where(recipe.held[1] > 0, 1.0, -1.0)
        recipe.train, recipe.held = (recipe.train[0], signs), (recipe.held[0], held)
        recipe.criterion = nn.BCEWithLogitsLoss()
        recipe.compare = lambda out, x, y: (out[:, 0] * 0.5, y)
        recipe.score = lambda told, wanted: float(((told > 0) == (wanted > 0)).float().mean())

    rules = ("labels_out_of_range", "label_range", "output_loss_mismatch", "wrong_loss", "loss_negative")
    return Fault("targets_out_of_range", change, rules, "setup")


def constant_output(head: str, trigger: int = 0) -> Fault:
    """A rectifier at the end, whose biases keep it at zero."""

    def change(recipe: Recipe) -> None:
        layer = module(recipe, head)
        put_behind(recipe, head, nn.ReLU())
        with torch.no_grad():
            layer.bias.fill_(-30.0)

    rules = (
        "constant_output",
        "dead_relu",
        "dead_units",
        "all_zero",
        "vanishing_gradient",
        "output_loss_mismatch",
    )
    return Fault("constant_output", change, rules, "setup", where=rf"(^|[/.]){head.replace('.', '[.]')}")


def symmetric(value: float | None = 0.05) -> Fault:
    """All weights of a layer alike, so that its units stay alike."""

    def change(recipe: Recipe) -> None:
        with torch.no_grad():
            for one in recipe.model.modules():
                if isinstance(one, nn.Linear | nn.Conv2d):
                    one.weight.fill_(value)
                    one.bias.zero_()

    rules = (
        "symmetric_initialisation",
        "symmetric_initialization",
        "poor_weight_initialization",
        "tensor_variance",
    )
    return Fault("symmetric", change, rules, "setup")


def diverging(rate: float, trigger: int = 150) -> Fault:
    """A learning rate raised much too far in mid-run."""

    def change(recipe: Recipe) -> None:
        def faster(recipe: Recipe, step: int) -> None:
            if step == trigger:
                for group in recipe.made_optimizer.param_groups:
                    group["lr"] = group["initial_lr"] = rate

        recipe.optimizer = lambda p: torch.optim.SGD(p, 0.1)
        recipe.schedule = None
        recipe.clip = None
        recipe.before_step.append(faster)
        recipe.steps = trigger + 130

    rules = (*TOO_FAST, "exploding_tensor", "loss_not_decreasing", "weight_update_ratio", "dead_relu")
    return Fault("diverging", change, rules, "setup", trigger)


def oscillating(factor: float) -> Fault:
    """So many times the learning rate: the loss swings and does not settle."""

    def change(recipe: Recipe) -> None:
        recipe.after_optimizer.append(lambda recipe, _: multiply_rate(recipe, factor))
        recipe.schedule = recipe.clip = None
        recipe.steps = max(recipe.steps, 250)

    rules = (
        *TOO_FAST,
        *LOST,
        "weight_update_ratio",
        "dead_relu",
        "saturated_activation",
        "attention_collapse",
    )
    causes = (*TOO_FAST, "exploding_tensor", "weight_update_ratio", "loss_not_decreasing", "dead_relu")
    return Fault("oscillating", change, rules, "setup", causes=causes)


def swinging(rate: float) -> Fault:
    """All data at once, at a rate beyond what the curvature bears: the loss swings and stays high."""

    def change(recipe: Recipe) -> None:
        recipe.batch = len(recipe.train[0])
        recipe.optimizer = lambda p: torch.optim.SGD(p, rate)
        recipe.schedule = recipe.clip = None

    return Fault("swinging", change, ("loss_oscillating", *TOO_FAST), "setup")


def attention_sharp(factor: float = 30.0) -> Fault:
    """Queries so large that every place looks at one other place only."""

    def change(recipe: Recipe) -> None:
        with torch.no_grad():
            for block in recipe.model.blocks:
                block.query.weight.mul_(factor)
                block.key.weight.mul_(factor)

    rules = (
        "attention_collapse",
        "attention_collapsed",
        "saturated_activation",
        "poor_weight_initialization",
    )
    return Fault("attention_sharp", change, rules, "setup", where=r"blocks[./]\d+|attn|softmax")


def attention_uniform() -> Fault:
    """Queries of zero that are not trained: every place looks everywhere alike."""

    def change(recipe: Recipe) -> None:
        for block in recipe.model.blocks:
            for one in (*block.query.parameters(), *block.key.parameters()):
                one.requires_grad_(False)
                one.zero_()

    rules = ("attention_collapse", "attention_collapsed", "all_zero", "parameters_frozen", "not_training")
    return Fault("attention_uniform", change, rules, "setup", where=r"blocks[./]\d+|attn|softmax")


def collapsed(layer: str, weight: float = 30.0) -> Fault:
    """A penalty that draws all representations into one point."""

    def change(recipe: Recipe) -> None:
        held: dict[str, torch.Tensor] = {}
        module(recipe, layer).register_forward_hook(lambda _m, _i, out: held.__setitem__("code", out))
        plain = recipe.criterion

        class Drawn(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.plain = plain

            def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
                code = held["code"].flatten(1)
                return self.plain(told, wanted) + weight * ((code - code.mean(0)) ** 2).sum(1).mean()

        recipe.criterion = Drawn()

    rules = (
        "representation_collapse",
        "constant_output",
        "dead_relu",
        "dead_units",
        "tensor_variance",
        "loss_not_decreasing",
    )
    causes = rules[:5]
    return Fault("collapsed", change, rules, "setup", causes=causes)


def decay_kills(decay: float = 5.0) -> Fault:
    """Weight decay so strong that the weights go to zero."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.SGD(p, 0.1, weight_decay=decay)
        recipe.schedule = None

    return Fault("decay_kills", change, SHRUNK, "setup")


def inputs_constant(trigger: int = 60) -> Fault:
    """The loader gives empty inputs from a step on."""

    def change(recipe: Recipe) -> None:
        recipe.on_batch.append(
            lambda _recipe, step, x, y: (torch.zeros_like(x), y) if step >= trigger else (x, y)
        )

    rules = (
        "all_zero",
        "constant_input",
        "inputs_constant",
        "constant_output",
        "batches_repeated",
        "repeated_batch",
    )
    return Fault("inputs_constant", change, rules, "setup", trigger)
