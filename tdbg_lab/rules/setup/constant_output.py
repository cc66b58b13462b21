"""A model that answers the same for every sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, Mode, ViewRef
from tdbg_lab.rules.base import Needs
from tdbg_lab.rules.consequences import NOT_TOLD_APART
from tdbg_lab.rules.losses.evidence import learnt_labels
from tdbg_lab.rules.losses.state import is_game
from tdbg_lab.rules.middle import median
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.series import Scalars
from tdbg_lab.rules.setup.given import LossRule, facts_of

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.setup.given import Given
    from tdbg_lab.rules.view import RunView

__all__ = ["ConstantOutput"]

_SPREAD = "^check/loss/[^/:]+/spread$"
"""Functions within a loss (``Own:mse_loss``) may compare anything; the loss itself compares outputs."""
_FIRST = 5
"""Saved steps that say what the spread was in the beginning."""
_TINY = 1e-30
_SAMPLES = 8
"""Values that the output of a last layer must have."""
_SHRUNK = 2.0
"""Times `alike` that outputs may still differ by, whose loss fell only since they shrank."""
_COLUMNS = 8
_ALSO = 4.0
"""Factor by which what is left of the loss may differ from the square of what is left of the spread."""
_NOISE = 0.3
"""Spread in evaluation over that in training, below which most of the latter is noise."""
_SETTLED = 1.2
"""Largest over least size of the output, over the evaluations, up to which it is settled."""


class _Constant(NamedTuple):
    """Outputs that are all alike."""

    name: str
    """Class of the loss."""
    text: str
    evidence: dict[str, float | int]
    step_first: int
    tensor: str = ""
    """What is constant, if it is not what a loss is given."""


@rule("constant_output", title="Constant output")
@dataclass(frozen=True, kw_only=True)
class ConstantOutput(LossRule):
    """The output of the model does not depend on its input: all samples of a batch get the same answer.

    The first saved steps do not count: a last layer that starts at zero answers the same at first. Where it
    is not seen what a loss is given, it is the output of the last layer that is judged: it is constant when
    its standard deviation is exactly zero.

    Outputs that are drawn together, and not quite the same yet, are found by what is left of their spread: of
    that in the beginning less than `kept`, and of their size less than `alike`, though they do not go
    with their targets. Representations end like that with nothing to push them apart, their loss then being
    next to nothing: where it fell by no more than the square of what was lost of their spread, they only
    shrank. So do the answers of a decoder whose code is held at its prior: in evaluation,
    without the noise on the code, they are alike (`alike_eval`), which targets on a large offset are too, so
    that the range of the targets is compared with as well. Where less than a third of what differs in
    training differs in evaluation, it is noise that differs, and a larger share is enough (`alike_noisy`).
    """

    patience: int = 5
    """Saved steps in a row."""
    spread: float = 1e-4
    """Standard deviation over a batch, as a share of the size of the output, up to which it is constant."""
    warm_up: int = 2
    """Saved steps that do not count."""
    kept: float = 0.1
    """Spread over that of the first saved steps. In healthy trainings the least, of targets of a
    thousandth, was 0.3."""
    alike: float = 0.15
    """Spread over the size of the output at the same steps; the least was 0.2."""
    alike_eval: float = 0.02
    """Spread over the size of the output, and over the range of the targets, in evaluation. The least was
    0.13."""
    alike_noisy: float = 0.1
    """Spread over the size of the output, in evaluation, of outputs that noise alone varies in training."""
    patience_alike: int = 10
    """Saved steps whose median is judged."""
    patience_eval: int = 3
    """Evaluations in a row."""

    explains: ClassVar[tuple[str, ...]] = (*NOT_TOLD_APART, "layer_collapse")
    _ADVICE: ClassVar = (
        "Look for a layer that is dead (all zeros) or saturated between the input and the output.",
        "Check for a softmax over an axis of length 1, or over the batch axis.",
        "Lower the learning rate, and normalise the inputs.",
        "Check that the input reaches the model: no constant or empty batches.",
    )
    _ALIKE: ClassVar = (
        "Contrastive and self-distilling training: check the negatives, the stop-gradient and the predictor.",
        "Variational autoencoders: lower the weight of the KL term, or let it rise from zero.",
        "Lower the weight of penalties on the representation, and weight decay.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("spread", "kept", "alike", "alike_eval", "alike_noisy", at_least=0)
        self.require("patience_alike", "patience_eval", at_least=2)

    def needs(self) -> Needs:
        """Facts about losses, and layer outputs."""
        return Needs(kinds=(Kind.CHECK, Kind.ACTIVATION), steps=self.patience)

    def not_applicable(self, run: RunView) -> str:
        """Without a loss that is watched, and without layer outputs."""
        return "" if run.tensors(Kind.ACTIVATION) else super().not_applicable(run)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Every loss that was seen at this step."""
        same = self._same(run) or self._of_last_layer(step, run)
        found = same or self._drawn_together(step, run) or self._alike_in_evaluation(step, run)
        if found is None:
            return None
        return self.finding(
            step,
            f"The output given to {found.name} {found.text}.",
            tensor=found.tensor or f"loss/{found.name}",
            evidence=found.evidence,
            advice=self._ADVICE if found is same else self._ALIKE,
            view=ViewRef("overview", {"kind": "activation", "statistic": "std"}),
            step_first=found.step_first,
        )

    def _same(self, run: RunView) -> _Constant | None:
        """Outputs that are the same but for rounding."""
        for name, given in self.given(run).items():
            if ":" in name:
                continue
            shares = [_share(one) for one in given]
            if all(share <= self.spread for share in shares):
                text = (
                    f"is the same for all samples of a batch (spread {max(shares):.1e} of its size) at "
                    f"{len(given)} saved steps"
                )
                evidence = {"spread_share": max(shares), "saved_steps_count": len(given)}
                return _Constant(name, text, evidence, given[0].step)
        return None

    def _of_last_layer(self, step: int, run: RunView) -> _Constant | None:
        """The output of the last layer, where no loss tells what it is given."""
        if run.tensors(Kind.CHECK, regex=_SPREAD):
            return None
        outputs = run.tensors(Kind.ACTIVATION)
        frames = run.frames(Kind.ACTIVATION, self.patience)
        if not outputs or len(frames) < self.patience or frames[-1].step != step or is_game(run):
            return None
        rows = [frame.get(outputs[-1].name) for frame in frames]
        if any(row is None or row.count < _SAMPLES or row.l2 == 0 or row.std != 0 for row in rows):
            return None
        name = outputs[-1].name
        text = f"by {name} is the same for all samples at {len(rows)} saved steps"
        return _Constant("the loss", text, {"saved_steps_count": len(rows)}, frames[0].step, name)

    def _drawn_together(self, step: int, run: RunView) -> _Constant | None:
        """Outputs that have lost their spread, though they do not go with their targets."""
        n = self.patience_alike
        for name in _losses(run, step):
            spread, size = _series(run, name, Mode.TRAIN)
            if len(spread.steps) < 2 * n or not spread.values[-1] < _SHRUNK * self.alike * size.values[-1]:
                continue
            now, first = float(median(spread.values[-n:])), float(median(spread.values[:_FIRST]))
            share = float(median(spread.values[-n:] / np.maximum(size.values[-n:], _TINY)))
            drawn = share < self.alike or (
                share < _SHRUNK * self.alike and _only_shrank(run, name, now / first)
            )
            if not (now < self.kept * first and drawn) or learnt_labels(run, f"loss/{name}"):
                continue
            text = (
                f"is nearly the same for all samples: {100 * share:.2g} % of its size differs between them, "
                f"and {100 * now / first:.2g} % is left of what differed in the beginning"
            )
            evidence = {"spread_share": share, "spread_kept_share": now / first, "saved_steps_count": n}
            return _Constant(name, text, evidence, int(spread.steps[-n]))
        return None

    def _alike_in_evaluation(self, step: int, run: RunView) -> _Constant | None:
        """Outputs that do not differ between samples once nothing is random any more."""
        n = self.patience_eval
        for name in _losses(run, step):
            spread, size = _series(run, name, Mode.EVAL)
            least, most = (facts_of(run, name, f"target_{end}", Mode.EVAL)[-n:] for end in ("min", "max"))
            if not n <= len(spread.steps) or not len(least) == len(most) == n or is_game(run):
                continue
            values, sizes = spread.values[-n:], size.values[-n:]
            if sizes.max() > _SETTLED * sizes.min():
                continue  # the mean is being learnt, and all else after it
            shares = values / np.maximum(sizes, _TINY)
            in_training = float(median(_series(run, name, Mode.TRAIN)[0].values[-self.patience_alike :]))
            limit = self.alike_noisy if (values < _NOISE * in_training).all() else self.alike_eval
            if not ((shares < limit) & (values < self.alike_eval * (most - least))).all():
                continue
            text = (
                f"is nearly the same for all samples in each of the last {n} evaluations: "
                f"{100 * float(shares.max()):.2g} % of its size differs between them"
            )
            evidence = {"spread_share": float(shares.max()), "evaluations_count": n}
            return _Constant(name, text, evidence, int(spread.steps[-n]))
        return None


def _only_shrank(run: RunView, name: str, kept: float) -> bool:
    """Whether a loss on representations fell as the square of their spread: by nothing but shrinking.

    Predictions of targets, which have their shape, and outputs of few columns are none.
    """
    facts = {fact: facts_of(run, name, fact) for fact in ("classes", "correlation")}
    losses = run.scalars(f"loss/{name}").values
    if len(facts["correlation"]) or not len(facts["classes"]) or facts["classes"][-1] < _COLUMNS:
        return False
    if len(losses) < 2 * _FIRST or not np.isfinite(losses).all():
        return False
    first, now = float(median(losses[:_FIRST])), float(median(losses[-_FIRST:]))
    return 0 < now < first and kept**2 / _ALSO < now / first < kept**2 * _ALSO


def _losses(run: RunView, step: int) -> list[str]:
    """Classes of the losses that were seen at this step; of all of them while a finding is open."""
    names = [(key.name.split("/")[2], key.name) for key in run.tensors(Kind.CHECK, regex=_SPREAD)]
    return [name for name, key in names if run.active is not None or _seen_at(run.scalars(key), step)]


def _seen_at(series: Scalars, step: int) -> bool:
    return len(series.steps) > 0 and int(series.steps[-1]) == step


def _series(run: RunView, name: str, mode: Mode) -> tuple[Scalars, Scalars]:
    """Spread and size of the predictions that a loss was given; both empty where they do not match."""
    spread, size = (run.scalars(f"check/loss/{name}/{fact}", mode) for fact in ("spread", "prediction_size"))
    count = len(spread.steps) if len(spread.steps) == len(size.steps) else 0
    spread, size = (Scalars(one.steps[:count], one.values[:count]) for one in (spread, size))
    return spread, size


def _share(one: Given) -> float:
    """Spread over the batch, relative to the root mean square; NaN when it cannot be told."""
    size, spread = one.number("prediction_size"), one.number("spread")
    if one.number("prediction_broken") or one.number("samples", 0) < 4:
        return float("nan")
    return spread / size if size > 0 else 0.0
