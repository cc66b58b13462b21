"""What is told of all samples but those of the commonest class, where losses were given single labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tdbg_lab.records import Kind, Mode

if TYPE_CHECKING:
    from tdbg_lab.rules.view import RunView

__all__ = ["Rest", "rest_of", "tells_rest"]

_LEAST_HELD = 20
"""Of so many the share that is right has a standard error of a tenth."""
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
    """Whether any loss of Keras was given single labels; loops of PyTorch record their predictions."""
    return run.info.framework == "keras" and bool(run.tensors(Kind.CHECK, regex=_REST))


def rest_of(run: RunView, *, batches: int) -> list[Rest]:
    """Of each loss that was seen at the checked step: what is told of the labels of its last batches.

    How many there are is that of training; how many are right is that of the last evaluation, where there was
    one with `_LEAST_HELD` of them at least.
    """
    found = []
    for key in run.tensors(Kind.CHECK, regex=_REST):
        base = key.name.removesuffix("rest")
        steps = run.scalars(key.name).steps
        if not len(steps) or int(steps[-1]) != run.step:
            continue
        samples = int(run.scalars(f"{base}samples").values[-batches:].sum())
        others, right = _told(run, base, Mode.TRAIN, batches)
        held, right_held = _told(run, base, Mode.EVAL, 1)
        found.append(Rest(base.split("/")[2], samples, others, right_held if held >= _LEAST_HELD else right))
    return found


def _told(run: RunView, base: str, mode: Mode, batches: int) -> tuple[int, float]:
    """Samples with another label than the commonest, and the share of them that is right."""
    rest, hits = (run.scalars(base + fact, mode).values[-batches:] for fact in ("rest", "rest_hits"))
    count = float(rest.sum())
    return int(count), float(rest @ hits) / count if count and len(rest) == len(hits) else 1.0
