"""Losses that were divided by the number of backward passes of their step, as gradients are accumulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["Accumulation", "divisor_of"]

_MOST = 4096
"""Passes of a step."""
_EXACT = 1e-6
"""Part by which a factor may differ from that of a whole number."""
_STEPS = 3
"""The first steps, in which it is found out."""


def divisor_of(node: Any) -> int:
    """The whole number above one by which a loss was divided last, ``loss / 8`` or ``loss * 0.125``; else 0.

    Parameters
    ----------
    node
        Its ``grad_fn``, before the backward.
    """
    kind = type(node).__name__
    if kind not in {"DivBackward0", "MulBackward0"}:
        return 0
    try:
        other = node._saved_other  # noqa: SLF001 - nothing else tells
    except RuntimeError:  # given back already, or changed since: its backward will say so
        return 0
    if other is None or other.ndim or not other.is_cpu or other.requires_grad or other.is_complex():
        return 0
    number = float(other)
    if kind == "MulBackward0":
        number = 1 / number if number else 0.0
    if not 1.5 < number <= _MOST or abs(number - round(number)) > _EXACT * number:
        return 0
    return 0 if number == 2 and _is_sum(node.next_functions[0][0]) else round(number)


def _is_sum(node: Any) -> bool:
    """Whether two losses are added up, of which half is their mean; a sum may begin with a plain zero."""
    added = type(node).__name__ == "AddBackward0"
    return added and sum(one is not None for one, _ in node.next_functions) > 1


class Accumulation:
    """Whether what ``backward`` is called on is divided by how often it is called before a step.

    Known at the end of a step: until then the losses of the first steps are held.
    """

    __slots__ = ("_divisor", "_passes", "_steps_left", "held")

    def __init__(self) -> None:
        self.held: list[torch.Tensor] = []
        """Losses of the passes of this step, detached, as long as it is not known what they are parts of."""
        self._divisor = 0
        """Of the losses held; 0 when they differ."""
        self._passes = 0
        """Passes of a step, by whose number losses are divided; 0 as long as there are none."""
        self._steps_left = _STEPS

    def take(self, loss: torch.Tensor, divisor: int) -> torch.Tensor | None:
        """The loss as it was before it was divided; None when it is held.

        Parameters
        ----------
        divisor
            See `divisor_of`.
        """
        if divisor and divisor == self._passes:
            return loss * divisor
        if self._passes or not self._steps_left or (not divisor and not self.held):
            return loss
        self._divisor = divisor if not self.held or divisor == self._divisor else 0
        self.held.append(loss)
        return None

    def end(self) -> torch.Tensor | None:
        """The step is over, or a gradient scaler leaves it out: the mean of the losses held, if any."""
        held, self.held = self.held, []
        if not held:
            return None
        self._steps_left -= 1
        total = sum(held[1:], start=held[0])
        if len(held) == self._divisor:
            self._passes = self._divisor
            return total
        return total / len(held)
