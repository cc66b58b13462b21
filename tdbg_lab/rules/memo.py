"""Work out once what depends on recorded things alone."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["remembered"]


class _Remembering(Protocol):
    """A frame, a layout, ...: something that does not change any more."""

    @property
    def memo(self) -> dict[Any, Any]:
        """What was worked out of it; it goes when its owner goes."""


OwnerT = TypeVar("OwnerT", bound=_Remembering)
ResultT = TypeVar("ResultT")
P = ParamSpec("P")


def remembered(
    work: Callable[Concatenate[OwnerT, P], ResultT],
) -> Callable[Concatenate[OwnerT, P], ResultT]:
    """Have a function of a `Frame` or a `Layout` work out its result once for each of them.

    The result is kept in the `memo` of that first argument, for as long as it lives. So it may depend
    on nothing but the arguments, all of them positional and hashable, and nobody may change it.

    ::

        @remembered
        def matrices(layout: Layout) -> NDArray[np.int64]: ...  # once for all steps with the same tensors
    """

    @wraps(work)
    def recall(owner: OwnerT, /, *args: P.args, **kwargs: P.kwargs) -> ResultT:
        key = (work, *args) if args else work
        memo = owner.memo
        if key not in memo:
            memo[key] = work(owner, *args, **kwargs)
        found: ResultT = memo[key]
        return found

    return recall
