"""What a rule says it needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from tdbg_lab.records import TensorKey

__all__ = ["Needs"]

_COLLECTIONS = {
    Kind.WEIGHT: "weights",
    Kind.BIAS: "biases",
    Kind.GRADIENT: "gradients",
    Kind.ACTIVATION: "activations",
    Kind.INPUT: "inputs",
    Kind.BUFFER: "buffers",
}
"""Collections that capture these kinds."""
_WORDS = {
    Kind.BIAS: "biases",
    Kind.LOSS: "losses",
    Kind.OPTIMIZER: "numbers of the optimizer",
    Kind.CUSTOM: "recorded tensors",
    Kind.COST: "costs",
    Kind.CHECK: "facts about the loop",
}
"""Kinds in the plural where an s does not make it."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a rule reads. A rule is *not applicable* to a run that has none of it."""

    kinds: tuple[Kind, ...] = ()
    """Any one of these kinds is enough; ``()`` for whatever is there."""
    regex: str | None = None
    """Names that count, as a regular expression to be found in them."""
    collections: tuple[str, ...] = ()
    """Tensors of these collections count too, whatever their kind and name are."""
    steps: int = 1
    """Recorded steps the rule looks back on, the checked one included. Scalars are kept for long anyway."""
    evaluations: bool = False
    """Steps of which only evaluations were recorded count, too: the last one often is after the training."""
    per_rank: bool = False
    """What each rank wrote is wanted by itself, too: `RunView.rank_frames`."""
    raw: bool = False
    """Raw values are wanted where they were saved: `RunView.raw`."""
    activity: bool = False
    """What training and its machines did is wanted: `RunView.samples`, `RunView.phase_times`, ..."""

    def match(self, key: TensorKey) -> bool:
        """Whether a tensor is one of those that are needed."""
        if self.collections and not set(self.collections).isdisjoint(key.collections):
            return True
        if self.kinds and key.kind not in self.kinds:
            return False
        if self.regex is None:
            return bool(self.kinds) or not self.collections
        return re.search(self.regex, key.name) is not None

    @property
    def hint(self) -> str:
        """How to have it recorded, to be put behind a sentence; ``""`` when nothing in particular helps."""
        name = next((_COLLECTIONS[kind] for kind in self.kinds if kind in _COLLECTIONS), "")
        return f"; capture them with attach(collections={{{name!r}: True}})" if name else ""

    def __str__(self) -> str:
        wanted = [_WORDS.get(kind, f"{kind}s") for kind in self.kinds]
        wanted += [f"collection {name}" for name in self.collections]
        text = " or ".join(wanted) or "tensors"
        return text if self.regex is None else f"{text} named like {self.regex!r}"
