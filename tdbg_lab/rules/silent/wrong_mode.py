"""Dropout and batch normalisation in the wrong mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.losses.state import is_game
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule, fact, facts_below

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["EvaluationInTrainMode", "TrainingInEvalMode"]


@rule("evaluation_in_train_mode", title="Evaluation in train mode")
@dataclass(frozen=True, kw_only=True)
class EvaluationInTrainMode(LoopRule):
    """The model is evaluated while its dropout or batch normalisation still behave as in training.

    Seen by a forward pass without gradients (``torch.no_grad``) in train mode, or by a part that trains
    while its model evaluates. The results are noisy, and evaluation data move running statistics. In a game
    it is a notice: programs of GANs show what is made of the same numbers so, and it costs them nothing.
    """

    passes: int = 1
    """Forward passes of that kind."""

    _ADVICE: ClassVar = (
        "Call model.eval() before evaluation and model.train() after it.",
        "If it is meant (Monte-Carlo dropout, refreshing running statistics), switch this rule off.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("passes", at_least=1)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Passes of the whole model, and parts that train while it evaluates."""
        passes = fact(run, "eval_in_train")
        parts = [name for _, name, _ in facts_below(run, "part_in_train")]
        if passes < self.passes and not parts:
            return None
        layers = _layers(run)
        if parts:
            text = f"{parts[0]} was in train mode while its model was evaluated."
        else:
            text = f"The model was evaluated in train mode: its {layers} behaved as in training."
        shown = not parts and is_game(run)
        return self.finding(
            step,
            text,
            severity=Severity.NOTICE if shown else Severity.WARNING,
            tensor=f"activation/{parts[0]}" if parts else "",
            evidence={
                "passes_in_train_mode_count": passes,
                "parts_in_train_mode": ", ".join(parts[:20]),
                "dropout_layers_count": fact(run, "dropout_layers"),
                "batch_norm_layers_count": fact(run, "batch_norm_layers"),
            },
            advice=self._ADVICE,
            view=ViewRef("scalars", {}),
        )


@rule("training_in_eval_mode", title="Training in eval mode")
@dataclass(frozen=True, kw_only=True)
class TrainingInEvalMode(LoopRule):
    """The optimizer steps while the model, or a part of it, is in eval mode.

    Its dropout and batch normalisation are off then. Mostly ``model.train()`` is missing after an evaluation.
    A trained model without dropout that was in eval mode from the first step on makes a notice only: that is
    one way to freeze batch normalisation. A part counts if its weights get gradients and it is dropout, or
    batch normalisation that never saw anything: the running statistics of a trained network may be held. If
    only some of them are, of layers that are all trained, those count as well.
    """

    patience: int = 3
    """Optimizer steps in a row."""

    _ADVICE: ClassVar = (
        "Call model.train() at the beginning of each epoch, and after each evaluation.",
        "To freeze batch normalisation, call eval() on those layers and leave the model in train mode.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("patience", at_least=1)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Steps in a row whose forward passes ran in eval mode, and parts that were so in training."""
        steps = fact(run, "train_in_eval")
        if steps < self.patience:
            return self._parts(step, run)
        series = run.scalars("check/train_in_eval")
        always = not (series.values == 0).any()
        harmless = always and not fact(run, "dropout_layers") and not fact(run, "unused_norms")
        return self.finding(
            step,
            f"The last {steps:.0f} optimizer steps were made in eval mode: {_layers(run)} did not train"
            f"{', from the first step on' if always else ''}.",
            severity=Severity.NOTICE if harmless else Severity.WARNING,
            evidence={
                "steps_in_eval_mode_count": steps,
                "dropout_layers_count": fact(run, "dropout_layers"),
                "batch_norm_layers_count": fact(run, "batch_norm_layers"),
            },
            advice=self._ADVICE,
            view=ViewRef("scalars", {}),
            step_first=max(0, step - int(steps) + 1),
        )

    def _parts(self, step: int, run: RunView) -> Finding | None:
        """Parts that are off while the layers before them train."""
        parts = [name for _, name, _ in facts_below(run, "part_off")]
        if not parts:
            return None
        more = f" (and {len(parts) - 1} more)" if len(parts) > 1 else ""
        return self.finding(
            step,
            f"{parts[0]}{more} was in eval mode in the last optimizer steps, while its model trained.",
            tensor=f"activation/{parts[0]}",
            evidence={"parts_in_eval_mode": ", ".join(parts[:20])},
            advice=(
                "Call train() on this part, or on the whole model, after what set it to eval().",
                *self._ADVICE,
            ),
            view=ViewRef("scalars", {}),
        )


def _layers(run: RunView) -> str:
    dropouts, norms = int(fact(run, "dropout_layers")), int(fact(run, "batch_norm_layers"))
    named = [(dropouts, "dropout"), (norms, "batch normalisation")]
    return " and ".join(f"{n} {what} layer{'s' * (n > 1)}" for n, what in named if n) or "layers"
