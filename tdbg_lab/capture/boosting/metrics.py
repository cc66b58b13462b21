"""What a metric is: a loss or not, of the training data or not."""

from __future__ import annotations

import re

from tdbg_lab.capture.boosting.model import Metric
from tdbg_lab.records import Kind, Mode

__all__ = ["is_training_set", "metric"]

_TRAINING = re.compile(r"(d?train(ing)?|learn(ing)?)([_ .].*)?", re.IGNORECASE)
_MORE_IS_BETTER = re.compile(
    r"auc|aucpr|auc_mu|map|ndcg|pre|ams|acc|accuracy|f1|f_?beta|r2|score|precision|recall|average_precision"
    r"|interval-regression-accuracy",
    re.IGNORECASE,
)


def is_training_set(name: str) -> bool:
    """Whether an evaluation set is the training data, as far as its name says."""
    return _TRAINING.fullmatch(name) is not None


def metric(
    dataset: str, name: str, value: float, *, train: bool | None = None, higher_is_better: bool | None = None
) -> Metric:
    """A metric of an evaluation set.

    Parameters
    ----------
    train
        Whether the set is the training data; None leaves it to its name.
    higher_is_better
        None leaves it to the name of the metric, whose suffix ``@5`` does not count.
    """
    if higher_is_better is None:
        plain = re.split(r"[@:]", name)[0]
        words = {plain, *re.split(r"[_\-]", plain)}
        higher_is_better = any(_MORE_IS_BETTER.fullmatch(word) for word in words)
    of_training = is_training_set(dataset) if train is None else train
    return Metric(
        f"{dataset}-{name}",
        Kind.SCALAR if higher_is_better else Kind.LOSS,
        Mode.TRAIN if of_training else Mode.EVAL,
        float(value),
    )
