"""How our kernels are compiled: GIL released, cached on disk where the disk allows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from llvmlite import ir
from numba import cfunc, njit, types
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "REASSOCIATE",
    "cache_path",
    "call_in_threads",
    "callback",
    "fetch_add",
    "kernel",
    "pointer",
    "prefetch",
    "source_stamp",
]

REASSOCIATE = frozenset({"reassoc", "nsz", "contract", "nnan"})
"""Float freedoms for sums over blocks known to be finite: any order, signs of zeros ignored. A block
with NaN gives a useless sum, which is thrown away: the caller looks at the bits first."""


def kernel(*, fastmath: frozenset[str] = frozenset()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile for the use of other kernels; nothing is compiled before that.

    Never ``parallel=True``, whose OpenMP threads and fork do not mix.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = njit(error_model="numpy", fastmath=set(fastmath))(function)
        return compiled

    return decorate


def callback(function: Callable[[int], None]) -> Any:
    """`function` of one address as native code, with its ``address`` and, for Python, its ``ctypes``.

    Called through ``ctypes`` it runs without the GIL. numba caches beside the source, or in the
    user's cache directory when that is read-only. Where neither can be written it refuses to cache:
    then each process compiles anew.
    """
    options: dict[str, Any] = {"error_model": "numpy"}
    return cfunc(types.void(types.int64), cache=cache_path(function) is not None, **options)(function)


def cache_path(function: Callable[..., Any]) -> Path | None:
    """The folder where numba keeps the compiled form of `function`; None where it cannot."""
    try:
        return Path(FunctionCache(function).cache_path)
    except RuntimeError:  # "cannot cache function: no locator available"
        return None


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


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def fetch_add(_context: Any, _address: Any, _amount: Any) -> Any:
    """``fetch_add(address, amount)``: add to the int64 at the address, atomically; its value before."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], context.get_value_type(types.int64).as_pointer())
        return builder.atomic_rmw("add", place, args[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def call_in_threads(_context: Any, _parallel: Any, _function: Any, _argument: Any, _threads: Any) -> Any:
    """``call_in_threads(parallel, function, argument, threads)``: call a function in several OpenMP threads.

    `parallel` is the address of the ``GOMP_parallel`` of GNU's library, `function` that of a native function
    of one address. Returns when all have returned.
    """

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, byte, number, number])
        parallel, function, argument, threads = args
        builder.call(
            builder.inttoptr(parallel, kind.as_pointer()),
            [
                builder.inttoptr(function, byte),
                builder.inttoptr(argument, byte),
                builder.trunc(threads, number),
                number(0),
            ],
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def prefetch(_context: Any, _address: Any) -> Any:
    """``prefetch(address)``: have the cache line at the address fetched; it may lie beyond what is ours."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        to_read, nearest, data = number(0), number(3), number(1)
        builder.call(function, [builder.inttoptr(args[0], byte), to_read, nearest, data])
        return context.get_dummy_value()

    return types.void(types.int64), generate
