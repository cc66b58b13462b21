"""What is told of all samples but those of the commonest class, where losses were given single labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from tdbg_lab.rules.view import RunView

__all__ = ["Rest", "rest_of", "tells_rest"]

_REST = "^check/loss/[^/:]+/rest$"


class Rest(NamedTuple):
    """Samples of the last recorded batches."""

    loss: str
    """Name of the loss."""
    samples: int
    others: int
    """Samples that do not have the commonest label."""
    right: float
    """Share of those that is predicted rightly."""

    @property
    def ratio(self) -> float:
        """Samples of the commonest label, over those of all others together."""
        return (self.samples - self.others) / max(1, self.others)


def tells_rest(run: RunView) -> bool:
    """Whether any loss was given single labels."""
    return bool(run.tensors(Kind.CHECK, regex=_REST))


def rest_of(run: RunView, *, batches: int) -> list[Rest]:
    """Of each loss that was seen at the checked step: what is told in its last recorded batches."""
    found = []
    for key in run.tensors(Kind.CHECK, regex=_REST):
        base = key.name.removesuffix("rest")
        series = run.scalars(key.name)
        if not len(series.steps) or int(series.steps[-1]) != run.step:
            continue
        rest, hits, samples = (
            run.scalars(base + fact).values[-batches:] for fact in ("rest", "rest_hits", "samples")
        )
        if len(rest) == len(hits) == len(samples):
            others = float(rest.sum())
            right = float(rest @ hits) / others if others else 1.0
            found.append(Rest(base.split("/")[2], int(samples.sum()), int(others), right))
    return found
