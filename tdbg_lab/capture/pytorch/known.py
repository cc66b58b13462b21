"""What follows from where a tensor comes from, its type and its shape; worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tdbg_lab.capture.pytorch.values import dtype_name
from tdbg_lab.stats.repeated import Repeated

if TYPE_CHECKING:
    import torch

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.plan import Membership
    from tdbg_lab.records import Kind, TensorKey

__all__ = ["Known", "KnownTensors"]


class Known(NamedTuple):
    """A tensor that comes from one place again and again."""

    key: TensorKey
    membership: Membership
    repeated: Repeated


class KnownTensors(dict[Any, Known]):
    """What is known of tensors by place, type and shape; begins anew when it is full of shapes.

    Parameters
    ----------
    most
        Tensors that are remembered.
    """

    def __init__(self, engine: Engine, most: int) -> None:
        super().__init__()
        self._engine = engine
        self._most = most

    def add(
        self,
        identity: Any,
        tensor: torch.Tensor,
        name: str,
        kind: Kind,
        *,
        path: str,
        module: Any,
        marks: tuple[str, ...],
        axis: int | None,
    ) -> Known:
        """Remember a tensor of this name, which has its units along `axis`."""
        if len(self) >= self._most:
            self.clear()
        key, membership = self._engine.key(
            name,
            kind,
            path=path,
            module=module,
            dtype=dtype_name(tensor),
            shape=tuple(tensor.shape),
            marks=marks,
        )
        known = self[identity] = Known(key, membership, Repeated(self._engine.recorder.measured, axis))
        return known
