"""Faults that were declared with the sequences, pairs and ways of the fifth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults.held import WRONG_OUTPUT
from benchmarks.detection.faults.parts import change_inputs, module, put_behind, replace, under
from benchmarks.detection.faults.setup import NOT_LEARNING
from benchmarks.detection.faults.silent import NO_GRADIENT, NO_OPTIMIZER
from benchmarks.detection.faults.third import TOO_SLOW
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

NOTHING_LEFT = (*TOO_SLOW, "learning_rate_too_low", "vanishing_gradient")


def unshuffled(trigger: int) -> Fault:
    """A loader that does not shuffle: the second epoch, from the trigger on, is the first again."""

    def change(recipe: Recipe) -> None:
        given = [0]

        def following(rows: torch.Tensor) -> torch.Tensor:
            most = len(recipe.train[0]) // len(rows) * len(rows)
            chosen = torch.arange(given[0], given[0] + len(rows)) % most
            given[0] += len(rows)
            return chosen

        recipe.batches = following

    rules = ("unshuffled_epochs", "same_batches")
    return Fault("unshuffled", change, rules, "silent", trigger, by_construction=True)


def softmax_kept(head: str, dim: int = -1) -> Fault:
    """A softmax at the end, before a loss that has its own; the optimizer stays as it was."""

    def change(recipe: Recipe) -> None:
        put_behind(recipe, head, nn.Softmax(dim=dim))

    return Fault("softmax_kept", change, ("redundant_softmax", *WRONG_OUTPUT), "setup")


def embedding_anew(layer: str) -> Fault:
    """The vocabulary is enlarged once the optimizer is made: the new vectors are not trained."""

    def change(recipe: Recipe) -> None:
        def anew(recipe: Recipe, _: int) -> None:
            old = module(recipe, layer)
            new = nn.Embedding(old.num_embeddings + 8, old.embedding_dim, padding_idx=old.padding_idx)
            replace(recipe.model, layer, new)

        recipe.after_optimizer.append(anew)

    return Fault("embedding_anew", change, NO_OPTIMIZER, "silent", 0, under(layer), by_construction=True)


def gap_marked(column: int = 0, share: float = 0.1, mark: float = -999.0) -> Fault:
    """Readings of one sensor that are missing are written as -999."""

    def change(recipe: Recipe) -> None:
        source = torch.Generator().manual_seed(11)

        def marked(x: torch.Tensor) -> torch.Tensor:
            x = x.clone()
            x[..., column][torch.rand(x.shape[:-1], generator=source) < share] = mark
            return x

        change_inputs(recipe, marked)

    rules = ("inputs_not_normalised", "exploding_tensor", "saturated_activation")
    return Fault("gap_marked", change, rules, "setup", causes=rules[:1])


def raw_readings(offset: float, scale: float) -> Fault:
    """Readings in the units of the sensors."""

    def change(recipe: Recipe) -> None:
        change_inputs(recipe, lambda x: x * scale + offset)

    return Fault("raw_readings", change, ("inputs_not_normalised", "saturated_activation"), "setup",
                 causes=("inputs_not_normalised",))  # fmt: skip


def zero_start(*layers: str) -> Fault:
    """Weights and biases of layers begin at zero."""

    def change(recipe: Recipe) -> None:
        with torch.no_grad():
            for layer in layers:
                for one in module(recipe, layer).parameters():
                    one.zero_()

    rules = ("symmetric_initialisation", "poor_weight_initialization", "all_zero", "vanishing_gradient",
             "unchanged_tensor", "tensor_variance", "constant_output")  # fmt: skip
    return Fault("zero_start", change, rules, "setup")


def turned_around(name: str, value: float) -> Fault:
    """A temperature that divides where it should multiply: all scores are nearly alike."""

    def change(recipe: Recipe) -> None:
        setattr(recipe.criterion, name, value)

    rules = ("loss_not_decreasing", *NOTHING_LEFT)
    return Fault("turned_around", change, rules, "setup")


def maker_detached() -> Fault:
    """What the maker made is detached for its own step, too: it is never trained."""

    def change(recipe: Recipe) -> None:
        recipe.options["detached"] = True

    return Fault("maker_detached", change, NO_GRADIENT, "silent", 0, under("maker"), by_construction=True)


def other_partners(column: int) -> Fault:
    """One half of each pair, from a column on, was shuffled without the other."""

    def change(recipe: Recipe) -> None:
        recipe.on_batch.append(
            lambda _recipe, _step, x, y: (
                torch.cat([x[:, :column], x[torch.randperm(len(x)), column:]], 1),
                y,
            )
        )
        recipe.steps = max(recipe.steps, 250)

    return Fault("other_partners", change, NOT_LEARNING, "setup")
