"""Losses that were divided by the number of backward passes of their step, as gradients are accumulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from tdbg_lab.capture.pytorch.losses import LossProbe

__all__ = ["Accumulation", "AddedUp", "divisor_of", "factor_of"]

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
    factor = factor_of(node)
    number = 1 / factor if factor else 0.0
    if not 1.5 < number <= _MOST or abs(number - round(number)) > _EXACT * number:
        return 0
    return 0 if round(number) == 2 and _is_sum_of_equals(node.next_functions[0][0]) else round(number)


def factor_of(node: Any) -> float | None:
    """The number that something was multiplied by, or divided by, last; None where it was not."""
    kind = type(node).__name__
    if kind not in {"DivBackward0", "MulBackward0"}:
        return None
    try:
        other = node._saved_other  # noqa: SLF001 - nothing else tells
    except RuntimeError:  # given back already, or changed since: its backward will say so
        return None
    if other is None or other.ndim or not other.is_cpu or other.requires_grad or other.is_complex():
        return None
    number = float(other)
    if kind == "MulBackward0":
        return number
    return 1 / number if number else None


def _is_sum_of_equals(node: Any) -> bool:
    """Whether two losses are added up, of which half is their mean.

    A sum may begin with a plain zero; and of two that are weighted differently, as the parts of a loss with
    smoothed labels, half is no mean.
    """
    if type(node).__name__ != "AddBackward0":
        return False
    added = [one for one, _ in node.next_functions if one is not None]
    return len(added) > 1 and len({factor_of(one) for one in added}) == 1


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

    def undivided(self, factor: float) -> float:
        """What losses are multiplied by that are recorded as they were before they were divided."""
        return factor * (self._passes or 1)

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


class AddedUp:
    """Losses that add up over the passes of a step, each divided by the number of labels in all of them.

    So they are where the model is called with ``num_items_in_batch``, and in whatever the trainer of
    transformers calls ``backward`` on.
    """

    __slots__ = ("factor", "held")

    def __init__(self) -> None:
        self.held: dict[LossProbe, torch.Tensor] = {}
        """What those of this step add up to so far."""
        self.factor = 1
        """What a loss is multiplied by once the model has returned it: the labels were those of all ranks."""

    def add(self, probe: LossProbe, loss: torch.Tensor) -> None:
        """One more pass."""
        held, loss = self.held.get(probe), loss.detach()
        self.held[probe] = loss if held is None else held + loss

    def end(self) -> None:
        """The step is over, or a gradient scaler leaves it out: record what they add up to."""
        held, self.held = self.held, {}
        for probe, total in held.items():
            probe.add(self.whole(total))

    def whole(self, loss: torch.Tensor) -> torch.Tensor:
        """What a model has returned as one that the mean over the ranks is the loss of."""
        return loss if self.factor == 1 else loss * self.factor
