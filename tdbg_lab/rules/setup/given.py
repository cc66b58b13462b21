"""What losses are given, as rules read it: facts ``check/loss/<class>/...`` of the last saved steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, LossKind, Mode, OutputEnd
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.memo import remembered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.layout import Layout
    from tdbg_lab.rules.view import RunView

__all__ = ["Given", "LossRule", "facts_of", "kind_of", "loss_tensor", "spoken"]

_ENDS = frozenset(float(one) for one in OutputEnd)
_KINDS = frozenset(float(one) for one in LossKind)
_FIRST = "^check/loss/[^/]+/prediction_max$"


class Given(NamedTuple):
    """What one loss was given at one saved step."""

    step: int
    name: str
    """Class of the loss."""
    facts: Mapping[str, float]

    @property
    def kind(self) -> LossKind:
        """What it compares."""
        return _kind(self.name, self.facts.get("kind"))

    @property
    def end(self) -> OutputEnd:
        """The function that the predictions come from, as far as that is known for certain."""
        number = self.facts.get("end", 0.0)
        return OutputEnd(int(number)) if number in _ENDS else OutputEnd.OTHER

    def number(self, fact: str, default: float = float("nan")) -> float:
        """A single number, such as ``hits`` or ``prediction_max``."""
        return self.facts.get(fact, default)


@dataclass(frozen=True, kw_only=True)
class LossRule(Rule):
    """A rule on what a loss is given: predictions and labels, at saved steps."""

    patience: int = 3
    """Saved steps in a row."""

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("patience", at_least=1)

    def needs(self) -> Needs:
        """Facts about losses."""
        return Needs(kinds=(Kind.CHECK,), regex="^check/loss/")

    def not_applicable(self, run: RunView) -> str:
        """Without a loss module that is watched."""
        if run.tensors(Kind.CHECK, regex="^check/loss/"):
            return ""
        return "What the loss is given was not seen so far: give attach() the loss module (loss=...)."

    def given(self, run: RunView, *, last: int | None = None) -> dict[str, list[Given]]:
        """What each loss was given at the `last` saved steps of training (`patience` if it is not said).

        Losses seen less often are left out.

        At steps at which nothing was saved, only while a finding is open: silence is not an all-clear.
        """
        found: dict[str, list[Given]] = {}
        last = last or self.patience
        for key in run.tensors(Kind.CHECK, regex=_FIRST):
            name = key.name.split("/")[2]
            steps = run.scalars(key.name).steps[-last:]
            if len(steps) == last and (steps[-1] == run.step or run.active is not None):
                found[name] = [Given(step, name, _facts_at(run, name, step)) for step in steps.tolist()]
        return found


def spoken(name: str) -> str:
    """The loss of this name in a sentence; Keras's only one has none."""
    loss, _, function = name.partition(":")
    if function:
        return f"{function.partition(':')[0]} in {loss}"
    return "The loss" if name == "total" else name


def loss_tensor(run: RunView, name: str) -> str:
    """The tensor of this loss; where one of several was not recorded by itself, that of all together.

    That of a function within a loss, ``Own:mse_loss``, is the loss.
    """
    own, recorded = f"loss/{name.partition(':')[0]}", run.losses()
    return own if own in recorded or len(recorded) != 1 else recorded[0]


def facts_of(run: RunView, name: str, fact: str, mode: Mode = Mode.TRAIN) -> NDArray[np.float64]:
    """A fact about what the loss of this name was given, at all saved steps."""
    return run.scalars(f"check/loss/{name}/{fact}", mode).values


def kind_of(run: RunView, name: str) -> LossKind:
    """What the loss of this name compares."""
    values = facts_of(run, name, "kind")
    return _kind(name, float(values[-1]) if len(values) else None)


def _kind(name: str, number: float | None) -> LossKind:
    if number is None or number not in _KINDS:
        return LossKind.of_class(name)  # runs of earlier versions do not say more
    return LossKind(int(number))


def _facts_at(run: RunView, name: str, step: int) -> Mapping[str, float]:
    frame = run.at(step)
    if frame is not None:
        return _facts(frame, name)
    facts, _ = _rows(run.seen, name)  # scalars are kept for longer than frames
    found = {fact: run.value(f"check/loss/{name}/{fact}", step) for fact in facts}
    return {fact: value for fact, value in found.items() if value is not None}


@remembered
def _facts(frame: Frame, name: str) -> Mapping[str, float]:
    facts, rows = _rows(frame.layout, name)
    return dict(zip(facts, frame.scalar_values[rows].tolist(), strict=True))


@remembered
def _rows(layout: Layout, name: str) -> tuple[list[str], NDArray[np.int64]]:
    """Facts about the loss of this name, and where they stand."""
    start = f"check/loss/{name}/"
    of_it = [row for row in layout.rows((Kind.CHECK,)).tolist() if layout.keys[row].name.startswith(start)]
    return [layout.keys[row].name.removeprefix(start) for row in of_it], np.array(of_it, np.int64)
