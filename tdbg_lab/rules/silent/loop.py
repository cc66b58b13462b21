"""Facts about a training loop, as rules read them: ``check/...``, each valid until the next is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Kind
from tdbg_lab.rules.base import Needs, Rule

if TYPE_CHECKING:
    from tdbg_lab.records import TensorKey
    from tdbg_lab.rules.view import RunView

__all__ = ["LoopRule", "fact", "facts_below", "in_order", "lasting", "noted", "worst"]


@dataclass(frozen=True, kw_only=True)
class LoopRule(Rule):
    """A rule on what the training loop does, not on what its tensors look like."""

    def needs(self) -> Needs:
        """Facts about the loop; it is asked at every step with a loss, too, for facts last."""
        return Needs(kinds=(Kind.CHECK, Kind.LOSS))

    def not_applicable(self, run: RunView) -> str:
        """Without facts about the loop."""
        if run.tensors(Kind.CHECK):
            return ""
        return "No facts about the training loop were recorded: PyTorch and Keras give them, with checks on."


def noted(run: RunView, name: str) -> bool:
    """Whether ``check/<name>`` was ever written."""
    return len(run.scalars(f"check/{name}").values) > 0


def fact(run: RunView, name: str) -> float:
    """What ``check/<name>`` is at the checked step; 0.0 where it was never written."""
    values = run.scalars(f"check/{name}").values
    return float(values[-1]) if len(values) else 0.0


def worst(run: RunView, name: str) -> float:
    """Like `fact`, the largest of what was written within a step: micro-steps and ranks are averaged else."""
    row = run.frame().get(f"check/{name}")
    return fact(run, name) if row is None else float(np.nanmax([row.max, fact(run, name)]))


def lasting(run: RunView, name: str) -> int:
    """Steps in a row, the checked one included, at which ``check/<name>`` was not zero."""
    series = run.scalars(f"check/{name}")
    zero = np.flatnonzero(series.values == 0)
    after = int(zero[-1]) + 1 if len(zero) else 0
    return run.step - int(series.steps[after]) + 1 if after < len(series.steps) else 0


def in_order(run: RunView, names: list[str]) -> list[str]:
    """Names of parameters in the order in which their layers are called, weights before biases."""
    place = {key.module: index for index, key in enumerate(run.tensors(Kind.ACTIVATION))}
    return sorted(
        names,
        key=lambda name: (place.get(name.rpartition(".")[0], len(place)), "weight" not in name),
    )


def facts_below(run: RunView, prefix: str) -> list[tuple[TensorKey, str, float]]:
    """Key, name and value of all ``check/<prefix>/<name>`` that are not zero, in the order of the model."""
    start = f"check/{prefix}/"
    found = []
    for key in run.tensors(Kind.CHECK, regex=f"^{start}"):
        value = fact(run, key.name.removeprefix("check/"))
        if value:
            found.append((key, key.name.removeprefix(start), value))
    return found
