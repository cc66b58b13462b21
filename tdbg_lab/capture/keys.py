"""What tensors are called, and which collections hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.records import Kind, TensorKey

if TYPE_CHECKING:
    from tdbg_lab.capture.plan import Membership, Plan

__all__ = ["Keys"]

_MOST = 20_000
"""Keys that are remembered: shapes may never repeat."""


class Keys:
    """The keys of a capture's tensors: the same objects for the same tensor."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._found: dict[tuple[str, Kind, str, tuple[int, ...]], tuple[TensorKey, Membership]] = {}

    def find(
        self,
        name: str,
        kind: Kind,
        *,
        path: str = "",
        module: Any = None,
        dtype: str = "",
        shape: tuple[int, ...] = (),
        marks: tuple[str, ...] = (),
    ) -> tuple[TensorKey, Membership]:
        """The key of a tensor and its collections.

        `marks` are names beside those of its collections that say what the tensor is.
        """
        identity = (name, kind, dtype, shape)
        found = self._found.get(identity)
        if found is None:
            if len(self._found) >= _MOST:
                self._found.clear()
            membership = self._plan.membership(name, kind, path, module)
            names = tuple(dict.fromkeys((*membership.names, *marks)))
            known = tuple(n if type(n) is int else -1 for n in shape)  # of nested tensors one is a symbol
            key = TensorKey(name, kind, path, dtype, known, names)
            found = self._found[identity] = (key, membership)
        return found
