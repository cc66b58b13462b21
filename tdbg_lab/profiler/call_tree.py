"""A tree of calls with the time spent in each: what a flame graph draws."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["OWN", "CallTree", "is_own"]

OWN = "tdbg-lab"
"""What stands for everything that capture does."""
_OWN = re.compile(r"(?:^|[\\/])tdbg_lab[\\/](?:stats[\\/]|store[\\/]|profiler[\\/]|capture[\\/]guard\.py)")

_MAX_NODES = 60_000
_MAX_NAME_CHARS = 200
_MOST_SHOWN = 2500
_LEAST_SHARE = 0.0005


def is_own(place: str) -> bool:
    """Whether a Python function, ``file(line): name``, is where capture begins to work.

    The program never runs within it.
    """
    return _OWN.search(place.partition("(")[0]) is not None


class CallTree:
    """Calls by the path that leads to them; node 0 is the root.

    A tree that has grown too large takes no new calls: their time stays with their caller.
    """

    def __init__(self) -> None:
        self.names = ["all"]
        self.parents = [-1]
        self.own = [0.0]
        """Time in the call itself, without the calls it makes."""
        self._child: dict[tuple[int, str], int] = {}

    def child(self, parent: int, name: str) -> int:
        """The node of a call of `name` from `parent`; made when there is room."""
        name = name[:_MAX_NAME_CHARS]
        found = self._child.get((parent, name))
        if found is None:
            if len(self.names) >= _MAX_NODES:
                return parent
            found = self._child[parent, name] = len(self.names)
            self.names.append(name)
            self.parents.append(parent)
            self.own.append(0.0)
        return found

    def add(self, node: int, time: float) -> None:
        """Spend time in a node; the unit is the caller's."""
        self.own[node] += time

    def totals(self) -> list[float]:
        """Time of each node with all it calls."""
        totals = list(self.own)
        for node in range(len(totals) - 1, 0, -1):  # children come after their parents
            totals[self.parents[node]] += totals[node]
        return totals

    def dump(self) -> dict[str, Any]:
        """As JSON: the nodes that take long enough to be seen, parents first.

        ``parent`` are places in the same lists, ``total`` and ``own`` have the unit of `add`.
        """
        totals = self.totals()
        least = max(totals[0] * _LEAST_SHARE, 1e-12)
        order = sorted(range(1, len(totals)), key=lambda node: -totals[node])[: _MOST_SHOWN - 1]
        shown = [0, *sorted(node for node in order if totals[node] >= least)]
        kept = set(shown)
        shown = [node for node in shown if self._is_reached(node, kept)]
        place = {node: index for index, node in enumerate(shown)}
        return {
            "name": [self.names[node] for node in shown],
            "parent": [place.get(self.parents[node], -1) for node in shown],
            "total": [round(totals[node], 3) for node in shown],
            "own": [round(self.own[node], 3) for node in shown],
        }

    def _is_reached(self, node: int, kept: set[int]) -> bool:
        while node:
            if node not in kept:
                return False
            node = self.parents[node]
        return True
