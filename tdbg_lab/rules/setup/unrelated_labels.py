"""Labels that have nothing to do with the predictions: shuffled against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, LossKind, Severity, ViewRef
from tdbg_lab.rules.base import Needs
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.losses.state import is_game, is_policy
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.schedule import has_ended, warming_up
from tdbg_lab.rules.setup.given import LossRule, facts_of, kind_of
from tdbg_lab.rules.setup.held_labels import held_labels
from tdbg_lab.rules.setup.held_numbers import held_numbers
from tdbg_lab.rules.setup.held_rows import held_rows, shares_of_gain
from tdbg_lab.rules.trend import trend_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.setup.held_rows import HeldRows
    from tdbg_lab.rules.view import RunView

__all__ = ["UnrelatedLabels"]

_ALIKE = ("constant_output", "layer_collapse", "tensor_variance")
_TOLD_APART = 20
"""Steps: what goes wrong at once is a cause."""
_STEPS = "weight_update_ratio"
_ENDED, _LEARNT_BY = "frozen_schedule", 100
"""Steps after which nothing has been learnt since there is nothing to learn, not since the rate ended."""
_ALL_ALIKE = 0.01
"""Share by which a loss of pairs may differ from the logarithm of how many there are: of 20 losses, each."""
_LEAST_PAIRS = 8


class _Level(NamedTuple):
    """How good predictions are over some steps, and how good they would be by chance: 0 to 1."""

    right: float
    chance: float


@rule("unrelated_labels", title="Labels unrelated to predictions")
@dataclass(frozen=True, kw_only=True)
class UnrelatedLabels(LossRule):
    """After many steps predictions go with the labels no more often than by chance, though the weights move.

    For classes, the share of right predictions is compared with what predictions as frequent as these would
    have by luck (Cohen's kappa is zero), and the loss with the entropy of the labels, which is what a model
    has that knows their frequencies and nothing else: one that predicts only the common class, yet is surer
    about some samples than about others, has learnt something. For numbers, it is their correlation; not for
    those that a program which learns by acting expects itself. Of
    embeddings, it is the class of the nearest other row that is right or not: untrained ones are better than
    chance already, and their loss falls while all of them shrink, so that it does not count.

    Boosted trees tell the rows they are grown on whatever the labels are. So theirs are judged by the rows of
    the evaluation, where predictions and labels of both were recorded: by the correlation of the two.

    Networks may learn labels by heart, too. So classifiers are judged by evaluations with the same loss as
    well: when they were never better than the frequencies of their labels, and right by chance. Those
    that tell numbers are, when these have no correlation with the labels in three evaluations in a row.

    A loss on pairs (InfoNCE) is that of a choice among all in the batch: the logarithm of how many there are,
    as long as no partner is told from the others.

    Labels that were shuffled against the inputs look like this. So does a model that cannot learn at all:
    findings on dead layers, gradients and the learning rate come first. Steps that are large for the weights
    do not, unless the loss rises: weights that have nothing to tell shrink to what noise makes of them. Nor
    do outputs and layers that told samples apart once, and by and by no longer do: with labels that have
    nothing to do with the inputs, that is what there is to learn.
    """

    patience: int = 20
    """Saved steps over which predictions are compared with chance."""
    least_steps: int = 180
    """Optimizer steps, warm-up not counted, before it is judged."""
    least_ended: int = 100
    """The same where the learning rate has come down to a tenth: little is to come."""
    calm: int = 100
    """Checked steps in a row, better than chance, that end a finding: luck comes and goes."""
    least_rounds: int = 10
    """Boosting rounds before trees are judged."""
    z: float = 2.0
    """Standard errors above chance from which predictions, or the loss, count as better than chance."""

    explains: ClassVar[tuple[str, ...]] = (*NOT_LEARNING, "class_imbalance", "overfit", "weight_update_ratio")
    _ADVICE: ClassVar = (
        "Check that inputs and labels are shuffled together, and come from the same rows.",
        "Look at some samples with their labels.",
        "Try to fit one batch: if that works, the labels are at fault, not the model.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("least_steps", "least_ended", "least_rounds", at_least=0)
        self.require("z", at_least=0)

    def needs(self) -> Needs:
        """Facts about losses, and the losses; predictions and labels of boosted trees."""
        return Needs(kinds=(Kind.CHECK, Kind.LOSS, Kind.CUSTOM), raw=True, evaluations=True)

    def not_applicable(self, run: RunView) -> str:
        """Without a loss that is watched, and without labels of boosted trees."""
        return "" if run.tensors(Kind.CUSTOM, regex="^labels$") else super().not_applicable(run)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Every loss that was seen at this step."""
        if step + 1 >= self.least_rounds and (rows := held_rows(run)) is not None:
            return self._of_rows(step, rows) if rows.tell_nothing and not _leaks(run) else None
        if step < self.least_ended or self._has_another_reason(run) or is_game(run):
            return None
        if step - warming_up(run).until_step < (self.least_ended if has_ended(run) else self.least_steps):
            return None
        for key in run.tensors(Kind.CHECK, regex="^check/loss/[^/:]+/(hits|correlation)$"):
            name = key.name.split("/")[2]
            if len(run.scalars(key.name).steps) < self.patience or not self._seen(run, key.name):
                continue
            numbers = key.name.endswith("correlation")
            if numbers and is_policy(run):
                continue
            level = self._of_numbers(run, name) if numbers else self._of_classes(run, name)
            lost = level is not None and (_is_embedding(run, name) or self._is_lost(run, name))
            if level is not None and lost and _moving(run, self.patience):
                return self._found(step, name, level, numbers=numbers)
        return self._of_pairs(step, run) or self._of_held(step, run)

    def _of_held(self, step: int, run: RunView) -> Finding | None:
        """A network that tells the rows it was trained on, and of rows held out nothing."""
        for name in (one.removeprefix("loss/") for one in run.losses()):
            found = held_labels(run, name, self.patience) or held_numbers(run, name, self.patience)
            if found is not None:
                return self.finding(
                    step,
                    f"After {step} steps {found.sentence}: labels may be shuffled against inputs, and learnt "
                    "by heart.",
                    tensor=f"loss/{name}",
                    evidence=found.evidence,
                    advice=self._ADVICE,
                    view=ViewRef("scalars", {"tensors": [f"loss/{name}"]}),
                )
        return None

    def _of_rows(self, step: int, rows: HeldRows) -> Finding:
        """Trees that tell the rows they were grown on, and of others nothing."""
        return self.finding(
            step,
            f"After {step + 1} rounds predictions go with the labels of the training rows (correlation "
            f"{rows.trained:.2f}), and not with those of {rows.rows} rows of the evaluation "
            f"({rows.held:.2f}): labels may be shuffled against inputs.",
            tensor="predictions",
            evidence={
                "correlation_training": round(rows.trained, 4),
                "correlation_evaluation": round(rows.held, 4),
                "rows_count": rows.rows,
            },
            advice=(
                "Check that rows of the evaluation are made as those of training are, column by column.",
                *self._ADVICE[:2],
            ),
            view=ViewRef("statistics", {"tensors": ["predictions"], "statistic": "std"}),
        )

    def _of_pairs(self, step: int, run: RunView) -> Finding | None:
        """A loss of the program's own that is the logarithm of the batch: any partner is as good as another.

        That is what a contrastive loss (InfoNCE) has that tells nothing; of two views in one batch, less one.
        """
        for name in run.losses():
            losses = run.scalars(name)
            samples = run.scalars(f"check/{name}/samples").values[-self.patience :]
            values = losses.values[-self.patience :]
            if len(samples) < self.patience or int(losses.steps[-1]) != step or samples[-1] < _LEAST_PAIRS:
                continue
            if kind_of(run, name.removeprefix("loss/")) is not LossKind.OTHER or np.ptp(samples):
                continue
            for others in (samples[-1], samples[-1] - 1):
                level = float(np.log(others))
                if (np.abs(values - level) < _ALL_ALIKE * level).all() and _moving(run, self.patience):
                    return self._alike(step, name, float(values.mean()), float(others))
        return None

    def _alike(self, step: int, name: str, loss: float, others: float) -> Finding:
        return self.finding(
            step,
            f"After {step} steps {name.removeprefix('loss/')} is {loss:.4g}, which is the logarithm of the "
            f"{others:.0f} samples it chooses from: partners may be shuffled against each other.",
            tensor=name,
            evidence={"loss": loss, "samples_count": others, "saved_steps_count": self.patience},
            advice=(
                "Check that both halves of each pair are shuffled together, and come from the same rows.",
                "Look at some pairs.",
                "Try to fit one batch: if that works, the pairs are at fault, not the model.",
            ),
            view=ViewRef("scalars", {"tensors": [name]}),
        )

    def _has_another_reason(self, run: RunView) -> bool:
        """Whether another rule has found why nothing is learnt."""
        known = {self.name, *self.explains} - ({_STEPS} if _rises(run) else set())
        return any(
            one.severity is not Severity.NOTICE and one.rule not in known and not _follows(one)
            for one in run.open
        )

    def _seen(self, run: RunView, name: str) -> bool:
        """Whether the fact is of this step; while a finding is open silence is no all-clear."""
        return run.active is not None or int(run.scalars(name).steps[-1]) == run.step

    def _last(self, run: RunView, name: str, fact: str) -> NDArray[np.float64]:
        return facts_of(run, name, fact)[-self.patience :]

    def _of_classes(self, run: RunView, name: str) -> _Level | None:
        """Share of right predictions, when it is no larger than by chance."""
        hits, chance = self._last(run, name, "hits"), self._last(run, name, "chance")
        samples, labels = self._last(run, name, "samples"), self._last(run, name, "labels")
        if not len(hits) == len(chance) == len(samples) == len(labels) or labels.mean() < 2:
            return None
        right, lucky = float(hits.mean()), float(chance.mean())
        error = float(np.sqrt(max(lucky * (1 - lucky), 1e-4) / samples.sum()))
        return _Level(right, lucky) if right < lucky + self.z * error and right < 0.95 else None

    def _of_numbers(self, run: RunView, name: str) -> _Level | None:
        """Correlation, when there is none. Targets that never vary have none by nature.

        A loss of the program's own may compare distances with who belongs together: the less, the more.
        """
        found, samples = self._last(run, name, "correlation"), self._last(run, name, "samples")
        least, most = self._last(run, name, "target_min"), self._last(run, name, "target_max")
        if not len(found) == len(samples) == len(least) == len(most) or not (least < most).all():
            return None
        error = 1.0 / float(np.sqrt(max(4.0, samples.sum())))
        mean = float(found.mean())
        if kind_of(run, name) is LossKind.OTHER:
            mean = abs(mean)
        return _Level(max(mean, 0.0), 0.0) if mean < self.z * error else None

    def _is_lost(self, run: RunView, name: str) -> bool:
        """Whether the loss does not fall, and is (where that is told) as high as without the inputs."""
        since = run.scalars(f"check/loss/{name}/samples").steps[-self.patience]
        loss = run.scalars(f"loss/{name}")
        if not len(loss.steps):
            return False
        values = loss.values[loss.steps >= since]
        if len(values) < 4 or not np.isfinite(values).all():
            return True
        half = len(values) // 2
        error = float(values.std()) / np.sqrt(half)
        if values[:half].mean() - values[half:].mean() > self.z * np.sqrt(2.0) * error:
            return False
        entropy = self._last(run, name, "entropy")
        if len(entropy) != self.patience or not kind_of(run, name).is_cross_entropy:
            return True
        both = float(np.hypot(error / np.sqrt(2.0), entropy.std() / np.sqrt(len(entropy))))
        return bool(values.mean() + self.z * both >= entropy.mean())

    def _found(self, step: int, name: str, level: _Level, *, numbers: bool) -> Finding:
        right, chance = 100 * level.right, 100 * level.chance
        if numbers:
            found = f"do not go with the labels (correlation {level.right:.2f})"
            evidence = {"correlation": round(level.right, 4)}
        else:
            found = f"are right no more often than by chance ({right:.1f} % against {chance:.1f} %)"
            evidence = {"right_percent": round(right, 2), "chance_percent": round(chance, 2)}
        return self.finding(
            step,
            f"After {step} steps the predictions given to {name} {found}: labels may be shuffled against "
            "inputs.",
            tensor=f"loss/{name}",
            evidence={**evidence, "saved_steps_count": self.patience},
            advice=self._ADVICE,
            view=ViewRef("scalars", {"tensors": [f"loss/{name}"]}),
        )


def _leaks(run: RunView) -> bool:
    """Whether trees rest on one feature: it is that one that is made otherwise in the evaluation."""
    shares = shares_of_gain(run)
    return shares is not None and float(shares.max()) > 0.5


def _follows(finding: Finding) -> bool:
    """Whether samples were told apart long enough for it to be what the labels taught.

    Or whether it is a schedule at its end, before which there was time to learn.
    """
    if finding.rule == _ENDED:
        return finding.step_first >= _LEARNT_BY
    return finding.rule in _ALIKE and finding.step_first >= _TOLD_APART


def _moving(run: RunView, last: int) -> bool:
    """Whether weights moved at the `last` saved steps, by the median of all: where update ratios are known.

    A schedule that has come to its end by now leaves what was learnt before it: then all steps count.
    """
    if any(one.rule == _ENDED for one in run.open):
        return True
    counted = slice(None) if has_ended(run) else slice(-last, None)
    ratios = [
        float(np.nanmax(values))
        for key in run.tensors(Kind.OPTIMIZER, regex=r"^optimizer/update_ratio/.*(weight|kernel)$")
        if len(values := run.scalars(key.name).values[counted]) and np.isfinite(values).any()
    ]
    return not ratios or float(np.median(ratios)) > 1e-5


def _is_embedding(run: RunView, name: str) -> bool:
    """Whether neighbours were compared, not predictions: then there is no entropy to compare a loss with."""
    hits, entropy = (facts_of(run, name, fact) for fact in ("hits", "entropy"))
    return len(hits) > 0 and not len(entropy)


def _rises(run: RunView) -> bool:
    """Whether some training loss is above where it began."""
    trends = [trend for name in run.losses() if (trend := trend_of(run.scalars(name).values)) is not None]
    return any(trend.now > trend.start + trend.noise for trend in trends)
