"""How our kernels are compiled: GIL released, cached on disk where the disk allows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from numba import njit, types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["REASSOCIATE", "kernel", "pointer", "source_stamp"]

REASSOCIATE = frozenset({"reassoc", "nsz", "contract", "nnan"})
"""Float freedoms for sums over blocks known to be finite: any order, signs of zeros ignored. A block
with NaN gives a useless sum, which is thrown away: the caller looks at the bits first."""


def kernel(
    *, fastmath: frozenset[str] = frozenset(), cache: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile without the GIL; never ``parallel=True``, whose OpenMP threads and fork do not mix.

    With `cache`, numba caches beside the source, or in the user's cache directory when that is
    read-only. Where neither can be written it refuses to cache: then each process compiles anew.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath)}
        try:
            compiled: Callable[..., Any] = njit(cache=cache, **options)(function)
        except RuntimeError:  # "cannot cache function: no locator available"
            compiled = njit(**options)(function)
        return compiled

    return decorate


def source_stamp(*modules: str) -> int:
    """A number that changes with the sources of these modules of this package."""
    folder = Path(__file__).parent
    stamp = 0
    for module in modules:
        try:
            stamp = crc32((folder / f"{module}.py").read_bytes(), stamp)
        except OSError:  # not on disk: nobody edits it
            continue
    return stamp


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def pointer(_context: Any, _address: Any, scalar_type: Any) -> Any:
    """``pointer(address, np.float32)``: the address (int64) as a typed pointer, for `carray`."""
    result = types.CPointer(scalar_type.dtype)

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(result))

    return result(types.int64, scalar_type), generate
