"""Layers of a library's class that make an output which the program has no use for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.capture.origin import of_program

if TYPE_CHECKING:
    from torch import nn

__all__ = ["is_left_over"]


def is_left_over(model: nn.Module, name: str) -> bool:
    """Whether a parameter without a gradient is of a class of a library of which other parts get one.

    So it is with the pooler of a BERT whose last hidden states are taken. What cuts a layer off is between it
    and the loss; where the program had done that, nothing of the class would get a gradient.
    """
    inside: list[nn.Module] = [model]
    for part in name.split(".")[:-1]:
        inner = getattr(inside[-1], part, None)
        if inner is None:
            return False
        inside.append(inner)
    around = None
    for module in reversed(inside):
        if of_program(type(module)):
            break
        if not type(module).__module__.startswith("torch."):
            around = module
    return around is not None and any(one.grad is not None for one in around.parameters())
