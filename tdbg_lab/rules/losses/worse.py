"""Predictions that are worse than none: the loss is above what it would be without looking at the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tdbg_lab.records import LossKind
from tdbg_lab.rules.losses.state import is_game
from tdbg_lab.rules.middle import median
from tdbg_lab.rules.setup.given import facts_of, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from tdbg_lab.rules.view import RunView

__all__ = ["Worse", "worse_than_nothing"]

_LEAST_ENTROPY = 0.1
"""Entropy, nats, below which labels are nearly all the same."""
_HARDLY, _TOLD = 0.5, 0.3
"""Correlation up to which predictions hardly go with numbers; of classes, share of what chance leaves."""
_SUMMED = 0.5
"""First loss, over the entropy times the samples, from which it is a sum over them and no mean."""
_SOON = 2.0
"""Times as many saved steps as there were so far, within which what falls is to have come down."""


class Worse(NamedTuple):
    """What predictions are worse than, in words and numbers."""

    sentence: str
    evidence: Mapping[str, float]


def worse_than_nothing(run: RunView, loss: str, points: int, times: float) -> Worse | None:
    """Compare a loss with that of a model that knows the labels and no inputs; None where it is not worse.

    A cross-entropy is the entropy of the labels then. Zeros for numbers are as far from them as these are
    large; predictions that are larger, and hardly go with them, are farther.

    Parameters
    ----------
    run
        What was recorded.
    loss
        Name of a loss whose predictions and labels were seen: ``"loss/MSELoss"``.
    points
        Saved steps at the end that count: all of them must be worse.
    times
        What they must be over what knows nothing.
    """
    name = loss.removeprefix("loss/")
    kind = kind_of(run, name)
    if is_game(run):
        return None
    if kind.is_cross_entropy:
        return _of_classes(run, loss, name, points, times)
    if kind is not LossKind.DISTANCE:
        return None
    told, wanted, going = (
        facts_of(run, name, fact)[-points:] for fact in ("prediction_size", "target_size", "correlation")
    )
    if not len(told) == len(wanted) == len(going) == points or not (wanted > 0).all():
        return None
    sizes = told / wanted
    if not (float(sizes.min()) > times and float(going.max()) < _HARDLY):
        return None
    if _comes_down_soon(sizes, len(facts_of(run, name, "prediction_size"))):
        return None
    return Worse(
        f"is given predictions {median(sizes):.3g} times as large as the labels, with which they hardly "
        f"go (correlation {median(going):.2f}): to tell zero would be better",
        {
            "prediction_size_over_label_size": float(median(sizes)),
            "correlation": float(median(going)),
            "saved_steps_count": points,
        },
    )


def _comes_down_soon(sizes: np.ndarray, passed: int) -> bool:
    """Whether predictions become smaller at a pace that makes them as small as the labels before long.

    So do those of a polynomial whose terms begin far apart, and which is learnt all the same.
    """
    half = len(sizes) // 2
    pace = float(median(sizes[:half]) - median(sizes[-half:])) / (len(sizes) - half) if half else 0.0
    return pace > 0 and float(median(sizes[-half:])) - 1.0 < _SOON * passed * pace


def _of_classes(run: RunView, loss: str, name: str, points: int, times: float) -> Worse | None:
    """Of losses that are means and weigh all samples alike: only these are an entropy without the inputs."""
    losses = run.scalars(loss).values
    entropy, hits, chance, samples = (
        facts_of(run, name, fact)[-points:] for fact in ("entropy", "hits", "chance", "samples")
    )
    if not len(losses[-points:]) == len(entropy) == len(hits) == len(chance) == len(samples) == points:
        return None
    nothing = max(float(median(entropy)), _LEAST_ENTROPY)
    summed = losses[0] > _SUMMED * median(samples) * nothing
    told = median(hits) - median(chance) > _TOLD * (1.0 - median(chance))
    if summed or told or len(facts_of(run, name, "weight_slope")) or _are_places(run, name, points):
        return None
    if not float(losses[-points:].min()) > times * nothing:
        return None
    now = float(median(losses[-points:]))
    return Worse(
        f"is {now:.4g}, where knowing how frequent each label is, and no inputs, makes it {nothing:.3g}",
        {"loss_now": now, "loss_of_knowing_nothing": nothing, "saved_steps_count": points},
    )


def _are_places(run: RunView, name: str, points: int) -> bool:
    """Whether all labels of a batch are one: the place of the right one among rows drawn at random.

    So do losses of contrast that keep a queue of others (He et al., 2020, "Momentum Contrast"). What knows no
    inputs knows no rows either.
    """
    labels = facts_of(run, name, "labels")[-points:]
    return len(labels) > 0 and bool((labels == 1).all())
