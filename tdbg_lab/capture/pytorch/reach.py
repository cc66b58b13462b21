"""Which parameters a backward reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from torch.autograd.function import BackwardCFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

__all__ = ["Reach"]

_MOST_NODES = 1024
"""Nodes of a graph that are looked through for a known parameter, which mostly is among the first."""

_MOST_FOUND = 16
"""Parameters that are remembered."""


class Reach:
    """Looks for known parameters in the graphs of a training, which are much alike from step to step."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[int, ref[torch.Tensor]] = {}
        """Parameters that were found first, by their ids: of several optimizers that take turns, one each."""

    def may_be_known(self, start: Any, known: Callable[[], set[int]]) -> bool:
        """Whether a backward from this node reaches something known, or not all that it reaches is told.

        Parameters
        ----------
        known
            Tells the ids of what is known; not asked at nearly every step.
        """
        nodes, seen, ids = [start], {start}, None
        while nodes:  # depth first: the parameters of a layer are leaves of its own node
            node = nodes.pop()
            if node is None or isinstance(node, BackwardCFunction) or len(seen) > _MOST_NODES:
                return True
            leaf = getattr(node, "variable", None)
            if leaf is not None:
                found = self._found.get(id(leaf))
                if found is not None and found() is leaf:
                    return True
                ids = known() if ids is None else ids
                if id(leaf) in ids:
                    if len(self._found) >= _MOST_FOUND:
                        self._found.clear()
                    self._found[id(leaf)] = ref(leaf)
                    return True
            for following, _ in node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    nodes.append(following)
        return False
