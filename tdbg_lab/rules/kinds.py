"""Kinds of tensors that were recorded at a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tdbg_lab.records import Kind

__all__ = ["NOTHING", "Kinds"]


class Kinds(NamedTuple):
    """What there is to look at, by kind."""

    judged: frozenset[Kind] = frozenset()
    """In the modes that rules judge by: train where there is any."""
    of_all: frozenset[Kind] = frozenset()
    """In whatever mode."""


NOTHING = Kinds()
