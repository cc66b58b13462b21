"""What follows from where a tensor comes from, its type and its shape; worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tdbg_lab.capture.plan import Membership
    from tdbg_lab.records import TensorKey
    from tdbg_lab.stats.repeated import Repeated

__all__ = ["Known"]


class Known(NamedTuple):
    """A tensor that comes from one place again and again."""

    key: TensorKey
    membership: Membership
    repeated: Repeated
