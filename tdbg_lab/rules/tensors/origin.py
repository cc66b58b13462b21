"""Where values that are not finite came from: the first tensor that has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tdbg_lab.records import TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.view import RunView

__all__ = ["NO_LAYERS", "Origin", "find_origin", "not_finite"]

NO_LAYERS = "No layers were recorded at this step: save every step to see where it begins."


@dataclass(frozen=True, slots=True)
class Origin:
    """The first tensor that is not finite, and how we know."""

    key: TensorKey
    how: str
    """``input``, ``activation``, ``loss``, ``gradient`` or ``weight``."""
    affected: int
    """Tensors of the step that are not finite."""
    sentence: str
    advice: tuple[str, ...] = ()


def not_finite(frame: Frame, *kinds: Kind) -> NDArray[np.int64]:
    """Rows of these kinds that hold NaN or an infinity, in order."""
    rows = frame.rows(*kinds)
    block = frame.block
    bad = block.nan_count[rows] + block.pos_inf_count[rows] + block.neg_inf_count[rows] > 0
    return rows[bad]


def find_origin(run: RunView, frame: Frame) -> Origin:
    """Find where it began at a step that has something that is not finite.

    Outputs come in the order of the forward pass, so the first bad output after a good one is
    where it began - also when the weights, written after the update, are bad already everywhere.
    Gradients travel backward: the last bad one is where it began. Outputs that are bad from the first
    layer on leave the weights: loss and gradients follow from them.
    """
    affected = len(not_finite(frame))
    is_forward = len(not_finite(frame, Kind.ACTIVATION)) > 0
    for find in (_from_forward,) if is_forward else (_from_loss, _from_gradients):
        origin = find(frame, affected)
        if origin is not None:
            return origin
    return _from_weights(run, frame, affected)


def _from_forward(frame: Frame, affected: int) -> Origin | None:
    inputs = not_finite(frame, Kind.INPUT)
    outputs = not_finite(frame, Kind.ACTIVATION)
    if not len(outputs):
        return None
    outputs = _masks_last(frame, outputs)
    first = frame.keys[outputs[0]]
    if len(inputs) and not _clean_before(frame, int(outputs[0])):
        return Origin(
            frame.keys[inputs[0]],
            "input",
            affected,
            "It is in what goes into the first layer: the data.",
            ("Look at the data of this batch: missing values, a division by a zero standard deviation.",),
        )
    if _clean_before(frame, int(outputs[0])):
        return Origin(
            first,
            "activation",
            affected,
            f"It begins at {first.module or first.name}, or between it and "
            f"{_name_before(frame, int(outputs[0]))}: what comes before is finite.",
        )
    weights = not_finite(frame, Kind.WEIGHT, Kind.BIAS)
    if len(weights):
        return None  # bad from the first layer on: the weights were bad before
    return Origin(
        first,
        "activation",
        affected,
        f"It begins at the first recorded layer, {first.module or first.name}, or in the data.",
        ("Look at the data of this batch: missing values, a division by a zero standard deviation.",),
    )


def _masks_last(frame: Frame, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows from the first on that cannot be a mask, which is minus infinity; all, unless there is one."""
    block = frame.block
    surely = rows[(block.nan_count[rows] > 0) | (block.pos_inf_count[rows] > 0)]
    return surely if len(surely) else rows


def _clean_before(frame: Frame, row: int) -> bool:
    outputs = frame.rows(Kind.ACTIVATION)
    return bool(len(outputs)) and int(outputs[0]) < row


def _name_before(frame: Frame, row: int) -> str:
    outputs = frame.rows(Kind.ACTIVATION)
    return frame.keys[int(outputs[outputs < row][-1])].name


def _from_loss(frame: Frame, affected: int) -> Origin | None:
    losses = not_finite(frame, Kind.LOSS)
    if not len(losses) or not len(frame.rows(Kind.ACTIVATION)):
        return None
    return Origin(
        frame.keys[losses[0]],
        "loss",
        affected,
        "Every recorded layer is finite: it begins in the loss itself.",
        ("Use a loss on logits (CrossEntropyLoss, BCEWithLogitsLoss), not a logarithm of probabilities.",),
    )


def _from_gradients(frame: Frame, affected: int) -> Origin | None:
    bad = not_finite(frame, Kind.GRADIENT)
    every = frame.rows(Kind.GRADIENT)
    if not len(bad) or len(bad) == len(every):
        return None
    key = frame.keys[bad[-1]]
    return Origin(key, "gradient", affected, f"It begins in the backward pass at {key.module or key.name}.")


def _from_weights(run: RunView, frame: Frame, affected: int) -> Origin:
    for kinds in ((Kind.WEIGHT, Kind.BIAS), (Kind.GRADIENT,), (Kind.LOSS, Kind.SCALAR), ()):
        bad = not_finite(frame, *kinds)
        every = frame.rows(*kinds)
        if len(bad):
            break
    else:
        known = run.tensors(Kind.LOSS, Kind.SCALAR) or run.tensors()
        return Origin(known[0], "unknown", affected, "")
    key = frame.keys[bad[0]]
    how = "weight" if key.kind in (Kind.WEIGHT, Kind.BIAS) else str(key.kind)
    if key.kind in (Kind.LOSS, Kind.SCALAR):
        sentence = NO_LAYERS
    elif len(bad) == len(every) > 1:
        sentence = (
            f"All {len(every)} recorded {how}s are hit at once: save every step to see where it begins."
        )
    else:
        sentence = f"{len(bad)} of {len(every)} recorded {how}s are hit."
    return Origin(key, how, affected, sentence)
