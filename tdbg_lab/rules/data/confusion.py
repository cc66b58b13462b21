"""Classes that are taken for each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.data.classes import CLASS_KINDS, HOW_TO_RECORD, class_names, classes_of
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.schedule import has_ended
from tdbg_lab.rules.setup.rounds import is_boosted, is_last_round
from tdbg_lab.rules.trend import trend_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.data.classes import Names
    from tdbg_lab.rules.view import RunView

__all__ = ["Confusion"]

_STEPS = 50
_LONG, _MANY = 30, 100_000
"""Recorded batches, and samples at most, by which two classes are judged before all others are learnt."""
_EACH = 7 / 8
_SURE_Z, _FAST = 4.0, 0.07
"""Standard errors, and share of the start, of a fall that says that much is still being learnt: 0.09 and more
in healthy trainings that told two classes apart last, 0.06 and less at the end of those with mixed labels."""
_FEW_CLASSES = 30
"""Classes of which each pair is looked at."""
_Z = 1.64
"""Standard errors that leave one chance in twenty."""


class _Pair(NamedTuple):
    label: int
    predicted: int
    samples: int
    share: float
    """Of the samples of that label."""


@rule("confusion", title="Confusion of classes")
@dataclass(frozen=True, kw_only=True)
class Confusion(Rule):
    """A class that is nearly always taken for one other class, while the model has learnt the rest.

    Two classes that are alike are confused at times; what is found is a class with at least `min_samples`
    labels of which more than `max_confused` are predicted as one other class, while the other classes have
    been learnt. Mixed-up labels look like that. So are two classes that are told apart no better than by
    chance, once all others are told well: among the samples of both, what is predicted has nothing to do
    with the label. While the loss still falls fast, and neither the learning rate nor the rounds of boosting
    are at their end, a model is not done, and the finding is a notice.

    With `classic`, the condition of SageMaker Debugger: of the samples that are *predicted* as a class, at
    least `min_diag` must belong to it, and at most `max_off_diag` to any one other class. (The guide divides
    the diagonal by the sum of the diagonal, which cannot be meant: ten perfect classes would fire. Here both
    are shares of a column, as its other formula says.) (AWS developer guide, Confusion.)
    """

    max_confused: float = 0.8
    """Share of a class that is predicted as one other."""
    min_mixed: float = 0.1
    """Of two mixed classes: least share of each that is taken for the other one."""
    min_others: float = 0.9
    """Share of the other classes that is right (mean; each at least seven eighths of it) before two count as
    mixed. Before that a model is not done: in healthy trainings two classes that are alike are no better
    than chance while the others are right in 83 %."""
    min_rest: float = 0.75
    """The same (mean; each more than a half) before one class counts as confused. Two of them are needed:
    of two classes in all, the one that is told less often is no confusion."""
    max_association: float = 0.35
    """Correlation of label and prediction among the samples of two mixed classes that can be ruled out, at
    1.6 standard errors; they may not be a single one above chance either."""
    max_trace: float = 0.15
    """The same over `_LONG` recorded batches, for two classes while the others are right in `min_rest`: in
    healthy trainings of 35 tasks the least was 0.26, but for one that never learnt to tell two apart."""
    max_pair: float = 0.2
    """Boosting at its last round: correlation of label and prediction within two classes that can be ruled
    out, where all other pairs have `min_pairs`, however often others are right. In 46 healthy trainings of
    several classes the least was 0.54."""
    min_pairs: float = 0.5
    """The same correlation within each other pair."""
    min_each: int = 100
    """Labels of each class that are needed for it."""
    min_samples: int = 20
    """Labels of a class that are needed."""
    samples: int = 500
    """Labels to look back for."""
    start_step: int = 100
    """First step at which predictions are judged (boosting: a tenth of it)."""
    labels_regex: str = r".*labels"
    """Names of labels."""
    predictions_regex: str = r"(?i)prediction|predicted_labels|logits"
    """Names of predictions."""
    classic: bool = False
    category_no: int | None = None
    """Classic: number of classes; None finds out."""
    min_diag: float = 0.9
    """Classic: least share on the diagonal."""
    max_off_diag: float = 0.1
    """Classic: largest share off the diagonal."""

    _ADVICE: ClassVar = (
        "Look at samples of both classes: labels may be mixed up, or the data cannot tell them apart.",
        "Weight the class that loses, or collect more of it.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("max_confused", "min_diag", "max_off_diag", at_least=0, at_most=1)
        self.require("min_samples", "min_each", "samples", at_least=1)
        self.require("max_pair", "min_pairs", at_least=0, at_most=1)
        self.require(
            "min_mixed", "min_others", "min_rest", "max_association", "max_trace", at_least=0, at_most=1
        )
        self.require("start_step", at_least=0)
        self.require("category_no", at_least=2)

    def needs(self) -> Needs:
        """Raw labels with predictions."""
        return Needs(kinds=(*CLASS_KINDS, Kind.LOSS, Kind.SCALAR), steps=_STEPS, raw=True, evaluations=True)

    def not_applicable(self, run: RunView) -> str:
        """No labels, or no predictions."""
        names = class_names(run, self.labels_regex, self.predictions_regex)
        return "" if names is not None and names.predictions else HOW_TO_RECORD

    def check(self, step: int, run: RunView) -> Finding | None:
        """Count what was predicted for each label."""
        names = class_names(run, self.labels_regex, self.predictions_regex)
        if names is None or not names.predictions:
            return None
        if not self.classic and step < self._start(run):
            return None
        found = classes_of(run, names, samples=1 if self.classic else self.samples, steps=_STEPS)
        if found is None or not len(found.labels):
            return run.active
        counts = found.counts(max(found.size, (self.category_no if self.classic else None) or 2))
        pair = self._classic(counts) if self.classic else self._found_in(counts, run, names)
        if pair is None:
            return None
        done = self.classic or has_ended(run) or is_last_round(run, step)
        early = not done and _is_learning(run)
        return self.finding(
            step,
            f"{pair.samples} samples of class {pair.label} ({100 * pair.share:.0f} %) are predicted as class "
            f"{pair.predicted}.",
            severity=Severity.NOTICE if early else Severity.WARNING,
            tensor=names.predictions,
            evidence={
                "label": pair.label,
                "predicted": pair.predicted,
                "samples_count": pair.samples,
                "share_percent": round(100 * pair.share, 2),
            },
            advice=self._ADVICE,
            view=ViewRef("rules", {}),
        )

    def _found_in(self, counts: NDArray[np.int64], run: RunView, names: Names) -> _Pair | None:
        """A confused class, or two that are mixed; by more samples where others are learnt less."""
        found = self._confused(counts) or self._mixed(counts, self.min_others, self._is_chance)
        if is_last_round(run, run.step):
            found = found or self._only_pair(counts)
        if found is not None or self._mixed(counts, self.min_rest, lambda _pair: True) is None:
            return found
        more = classes_of(run, names, samples=_MANY, steps=_LONG)
        if more is None or len(more.labels) <= self.samples:
            return None
        return self._mixed(more.counts(more.size), self.min_rest, self._is_hardly_more)

    def _only_pair(self, counts: NDArray[np.int64]) -> _Pair | None:
        """Two classes that are told apart by chance, where any other two are told apart well."""
        rows = counts.sum(axis=1)
        known = np.flatnonzero(rows >= self.min_each)
        if not 3 <= len(known) <= _FEW_CLASSES:
            return None
        pairs = [(one, two) for place, one in enumerate(known) for two in known[place + 1 :]]
        found = [_association(counts[np.ix_(pair, pair)]) for pair in pairs]
        at = int(np.argmin([one for one, _ in found]))
        level, error = found[at]
        others = [one for place, (one, _) in enumerate(found) if place != at]
        if level + _Z * error > self.max_pair or min(others) < self.min_pairs:
            return None
        one, two = (int(each) for each in pairs[at])
        return _Pair(one, two, int(counts[one, two]), float(counts[one, two] / rows[one]))

    def _is_chance(self, pair: NDArray[np.int64]) -> bool:
        """Whether what is predicted within two classes is not associated with the label, nor much more."""
        found, error = _association(pair)
        return found < error and found + _Z * error < self.max_association

    def _is_hardly_more(self, pair: NDArray[np.int64]) -> bool:
        """The same by more samples: a trace is what is known by heart of labels that are noise."""
        found, error = _association(pair)
        return found + _Z * error < self.max_trace

    def _start(self, run: RunView) -> float:
        boosted = is_boosted(run)
        return self.start_step / 10 if boosted else self.start_step

    def _confused(self, counts: NDArray[np.int64]) -> _Pair | None:
        rows = counts.sum(axis=1)
        share = counts / np.maximum(rows, 1)[:, None]
        right = np.diag(share).copy()
        np.fill_diagonal(share, 0.0)
        for label in np.flatnonzero((rows >= self.min_samples) & (share.max(axis=1) > self.max_confused)):
            others = right[(rows >= self.min_samples) & (np.arange(len(rows)) != label)]
            if len(others) < 2 or _share_right(counts, int(label)) < self.min_rest:
                continue
            if (others > 0.5).all() and others.mean() >= self.min_rest:
                other = int(share[label].argmax())
                return _Pair(int(label), other, int(counts[label, other]), float(share[label, other]))
        return None

    def _mixed(
        self, counts: NDArray[np.int64], right: float, is_chance: Callable[[NDArray[np.int64]], bool]
    ) -> _Pair | None:
        """Two classes that are told apart no better than by chance, while the others are right (mean)."""
        rows = counts.sum(axis=1)
        known = np.flatnonzero(rows >= self.min_samples)
        told = np.diag(counts) / np.maximum(rows, 1)
        for place, one in enumerate(known):
            for two in known[place + 1 :]:
                others = told[[each for each in known if each not in {one, two}]]
                taken = counts[one, two] / rows[one], counts[two, one] / rows[two]
                if min(taken) < self.min_mixed or not len(others) or others.mean() < right:
                    continue
                if _share_right(counts, int(one), int(two)) < self.min_rest:
                    continue
                if others.min() >= _EACH * right and is_chance(counts[np.ix_([one, two], [one, two])]):
                    return _Pair(int(one), int(two), int(counts[one, two]), float(taken[0]))
        return None

    def _classic(self, counts: NDArray[np.int64]) -> _Pair | None:
        columns = counts.sum(axis=0)
        share = counts / np.maximum(columns, 1)[None, :]
        for one in np.flatnonzero(columns):
            off = share[:, one].copy()
            off[one] = 0.0
            if share[one, one] < self.min_diag or off.max() > self.max_off_diag:
                label = int(off.argmax())
                return _Pair(label, int(one), int(counts[label, one]), float(off[label]))
        return None


def _is_learning(run: RunView) -> bool:
    """Whether a training loss still falls fast: by much of its start from third to third."""
    trends = [trend_of(run.scalars(name).values) for name in run.losses()]
    return any(one is not None and one.fall_z > _SURE_Z and one.fall_frac > _FAST for one in trends)


def _share_right(counts: NDArray[np.int64], *but: int) -> float:
    """Share of the samples of all other classes that is right.

    Also of those too rare to be judged by themselves: where only common ones of many are told, as what a fact
    or a text goes on with, what is more common is told for what is less so.
    """
    others = np.delete(np.arange(len(counts)), but)
    return float(np.diag(counts)[others].sum() / max(1, counts[others].sum()))


def _association(pair: NDArray[np.int64]) -> tuple[float, float]:
    """Correlation of label and prediction within two classes, and its standard error without any.

    That of two binary variables; the error is one by the root of the samples.
    """
    margins = np.sqrt(float(np.prod(pair.sum(axis=0))) * float(np.prod(pair.sum(axis=1))))
    found = float(pair[0, 0] * pair[1, 1] - pair[0, 1] * pair[1, 0]) / margins if margins else 0.0
    return found, 1.0 / float(np.sqrt(max(1, pair.sum())))
