"""What one pass through a model of Keras showed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tdbg_lab.capture.keras.checks.modes import PassModes
    from tdbg_lab.capture.keras.naming import LayerSite
    from tdbg_lab.records import Kind, LossKind

__all__ = ["Compared", "EntryRole", "Output", "Pair", "Seen"]


class EntryRole(Enum):
    """What the first layer with weights does with its input."""

    WEIGHS = "weighs"
    NORMALISES = "normalises"
    EMBEDS = "embeds"


class Compared(NamedTuple):
    """What is known of one loss before there are values."""

    name: str
    """``total``, or of several losses the name of the output."""
    kind: LossKind
    ignored: float | None


class Pair(NamedTuple):
    """Predictions and labels of one loss, tensors of the backend."""

    loss: Compared
    prediction: Any
    target: Any


@dataclass(frozen=True, slots=True)
class Output:
    """One tensor that went into a layer or came out of it."""

    site: LayerSite
    kind: Kind
    """``activation`` or ``input``."""
    index: int
    """Over all calls of the layer in this pass, and all tensors of a call."""
    value: Any


@dataclass(slots=True)
class Seen:
    """What one pass showed, in order."""

    outputs: list[Output] = field(default_factory=list)
    gradients: list[tuple[int, Any]] = field(default_factory=list)
    """``id`` of the variable and its gradient, unscaled and clipped."""
    losses: list[Any] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    """What losses were computed of."""
    entry: Any = None
    """What the first layer with weights was called with."""
    role: EntryRole = EntryRole.WEIGHS
    """What that layer does with it."""
    modes: PassModes | None = None
    """What layers were told of training."""
