"""Optimizers that are given settings by which nothing can be learnt, or next to nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import ViewRef
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule, facts_below

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["OptimizerSettings"]

_PREFIX = "optimizer"


@rule("optimizer_settings", title="Optimizer settings out of range")
@dataclass(frozen=True, kw_only=True)
class OptimizerSettings(LoopRule):
    """Settings of an optimizer, besides its learning rate, that no training is run with on purpose.

    *Swapped betas*: Adam and its like take the mean of more gradients than their size, so that it is divided
    by what the last few happened to be (Kingma and Ba, 2015, need beta1**2 < beta2**0.5).
    *Penalty*: weight decay that is part of gradients which are divided by their size, so that it outweighs
    the loss; AdamW takes it off the weights (Loshchilov and Hutter, 2019). *Shrinking*: weight decay times
    learning rate, which is what each step takes off all weights. *Momentum* of one and more never forgets.

    Optimizers of PyTorch and of Keras, as they are when they are first seen.
    """

    penalty: float = 0.05
    """Weight decay within divided gradients (Adam, NAdam, RAdam, Adamax, Adagrad, Adadelta, RMSprop), 1 being
    all of the weights. In healthy trainings the most was 0.01."""
    shrinks: float = 0.01
    """Share of the weights that each step takes off: with a hundredth, half of them are gone after 69. It is
    a matter of the rate where the weight decay is none above `largest_decay`."""
    largest_decay: float = 0.3
    """Weight decay beside the gradients, up to which it is in use (0.01 to 0.1 as a rule)."""

    explains: ClassVar[tuple[str, ...]] = (
        *NOT_LEARNING,
        *("constant_output", "vanishing_gradient", "weight_update_ratio", "layer_collapse", "all_zero"),
        *("dead_relu", "dead_units", "diverging_loss", "exploding_tensor", "tensor_variance"),
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("penalty", "shrinks", "largest_decay", above=0)

    def not_applicable(self, run: RunView) -> str:
        """Without an optimizer whose settings were noted."""
        if facts_below(run, _PREFIX):
            return ""
        return "No settings of an optimizer were recorded: attach() and KerasCallback note them."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Look at the optimizers one after the other."""
        settings: dict[str, dict[str, float]] = {}
        for _, name, value in facts_below(run, _PREFIX):
            kind, _, setting = name.rpartition("/")
            settings.setdefault(kind, {})[setting] = value
        for kind, known in settings.items():
            told = self._wrong(kind, known)
            if told is not None:
                text, advice = told
                return self.finding(
                    step,
                    text,
                    tensor="optimizer/lr/0",
                    evidence={"optimizer": kind, **known},
                    advice=(advice,),
                    view=ViewRef("scalars", {}),
                )
        return None

    def _wrong(self, kind: str, known: dict[str, float]) -> tuple[str, str] | None:
        """What is said of one optimizer, and what to do."""
        beta1, beta2 = known.get("beta1", 0.0), known.get("beta2", 1.0)
        penalty, shrinks, momentum = (known.get(one, 0.0) for one in ("penalty", "shrinks", "momentum"))
        if beta1 > beta2:
            text = (
                f"has betas ({beta1:g}, {beta2:g}): the second, that of their size, is to be the larger one."
            )
            advice = f"Swap them: ({beta2:g}, {beta1:g}) is meant. The default is (0.9, 0.999)."
        elif penalty > self.penalty:
            text = f"adds {penalty:g} of the weights to gradients, then divides: decay outweighs the loss."
            advice = (
                "Use AdamW, which takes weight decay off the weights; or a weight_decay of 1e-4 and less."
            )
        elif shrinks > self.shrinks and known.get("decay", 0.0) > self.largest_decay:
            text = f"takes {100 * shrinks:.2g} % off all weights at each step: too much decay for its rate."
            advice = "Lower weight_decay: 1e-4 to 1e-3 is common with SGD, 0.01 to 0.1 with AdamW."
        elif momentum >= 1.0:
            text = f"has a momentum of {momentum:g}, forgets no gradient, and takes ever larger steps."
            advice = "Use a momentum below one: 0.9 is common."
        else:
            return None
        return f"{kind} {text}", advice
