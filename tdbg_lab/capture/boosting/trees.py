"""A tree as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["LEAF", "Tree", "columns", "grown"]

LEAF = -1
"""Stands for the feature and the children of a leaf."""


@dataclass(frozen=True, slots=True)
class Tree:
    """One tree, node by node, breadth first; ``M`` nodes, node 0 is the root."""

    group: int
    """The class whose margin it adds to."""
    feature: NDArray[np.int64]
    """Index of the feature a node splits on, `LEAF` for a leaf. Shape ``(M,)``, as all of them."""
    split: NDArray[np.float64]
    """A row goes to `yes` when its value is below (LightGBM: not above); 0 for leaves and for
    splits by category."""
    yes: NDArray[np.int64]
    no: NDArray[np.int64]
    missing: NDArray[np.int64]
    """Where a row without a value goes."""
    gain: NDArray[np.float64]
    """Reduction of the loss by the split; 0 for leaves."""
    cover: NDArray[np.float64]
    """Sum of the second derivatives of the rows of a node."""
    leaf: NDArray[np.float64]
    """Value of a leaf; 0 for splits."""

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return int((self.feature == LEAF).sum())

    @property
    def depth(self) -> int:
        """Splits on the longest way from the root to a leaf."""
        level = [0] * len(self.feature)
        splits = zip(self.feature.tolist(), self.yes.tolist(), self.no.tolist(), strict=True)
        for node, (feature, yes, no) in enumerate(splits):  # breadth first: parents come before children
            if feature != LEAF:
                level[yes] = level[no] = level[node] + 1
        return max(level, default=0)


def grown(
    children: Sequence[tuple[int, int]] | NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order the nodes that hang on the root, breadth first.

    Parameters
    ----------
    children
        Left and right child of each stored node, negative for a leaf. Shape ``(N, 2)``.

    Returns
    -------
    order : (M,)
        Stored index of each node.
    place : (N,)
        Node of each stored index; `LEAF` for what was pruned.
    """
    order = [0]
    for node in order:
        left, right = children[node]
        if left >= 0:
            order += [int(left), int(right)]
    place = np.full(len(children), LEAF, np.int64)
    place[order] = np.arange(len(order))
    return np.array(order, np.int64), place


def columns(trees: Sequence[Tree]) -> dict[str, NDArray[Any]]:
    """The trees of a round as columns, one number a node or one a tree.

    The names are those of XGBoost's data frame of trees, where it has them.
    """
    sizes = [len(tree.feature) for tree in trees]
    per_node = {
        "Tree": np.repeat(np.arange(len(trees)), sizes),
        "Node": np.concatenate([np.arange(size) for size in sizes]),
        "Feature": np.concatenate([tree.feature for tree in trees]),
        "Split": np.concatenate([tree.split for tree in trees]),
        "Yes": np.concatenate([tree.yes for tree in trees]),
        "No": np.concatenate([tree.no for tree in trees]),
        "Missing": np.concatenate([tree.missing for tree in trees]),
        "Gain": np.concatenate([tree.gain for tree in trees]),
        "Cover": np.concatenate([tree.cover for tree in trees]),
        "Leaf": np.concatenate([tree.leaf for tree in trees]),
    }
    per_tree = {
        "group": np.array([tree.group for tree in trees], np.int64),
        "depth": np.array([tree.depth for tree in trees], np.int64),
        "leaves": np.array([tree.leaves for tree in trees], np.int64),
    }
    return {**per_node, **per_tree}
