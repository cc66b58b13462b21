"""How our kernels are compiled: GIL released, cached on disk where the disk allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit, types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["REASSOCIATE", "kernel", "pointer"]

REASSOCIATE = frozenset({"reassoc", "nsz", "contract", "nnan"})
"""Float freedoms for sums over blocks known to be finite: any order, signs of zeros ignored. A block
with NaN gives a useless sum, which is thrown away: the caller looks at the bits first."""


def kernel(*, fastmath: frozenset[str] = frozenset()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile without the GIL; never ``parallel=True``, whose OpenMP threads and fork do not mix.

    numba caches beside the source, or in the user's cache directory when that is read-only. Where
    neither can be written it refuses to cache at all: then the kernel is compiled in each process.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath)}
        try:
            compiled: Callable[..., Any] = njit(cache=True, **options)(function)
        except RuntimeError:  # "cannot cache function: no locator available"
            compiled = njit(**options)(function)
        return compiled

    return decorate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def pointer(_context: Any, _address: Any, scalar_type: Any) -> Any:
    """``pointer(address, np.float32)``: the address (int64) as a typed pointer, for `carray`."""
    result = types.CPointer(scalar_type.dtype)

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(result))

    return result(types.int64, scalar_type), generate
