"""Weights that a loss has for its classes, against how many there are of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tdbg_lab.records import Kind
from tdbg_lab.rules.silent.loop import fact

if TYPE_CHECKING:
    from tdbg_lab.rules.view import RunView

__all__ = ["WEIGHTED", "Weighted", "weighted_by_count"]

WEIGHTED = "^check/loss/[^/]+/weight_slope$"
"""Names of the facts that are there where a loss has weights for its classes."""
_LEAST_RATIO = 3.0
"""Commonest over rarest class from which weights for the classes have something to make up for."""
_LEAST_CLASS = 10
"""Labels of the rarest class that are needed."""
_SLOPE = 0.8, 1.25
"""Power of the counts that weights may be, to be the counts themselves: those of one class in ten, counted in
500 labels, are a seventh of it off, and its logarithm a sixteenth."""
_TEMPERED = 0.4, 1.5
"""The same of several classes, whose weights do not go with counts by chance: of counts that are tempered."""
_SEVERAL = 4
_LEAST_FIT = 0.95
"""Correlation of the logarithms of weights and counts that is no chance among a few classes."""


class Weighted(NamedTuple):
    """A loss that weighs classes by how many there are."""

    loss: str
    """Its name, ``CrossEntropyLoss``."""
    labels: int
    rarest: int
    commonest: int


def weighted_by_count(run: RunView, samples: int) -> Weighted | None:
    """A loss whose weights are about the counts of the classes, where they should make up for them.

    Parameters
    ----------
    run
        What was recorded.
    samples
        Labels that must have been seen.
    """
    for key in run.tensors(Kind.CHECK, regex=WEIGHTED):
        loss = key.name.split("/")[2]
        labels, rarest, commonest = (
            int(fact(run, f"loss/{loss}/weighted_{one}")) for one in ("labels", "rarest", "commonest")
        )
        if labels < samples or rarest < _LEAST_CLASS or commonest < _LEAST_RATIO * rarest:
            continue
        slope, fit = (fact(run, f"loss/{loss}/{one}") for one in ("weight_slope", "weight_fit"))
        several = fact(run, f"loss/{loss}/classes") >= _SEVERAL
        least, most = _TEMPERED if several else _SLOPE
        if least <= slope <= most and fit >= _LEAST_FIT:
            return Weighted(loss, labels, rarest, commonest)
    return None
