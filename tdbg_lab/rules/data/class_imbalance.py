"""Classes that are rare, and given up by the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Mode, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.data.classes import CLASS_KINDS, HOW_TO_RECORD, class_names, classes_of
from tdbg_lab.rules.data.rest import rest_of, tells_rest
from tdbg_lab.rules.data.weighting import WEIGHTED, weighted_by_count
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.setup.rounds import is_boosted, weight_of_yes

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.data.classes import Classes, Names
    from tdbg_lab.rules.view import RunView

__all__ = ["ClassImbalance"]

_STEPS = 50
_LABELS_SEEN = "^check/loss/[^/:]+/labels$"
_VOCABULARY = 50
"""Classes from which they are a vocabulary, if a quarter is rare: words of a text, pages of a site."""


@rule("class_imbalance", title="Class imbalance")
@dataclass(frozen=True, kw_only=True)
class ClassImbalance(Rule):
    """A class that is much rarer than another, and that the model has given up.

    Imbalance alone is common and often harmless: it is a notice. It is a warning when, after `start_step`
    steps, the model predicts the rare class (or all rare ones together, where each has too few samples to be
    judged) wrongly in more than `threshold_misprediction` of the samples while it gets most of the frequent
    classes right. (What somebody does next is mostly a guess, which goes to what is common.)
    So it is for a class only ten times rarer where all others are right in evaluation. In a vocabulary, many
    classes of which a quarter is rare, to tell the common ones first is what everybody does: a notice.
    A loss that weighs its classes by how many there are, and not by how few, gives up the rare ones by
    itself: a warning, too; so does ``scale_pos_weight`` of boosted trees that makes the rarer class weigh
    less. So is a single class, where evaluations have several.
    Rare is what is rare in the training labels; what is predicted is judged in evaluation where it was
    recorded there, for a class of four samples may be learnt by heart.

    Where no predictions were recorded, what the loss was given tells as much of single labels: how many
    samples of the last batches have another label than the commonest, and how many of those are right.

    With `classic`, the condition of SageMaker Debugger to the letter: after `samples` labels, the largest
    class is more than `threshold_imbalance` times the smallest, or some class is predicted wrongly in more
    than `threshold_misprediction` of its samples (AWS developer guide, ClassImbalance).
    """

    threshold_imbalance: float = 10.0
    """Largest over smallest class (AWS developer guide)."""
    threshold_warning: float = 30.0
    """The same from which a class that is hardly ever predicted is more than a notice: at one sample in
    ten or twenty most models begin with the common class, and learn the other one later."""
    threshold_misprediction: float = 0.7
    """Share of the samples of a class that are predicted wrongly (AWS developer guide)."""
    max_others: float = 0.1
    """Share of all other classes that may be predicted wrongly (mean; each at most twice that) in evaluation,
    for a class that is ten times rarer to count as given up, too."""
    lightened: float = 2.0
    """Boosting: how many times less samples of a class weigh that is as many times rarer, or more."""
    samples: int = 500
    """Labels that are needed (AWS developer guide)."""
    min_class: int = 10
    """Labels of the rare class that are needed before its predictions are judged."""
    start_step: int = 100
    """First step at which predictions are judged (boosting: a tenth of it)."""
    argmax: bool | None = None
    """Whether predictions are scores per class; None finds out. Classic: False says that they are classes."""
    labels_regex: str = r".*labels"
    """Names of labels (AWS developer guide)."""
    predictions_regex: str = r"(?i)prediction|predicted_labels|logits"
    """Names of predictions."""
    classic: bool = False

    explains: ClassVar[tuple[str, ...]] = ("label_range",)
    _ADVICE: ClassVar = (
        "Weight the classes in the loss (CrossEntropyLoss(weight=...), scale_pos_weight).",
        "Draw rare classes more often (torch.utils.data.WeightedRandomSampler).",
        "Collect more samples of the rare class; judge by balanced accuracy or F1, not by accuracy.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("threshold_imbalance", "threshold_warning", "lightened", at_least=1)
        self.require("threshold_misprediction", "max_others", at_least=0, at_most=1)
        self.require("samples", "min_class", at_least=1)
        self.require("start_step", at_least=0)

    def needs(self) -> Needs:
        """Raw labels, with predictions."""
        return Needs(kinds=(*CLASS_KINDS, Kind.CHECK), steps=_STEPS, raw=True, evaluations=True)

    def not_applicable(self, run: RunView) -> str:
        """No labels, nor weights for them."""
        names = class_names(run, self.labels_regex, self.predictions_regex)
        told = not self.classic and (run.tensors(Kind.CHECK, regex=WEIGHTED) or tells_rest(run))
        return "" if names is not None or told else HOW_TO_RECORD

    def check(self, step: int, run: RunView) -> Finding | None:
        """Count the labels of the last recorded batches, and what was predicted for them."""
        names = class_names(run, self.labels_regex, self.predictions_regex)
        if not self.classic and (upside_down := self._upside_down(step, run)):
            return upside_down
        if names is None:
            return run.active if self.classic else self._of_loss(step, run)
        if self.classic:
            found = self._classes(run, names, Mode.EVAL, Mode.TRAIN)
            return self._classic(step, found, run)
        taught = self._classes(run, names, Mode.TRAIN, Mode.EVAL)
        if taught is None:
            return run.active
        if len(taught.labels) < self.samples:
            return None
        if (lightened := self._lightened(step, run, taught)) is not None:
            return lightened
        shown = None if taught.mode is Mode.EVAL else self._classes(run, names, Mode.EVAL)
        if shown is None and self._is_scarce(taught):
            taught = self._classes(run, names, taught.mode, samples=2 * self.samples) or taught
        return self._check(step, run, taught, shown or taught)

    def _of_loss(self, step: int, run: RunView) -> Finding | None:
        """What losses were given, where no predictions were recorded."""
        if step < self.start_step:
            return None
        for one in rest_of(run, batches=_STEPS):
            if one.samples < self.samples or one.others < self.min_class:
                continue
            if one.ratio < self.threshold_warning or one.right > 1.0 - self.threshold_misprediction:
                continue
            return self.finding(
                step,
                f"{one.others} of {one.samples} labels are not the commonest one; "
                f"{100 * (1 - one.right):.0f} % of them are predicted as something else.",
                severity=Severity.WARNING,
                tensor="labels",
                evidence={
                    "labels_count": one.others,
                    "samples_count": one.samples,
                    "largest_to_rest": round(one.ratio, 2),
                    "mispredicted_percent": round(100 * (1 - one.right), 2),
                },
                advice=self._ADVICE,
                view=ViewRef("rules", {}),
            )
        return run.active if not tells_rest(run) else None

    def _classes(self, run: RunView, names: Names, *modes: Mode, samples: int = 0) -> Classes | None:
        samples = samples or self.samples
        return classes_of(run, names, samples=samples, steps=_STEPS, argmax=self.argmax, modes=modes)

    def _is_scarce(self, found: Classes) -> bool:
        """Whether a rare class has fewer labels than are needed to judge it: further back there are more."""
        counts = np.bincount(found.labels)
        least = int(counts[counts > 0].min())
        return least < self.min_class and counts.max() > self.threshold_warning * least

    def _check(self, step: int, run: RunView, taught: Classes, shown: Classes) -> Finding | None:
        """Which classes are rare in what is learnt from, and what is predicted for them."""
        labels = np.bincount(taught.labels)
        present = np.flatnonzero(labels)
        rare, common = int(present[np.argmin(labels[present])]), int(present[np.argmax(labels[present])])
        if len(present) == 1:
            return self._alone(step, run, taught, common)
        ratios = {int(one): float(labels[common] / labels[one]) for one in present}
        few = [one for one, ratio in ratios.items() if ratio > self.threshold_imbalance]
        if not few:
            return None
        wrong = _wrong(shown)
        if len(present) >= _VOCABULARY and 4 * len(few) > len(present):
            return self._found(step, taught, wrong, rare, ratios[rare], severity=Severity.NOTICE)
        late = step >= (self.start_step / 10 if is_boosted(run) else self.start_step)
        lost = self._lost(shown, wrong, ratios) if late else None
        if lost is None:
            return self._found(step, taught, wrong, rare, ratios[rare], severity=Severity.NOTICE)
        return self._found(step, taught, wrong, lost, ratios[lost])

    def _lost(self, shown: Classes, wrong: dict[int, float], ratios: dict[int, float]) -> int | None:
        """A rare class that is told wrongly, where most of the frequent ones are told rightly."""
        rare = [one for one, ratio in ratios.items() if ratio > self.threshold_imbalance]
        frequent = [wrong.get(one, 1.0) for one in ratios if one not in rare]
        if float(np.mean(frequent)) >= 0.5:
            return None
        rarest = [one for one in rare if ratios[one] > self.threshold_warning]
        given_up = [one for one in rarest if self._is_given_up(shown, [one])]
        given_up = given_up or self._left_over(shown, wrong, rare)
        if given_up:
            return given_up[0]
        return max(rarest, key=lambda one: ratios[one]) if self._is_given_up(shown, rarest) else None

    def _left_over(self, shown: Classes, wrong: dict[int, float], few: list[int]) -> list[int]:
        """Rare classes that are told wrongly in evaluation once all others, two at least, are told rightly.

        Before that a model may learn them yet; where most of all others are right it is done.
        """
        others = [share for one, share in wrong.items() if one not in few]
        if shown.mode is not Mode.EVAL or len(others) < 2 or max(others) > 2 * self.max_others:
            return []
        if float(np.mean(others)) > self.max_others:
            return []
        enough = [one for one in few if (shown.labels == one).sum() >= 2 * self.min_class]
        return [one for one in enough if self._is_given_up(shown, [one])]

    def _is_given_up(self, shown: Classes, classes: list[int]) -> bool:
        """Whether these classes, taken together, are predicted wrongly: each may be too rare to be judged."""
        samples = np.isin(shown.labels, classes)
        if samples.sum() < self.min_class or not len(shown.predictions):
            return False
        wrong = shown.predictions[samples] != shown.labels[samples]
        return bool(wrong.mean() > self.threshold_misprediction)

    def _alone(self, step: int, run: RunView, taught: Classes, only: int) -> Finding | None:
        """One class, where evaluations have several."""
        held = [
            run.scalars(key.name, Mode.EVAL).values for key in run.tensors(Kind.CHECK, regex=_LABELS_SEEN)
        ]
        if taught.mode is Mode.EVAL or not any(len(one) >= 2 and (one > 1).all() for one in held):
            return None
        several = int(max(one.max() for one in held if len(one)))
        return self.finding(
            step,
            f"All of the last {len(taught.labels)} labels are of class {only}; evaluations have up to "
            f"{several} classes.",
            tensor="labels",
            evidence={"class": only, "labels_count": len(taught.labels), "evaluated_classes_count": several},
            advice=(
                "Look at how labels of training are made: a comparison that never holds, a column too far.",
                *self._ADVICE,
            ),
            view=ViewRef("rules", {}),
        )

    def _upside_down(self, step: int, run: RunView) -> Finding | None:
        """Weights that make common classes count more still."""
        found = weighted_by_count(run, self.samples)
        if found is None:
            return None
        return self.finding(
            step,
            f"{found.loss} weighs each class by how many samples there are of it, where weights should make "
            f"up for that: of {found.labels} labels the rarest class has {found.rarest}, the commonest "
            f"{found.commonest}.",
            tensor=f"loss/{found.loss}",
            evidence=found._asdict(),
            advice=("Turn the weights over: 1 / count of each class, as a rule.", *self._ADVICE),
            view=ViewRef("rules", {}),
        )

    def _lightened(self, step: int, run: RunView, taught: Classes) -> Finding | None:
        """A rare class of boosting that weighs less than the common one: the weight is upside down."""
        weight = weight_of_yes(run.info.hyperparameters)
        labels = np.bincount(taught.labels, minlength=2)
        if not is_boosted(run) or len(labels) != 2 or weight <= 0:
            return None
        rare = int(np.argmin(labels))
        ratio = float(labels.max() / max(1, labels.min()))
        times = weight if rare else 1.0 / weight
        if ratio < self.lightened or times > 1.0 / self.lightened:
            return None
        return self.finding(
            step,
            f"Samples of class {rare} weigh {times:.2g} times as much as others (scale_pos_weight is "
            f"{weight:.3g}), though there are {ratio:.1f} times as many of the other class: it is given up.",
            severity=Severity.WARNING,
            tensor="labels",
            evidence={"scale_pos_weight": weight, "class": rare, "largest_to_this": round(ratio, 2)},
            advice=("Turn it over: samples of class 0 for each of class 1, as a rule.", *self._ADVICE[1:]),
            view=ViewRef("rules", {}),
        )

    def _classic(self, step: int, found: Classes | None, run: RunView) -> Finding | None:
        if found is None:
            return run.active
        if len(found.labels) < self.samples:
            return None
        labels, wrong = np.bincount(found.labels), _wrong(found)
        present = np.flatnonzero(labels)
        rare = int(present[np.argmin(labels[present])])
        ratio = float(labels.max() / labels[rare])
        if ratio > self.threshold_imbalance:
            return self._found(step, found, wrong, rare, ratio)
        bad = [one for one, share in wrong.items() if share > self.threshold_misprediction]
        return self._found(step, found, wrong, bad[0], ratio) if bad else None

    def _found(  # noqa: PLR0917 - all of it goes into the finding
        self,
        step: int,
        found: Classes,
        wrong: dict[int, float],
        of: int,
        ratio: float,
        severity: Severity = Severity.WARNING,
    ) -> Finding:
        n = int((found.labels == of).sum())
        missed = f"; {100 * wrong[of]:.0f} % of them are predicted as something else" if of in wrong else ""
        return self.finding(
            step,
            f"Class {of} has {n} of {len(found.labels)} labels, the largest {ratio:.3g} times as many"
            f"{missed}.",
            severity=severity,
            tensor="labels",
            evidence={
                "class": of,
                "labels_count": n,
                "samples_count": len(found.labels),
                "largest_to_this": ratio,
                **({"mispredicted_percent": round(100 * wrong[of], 2)} if of in wrong else {}),
            },
            advice=self._ADVICE,
            view=ViewRef("rules", {}),
        )


def _wrong(found: Classes) -> dict[int, float]:
    """Share of each class that is predicted as something else; empty without predictions."""
    if not len(found.predictions):
        return {}
    return {
        int(one): float((found.predictions[found.labels == one] != one).mean())
        for one in np.unique(found.labels)
    }
