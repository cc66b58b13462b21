"""Models that learn the training data by heart."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.losses.by_heart import known_by_heart
from tdbg_lab.rules.losses.learnt import learnt_by_trees, learnt_of_labels
from tdbg_lab.rules.losses.pairs import find_pair, missing_pair
from tdbg_lab.rules.losses.state import is_game
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.setup.rounds import is_boosted, weighs_classes
from tdbg_lab.rules.trend import noise_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.losses.learnt import Learnt
    from tdbg_lab.rules.losses.pairs import LossPair
    from tdbg_lab.rules.view import RunView

__all__ = ["Overfit"]

_BY_HEART = 0.1
"""Training loss over the least evaluation loss below which the training rows are known by heart."""
_EACH = 0.4
"""Share of the mean rise over many rounds of boosting that each of them must have."""
_ANY = 0.002
"""Fall of such a training loss that is some, as a share of its start."""
_SINCE = 3
"""Points of the training loss after which an evaluation is no longer new, though it may come late."""
_LIKELIHOOD = re.compile(r"-nloglik(@[\d.]+)?$|[-_ ](poisson|gamma|tweedie)$")
"""Boosting metrics of counts and amounts: logarithms of likelihoods, whose least value is not known."""
_ROOT = re.compile(r"(?i)(^|[^a-z])(rmse|rmsle|root_mean_squared_error)$")


@rule("overfit", title="Overfit")
@dataclass(frozen=True, kw_only=True)
class Overfit(Rule):
    """The evaluation loss rises, or never fell, while the training loss goes down.

    A gap alone is no trouble: most good models have one, and dropout, augmentation and label smoothing turn
    it round. What counts is the way: the evaluation loss is above its best by `min_rise` percent, beyond
    the noise from evaluation to evaluation, at each of the last `patience` evaluations, and the training
    loss has gone on falling since that best. A training loss that fell by half while the evaluation loss
    never fell is the same trouble.

    A root of squares rises by half as much as they do, and so by about half of `min_rise`. Rises that last
    count from `min_rise_long` percent on: those that a quarter of all evaluations, and twice `patience`, lie
    above, while the training loss has lost a twentieth. Of boosting these are all of `patience_long` rounds
    and a half of all, and the training loss has lost a fifth meanwhile; `min_rise_by_heart` is enough where
    the training rows are known by heart: their loss is less than a tenth. Metrics of boosting whose least
    value is not known, as likelihoods of counts, are measured by what they lost since the first round.

    Nor need it rise where training rows are known by heart, and much of what there was is left of others.

    Last, there is what holds for other rows of what is learnt. Of well trained networks it is most of it, in
    terms of what the losses lost since they knew nothing but how frequent each label is (its entropy). Of
    boosted trees it is most in the first rounds; where it is little from a tenth of the rounds on, trees are
    too deep, or a column knows the answer in training alone.

    With `classic`, the condition of SageMaker Debugger to the letter: the mean evaluation loss is above
    the mean training loss by more than `ratio_threshold` of it for `patience_classic` steps from
    `start_step` on (AWS developer guide, Overfit).
    """

    explains: ClassVar = ("overtraining", "tree_depth", "loss_not_decreasing")

    min_rise: float = 15.0
    """Rise of the evaluation loss above its best, percent of the best, that is overfitting."""
    min_z: float = 3.0
    """The rise must be this many times the noise from evaluation to evaluation."""
    min_train_fall: float = 10.0
    """Fall of the training loss since the best evaluation, percent."""
    patience: int = 4
    """Evaluations in a row."""
    min_rise_long: float = 5.0
    """Rise of the evaluation loss above its best, percent of the best, that lasts."""
    min_rise_by_heart: float = 1.0
    """The same of boosting that knows the training rows by heart."""
    patience_long: int = 30
    """Rounds in a row for which it does."""
    min_evaluations: int = 6
    """Evaluations that are needed."""
    min_learnt: float = 40.0
    """Fall of the training loss that something must have been learnt of its rows, percent: of what it is when
    the inputs tell nothing, and of boosting since the first round."""
    max_share: float = 42.0
    """Share of the fall of the training loss that the evaluation loss falls by, percent, up to which a
    network learns these rows and not what they have in common with others. In 720 healthy trainings the least
    was 46 of classes (but for these, 70), and 35 of numbers, which are not judged so."""
    max_share_of_trees: float = 55.0
    """The same of boosting. In 68 healthy trainings the least was 69 at a tenth of the rounds, but for one
    with 63."""
    min_rounds: int = 20
    """Rounds of boosting that are needed to say so."""
    regex: str | None = None
    """Names of the losses to compare; None finds them."""
    classic: bool = False
    ratio_threshold: float = 0.1
    """Classic: largest (evaluation loss - training loss) / training loss."""
    patience_classic: int = 1
    """Classic: steps in a row."""
    start_step: int = 0
    """Classic: first step that is looked at."""

    _ADVICE: ClassVar = (
        "Stop here, and use the weights of the best evaluation.",
        "Regularise: weight decay, dropout, data augmentation.",
        "Use a smaller model, or more data.",
    )

    _TREES: ClassVar = (
        "Look for a column that knows the answer of the training rows alone, as means over few do.",
        "Grow smaller trees: max_depth, num_leaves, min_child_weight, parts of rows and columns.",
        "Use more data.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("min_rise", "min_z", "min_train_fall", "ratio_threshold", "start_step", at_least=0)
        self.require("min_rise_long", "min_rise_by_heart", "min_learnt", at_least=0)
        self.require("max_share", "max_share_of_trees", at_least=0)
        self.require(
            "patience", "patience_long", "min_evaluations", "patience_classic", "min_rounds", at_least=1
        )

    def needs(self) -> Needs:
        """A training loss and an evaluation loss."""
        return Needs(kinds=(Kind.LOSS, Kind.SCALAR, Kind.CUSTOM, Kind.CHECK), evaluations=True)

    def not_applicable(self, run: RunView) -> str:
        """No evaluation loss."""
        return missing_pair(run)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare the losses since the best evaluation."""
        pair = find_pair(run, self.regex)
        if pair is None or not len(pair.held.steps):
            return None
        if run.active is not None and pair.held.steps[-1] <= run.active.step_last:
            return run.active  # no evaluation since
        if run.active is None and _was_looked_at(pair):
            return None
        if self.classic:
            return self._check_classic(step, pair)
        train = pair.train_at()
        known = np.isfinite(train) & np.isfinite(pair.held.values)
        train, held, steps = train[known], pair.held.values[known], pair.held.steps[known]
        if len(held) < max(self.min_evaluations, self.patience + 1):
            return None
        found = None
        if self._suspicious(pair):
            closer = self._closer(run, train, held)
            found = (
                self._rising(step, pair, steps, train, held)
                or closer._rising(step, pair, steps, train, held, is_long=is_boosted(run))  # noqa: SLF001 - of the same class
                or self._by_heart(step, pair, train, held)
            )
        return (
            found
            or self._of_these_rows(step, run, pair, train, held)
            or self._far_apart(step, run, pair, train, held)
        )

    def _suspicious(self, pair: LossPair) -> bool:
        """Whether the evaluation loss alone is a reason to look closer: quick, it is asked each step."""
        held = pair.held.values
        last = held[-self.patience :]
        if len(held) < self.min_evaluations or not np.isfinite(last).all():
            return False
        best, first = float(np.nanmin(held)), float(held[0])
        least = _share(pair, min(self.min_rise, self.min_rise_long, self.min_rise_by_heart))
        scale = first - best if _is_likelihood(pair) else abs(best)
        return float(last.min()) > min(best + least * scale, 0.9 * first)

    def _closer(self, run: RunView, train: NDArray[np.float64], held: NDArray[np.float64]) -> Overfit:
        """For slighter rises that last longer."""
        if not is_boosted(run):
            patience = max(2 * self.patience, len(held) // 4)
            return replace(self, min_rise=self.min_rise_long, patience=patience, min_train_fall=5.0)
        by_heart = float(train[-self.patience :].max()) < _BY_HEART * float(held.min())
        rise = self.min_rise_by_heart if by_heart else self.min_rise_long
        patience = max(self.patience_long, len(held) // 2)
        return replace(self, min_rise=rise, patience=patience, min_train_fall=20.0)

    def _rising(
        self,
        step: int,
        pair: LossPair,
        steps: NDArray[np.int64],
        train: NDArray[np.float64],
        held: NDArray[np.float64],
        *,
        is_long: bool = False,
    ) -> Finding | None:
        best = int(np.argmin(held))
        last = held[-self.patience :]
        if best >= len(held) - self.patience:
            return None
        level = float(np.median(held[max(0, best - 1) : best + 2]))  # one lucky evaluation is no best
        least = float(last.min()) - level
        rise = float(last.mean()) - level if is_long else least
        noise = noise_of(held[best:])  # before it, the fall is steep and no noise
        fell = float(train[best] - train[-self.patience :].mean())
        scale, train_scale = abs(level), abs(float(train[best]))
        by_fall = _is_likelihood(pair)
        if by_fall:
            train_scale = float(train[0] - train[best])
            scale = max(float(held[0]) - level, float(train[0] - train[-1]))
        if rise < _share(pair, self.min_rise) * scale or rise < self.min_z * noise:
            return None
        if least < _EACH * rise:
            return None
        if fell < self.min_train_fall / 100.0 * train_scale:
            return None
        percent = 100.0 * (float(last.mean()) - held[best]) / max(abs(float(held[best])), 1e-12)
        told = f"{float(last.mean()) - held[best]:.3g}" if by_fall else f"{percent:.0f} %"
        return self.finding(
            step,
            f"{pair.eval_name} has risen by {told} since its best, {held[best]:.4g} at step "
            f"{steps[best]}, while {pair.train_name} fell on, from {train[best]:.4g} to {train[-1]:.4g}.",
            tensor=pair.eval_name,
            evidence={
                "evaluation_loss_best": float(held[best]),
                "evaluation_loss_now": float(last.mean()),
                "step_of_best": int(steps[best]),
                "rise_percent": round(float(percent), 2),
                "training_loss_at_best": float(train[best]),
                "training_loss_now": float(train[-1]),
                "evaluation_noise": noise,
            },
            advice=self._ADVICE,
            view=_view(pair),
        )

    def _by_heart(
        self, step: int, pair: LossPair, train: NDArray[np.float64], held: NDArray[np.float64]
    ) -> Finding | None:
        last = held[-self.patience :]
        never_fell = float(last.min()) >= float(held[0]) - self.min_z * noise_of(held)
        halved = float(train[-self.patience :].max()) < 0.5 * float(train[0])
        if not (never_fell and halved and float(held.min()) > 0.9 * float(held[0]) > 0):
            return None
        return self.finding(
            step,
            f"{pair.train_name} has fallen from {train[0]:.4g} to {train[-1]:.4g}, but {pair.eval_name} "
            f"never fell: {held[0]:.4g} at first, {held[-1]:.4g} now.",
            tensor=pair.eval_name,
            evidence={
                "evaluation_loss_start": float(held[0]),
                "evaluation_loss_now": float(held[-1]),
                "training_loss_start": float(train[0]),
                "training_loss_now": float(train[-1]),
            },
            advice=(
                "Check that the evaluation data are prepared as the training data are.",
                *self._ADVICE,
            ),
            view=_view(pair),
        )

    def _of_these_rows(
        self, step: int, run: RunView, pair: LossPair, train: NDArray[np.float64], held: NDArray[np.float64]
    ) -> Finding | None:
        """Where little of what is learnt holds for other rows, though their loss may not rise."""
        boosted = is_boosted(run)
        learnt = (
            self._learnt_by_trees(run, pair, train, held) if boosted else self._learnt(run, pair, train, held)
        )
        if learnt is None:
            return None
        since = "the first round" if boosted else "knowing nothing but how frequent labels are"
        return self.finding(
            step,
            f"Since {since}, the training loss fell from {learnt.train_start:.4g} to {learnt.train:.4g}, "
            f"but the evaluation loss only from {learnt.held_start:.4g} to {learnt.held:.4g}: of what "
            f"is learnt, {100 * max(learnt.share, 0.0):.0f} % holds for other rows.",
            tensor=pair.eval_name,
            evidence={
                "training_loss_start": learnt.train_start,
                "training_loss_now": learnt.train,
                "evaluation_loss_start": learnt.held_start,
                "evaluation_loss_now": learnt.held,
                "share_that_holds_percent": round(100 * learnt.share, 1),
            },
            advice=self._TREES if boosted else self._ADVICE,
            view=_view(pair),
        )

    def _far_apart(
        self, step: int, run: RunView, pair: LossPair, train: NDArray[np.float64], held: NDArray[np.float64]
    ) -> Finding | None:
        """Where the training rows are known by heart, and of others much is left: whatever the loss is."""
        apart = None if is_boosted(run) or is_game(run) else known_by_heart(pair, train, held, self.patience)
        if apart is None:
            return None
        return self.finding(
            step,
            f"{pair.train_name} has fallen to {100 * apart.train / apart.start:.1f} % of its start, "
            f"{apart.start:.4g}, and {pair.eval_name} is {apart.held / apart.train:.3g} times as large: "
            f"{apart.held:.4g}.",
            tensor=pair.eval_name,
            evidence={
                "training_loss_start": apart.start,
                "training_loss_now": apart.train,
                "evaluation_loss_now": apart.held,
            },
            advice=self._ADVICE,
            view=_view(pair),
        )

    def _learnt_by_trees(
        self, run: RunView, pair: LossPair, train: NDArray[np.float64], held: NDArray[np.float64]
    ) -> Learnt | None:
        if len(held) < self.min_rounds or weighs_classes(run):
            return None
        needed = _ANY if _is_likelihood(pair) else _share(pair, self.min_learnt)
        learnt = learnt_by_trees(train, held, fall=needed)
        return learnt if learnt is not None and learnt.share <= self.max_share_of_trees / 100.0 else None

    def _learnt(
        self, run: RunView, pair: LossPair, train: NDArray[np.float64], held: NDArray[np.float64]
    ) -> Learnt | None:
        learnt = learnt_of_labels(run, pair.train_name, train, held, fall=self.min_learnt / 100.0)
        return learnt if learnt is not None and learnt.share <= self.max_share / 100.0 else None

    def _check_classic(self, step: int, pair: LossPair) -> Finding | None:
        train = pair.train_at()
        ratios = (pair.held.values - train) / train
        known = (pair.held.steps >= self.start_step) & np.isfinite(ratios)
        held, ratios = pair.held.values[known], ratios[known]
        last = ratios[-self.patience_classic :]
        if len(last) < self.patience_classic:
            return None
        if not (last > self.ratio_threshold).all():
            return None
        return self.finding(
            step,
            f"{pair.eval_name} is {held[-1]:.4g}, {100 * last[-1]:.1f} % above {pair.train_name}.",
            tensor=pair.eval_name,
            evidence={"gap_to_training_loss": float(last[-1])},
            advice=self._ADVICE,
            view=_view(pair),
        )


def _share(pair: LossPair, percent: float) -> float:
    """The share that stands for so many percent: of the squares, where a loss is their root."""
    share = percent / 100.0
    return float(np.sqrt(1.0 + share)) - 1.0 if _ROOT.search(pair.eval_name) else share


def _is_likelihood(pair: LossPair) -> bool:
    """Whether what the losses lost tells more than what they are."""
    return _LIKELIHOOD.search(pair.eval_name) is not None


def _was_looked_at(pair: LossPair) -> bool:
    """Whether the last evaluation was there when the point before this one was checked."""
    return len(pair.train.steps) >= _SINCE and bool(pair.held.steps[-1] < pair.train.steps[-_SINCE])


def _view(pair: LossPair) -> ViewRef:
    return ViewRef("scalars", {"tensors": list(dict.fromkeys((pair.train_name, pair.eval_name)))})
