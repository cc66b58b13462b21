"""The statistics on CUDA: one Triton launch measures a tensor and its channels, or many of one element type.

Of many, a table on the device says which run of elements (a *chunk*) each program of
`tdbg_lab.stats.cuda_kernels` reads. Nothing here waits for the device.

Imports Triton: import it inside of functions, after `tdbg_lab.stats.triton_kernels`.
"""

from __future__ import annotations

import logging
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import triton.language as tl

from tdbg_lab.stats.cuda_kernels import NUMBERS, measure_chunks, measure_one
from tdbg_lab.stats.dtypes import Code
from tdbg_lab.stats.gather import sentence
from tdbg_lab.stats.shared_counts import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["Chunks", "Form", "compile_kernels", "form_of", "launch", "plan"]

log = logging.getLogger(__name__)

_LANES = 1024
"""Elements a program reads at a time."""
_SHORTEST, _LONGEST = 1 << 13, 1 << 18
"""Elements per chunk: few partials, and few enough additions per lane for float32."""
_CHUNKS = 1024
"""Chunks to cut a tensor into, between these lengths: as many as keep a large GPU busy."""
_REGISTERS = 64
"""Registers a thread: few enough that a multiprocessor runs four programs at a time."""
_WIDE, _LONG, _NO_CHANNELS = (8, 128), (1024, 1), (1, 0)
"""(elements, channels) that a program reads at a time: of channels that are neighbours, and of others."""
_LOOPS = 32
"""How often it does."""
_POINTERS = ("address", "out", "hist", "sums")
_FAR = 1 << 40
"""Any pointer: larger than what 32 bits hold."""
_MOST_INT32 = 2**31 - 1


class Chunks(NamedTuple):
    """Which program reads what: the launch plan of a list of tensors."""

    table: NDArray[np.int64]
    """``(P, 4) int64``: address, start, stop, row; grouped by element type."""
    launches: list[tuple[int, int, int]]
    """(code, first chunk, chunks) of each launch."""
    order: list[int]
    """Tensors in the order of their chunks."""
    counts: list[int]
    """Chunks of each, in this order."""


def plan(memories: Sequence[tuple[int, int, int, int, int]]) -> Chunks:
    """Cut tensors, given as in `tdbg_lab.stats.pointers.Memory`, into chunks. An empty one has one too."""
    codes = np.array([memory[1] for memory in memories], np.int64)
    sizes = np.array([memory[2] for memory in memories], np.int64)
    order = np.argsort(codes, kind="stable")
    length = np.clip(-(-sizes // (_CHUNKS * _LANES)) * _LANES, _SHORTEST, _LONGEST)[order]
    sizes = sizes[order]
    n_chunks = np.maximum(-(-sizes // length), 1)
    row = np.repeat(order, n_chunks)
    within = np.arange(len(row)) - np.repeat(np.cumsum(n_chunks) - n_chunks, n_chunks)
    start = within * np.repeat(length, n_chunks)
    stop = np.minimum(start + np.repeat(length, n_chunks), np.repeat(sizes, n_chunks))
    addresses = np.array([memory[0] for memory in memories], np.int64)
    table = np.stack([addresses[row], start, stop, row], axis=1)
    found, first = np.unique(codes[row], return_index=True)
    bounds = [*first.tolist(), len(row)]
    launches = [(int(code), bounds[i], bounds[i + 1] - bounds[i]) for i, code in enumerate(found.tolist())]
    return Chunks(table, launches, order.tolist(), n_chunks.tolist())


def chunks_of(n: int) -> tuple[int, int]:
    """(length, number) of the chunks that `plan` cuts so many elements into."""
    length = min(max(-(-n // (_CHUNKS * _LANES)) * _LANES, _SHORTEST), _LONGEST)
    return length, max(-(-n // length), 1)


def launch(chunks: Chunks, table: Tensor, tables: Tensor, partials: Tensor, hist: Tensor) -> None:
    """Queue the measuring of many tensors on the current stream.

    Parameters
    ----------
    chunks : Chunks
    table : (P, 4) int64
        ``chunks.table``, on the device.
    tables : (5, 256) float32
        `tdbg_lab.stats.dtypes.float8_tables`, on the device.
    partials : (P, 10) float64
        Set.
    hist : (N, 2048) int32
        Added to.
    """
    for code, first, n in chunks.launches:
        measure_chunks[(n,)](table, first, tables, partials, hist, **_of_code(code), **_options_here())


class Form(NamedTuple):
    """How tensors of one type, size and layout are measured by a launch each."""

    n_chunks: int
    """Rows of partials."""
    grid: tuple[int, int, int]
    elements: tuple[int, int, int]
    """Arguments of `measure_one`: ``n, length, n_chunks``."""
    channels: tuple[int, int, int, int]
    """``others, n_channels, inner, splits``."""
    kernel: Any
    """Compiled, and launched straight; None where that cannot be."""
    constants: dict[str, Any]

    def launch(self, address: int, tables: Tensor, partials: int, hist: int, sums: int) -> None:
        """Queue the measuring of one tensor, and of its channels, on the current stream.

        Straight, in a few microseconds; Triton's own way takes ten times longer.

        Parameters
        ----------
        address
            Where its elements begin on the device; 0 if there are none.
        tables : (5, 256) float32
            As for `launch`.
        partials, hist, sums
            Addresses on the device: of ``(n_chunks, 10) float64``, which is set; of ``(2048,) int32`` and
            ``(channels, 3) float64``, which are added to.
        """
        address = address or partials  # of nothing: never read, but to be a pointer
        values = (address, *self.elements, partials, hist, *self.channels, sums)
        if self.kernel is not None:
            try:
                self.kernel[self.grid](*values, tables, *self.constants.values())
            except TypeError:  # a Triton that wants other arguments there
                log.debug("Triton's compiled kernels cannot be launched straight.", exc_info=True)
            else:
                return
        measure_one[self.grid](*values, tables, **self.constants, **_options_here())


@lru_cache(maxsize=1 << 12)
def form_of(device: int, code: int, n: int, n_channels: int, inner: int) -> Form:
    """Of `tdbg_lab.stats.pointers.Memory` without the address, for one device, which is the current one.

    -1 is no device.
    """
    length, n_chunks = chunks_of(n)
    others, splits, programs, tile = 0, 1, 0, _NO_CHANNELS
    if n_channels:
        others = n // n_channels
        tile = _WIDE if inner == 1 else _LONG
        splits = -(-others // (tile[0] * _LOOPS))
        programs = -(-n_channels // tile[1]) * splits
    elements, channels = (n, length, n_chunks), (others, n_channels, inner, splits)
    kernel, constants = _compiled(device, code, *tile)
    if max(elements + channels) > _MOST_INT32:  # it is compiled for shorter numbers
        kernel = None
    return Form(n_chunks, (n_chunks + programs, 1, 1), elements, channels, kernel, constants)


@cache
def _compiled(device: int, code: int, rows: int, cols: int) -> tuple[Any, dict[str, Any]]:
    """`measure_one` for an element type and a tile: compiled, and its constants.

    For one device, which is the current one; -1 is none. None where Triton only interprets.
    """
    constants = {**_of_code(code), "ROWS": rows, "COLS": cols, "LOOPS": _LOOPS}
    if device < 0 or not _compiles():
        return None, constants
    numbers = [_FAR if name in _POINTERS else 1 for name in NUMBERS]
    kernel = measure_one.warmup(*numbers, torch.float32, **constants, **_options_here(), grid=(1,))
    return kernel, constants


def _compiles() -> bool:
    """Whether Triton compiles, and does not interpret."""
    return hasattr(measure_one, "device_caches")


def compile_kernels() -> None:
    """Compile the kernels for the types that models are made of, without launching any."""
    for code in (Code.FLOAT32, Code.BFLOAT16, Code.FLOAT16):
        _compile_many(_of_code(int(code)), _options_here())
        for tile in (_NO_CHANNELS, _WIDE, _LONG):
            _compiled(torch.cuda.current_device(), int(code), *tile)


def _compile_many(constants: dict[str, Any], options: dict[str, Any]) -> None:
    tables, partials = torch.float32, torch.float64
    measure_chunks.warmup(torch.int64, 0, tables, partials, torch.int32, **constants, **options, grid=(1,))


@cache
def _shared() -> bool:
    """Whether programs count in shared memory: not where Triton interprets, nor where it cannot link that."""
    if not _compiles() or torch.version.hip is not None:
        return False
    try:
        _compile_many(_constants(Code.FLOAT32, shared=True), _options(shared=True))
    except Exception as error:  # noqa: BLE001 - whatever another Triton raises, its own histogram is left
        log.warning("Triton links no counters here (%s): its slower histogram counts.", sentence(error))
        return False
    return True


@cache
def _options_here() -> dict[str, Any]:
    return _options(shared=_shared())


def _options(*, shared: bool) -> dict[str, Any]:
    """How the kernels are compiled."""
    plain = {"num_warps": 8, "enable_fp_fusion": True}
    return {**plain, "maxnreg": _REGISTERS, "extern_libs": LIBRARY} if shared else plain


@cache
def _of_code(code: int) -> dict[str, Any]:
    """What the kernels of an element type are compiled with here."""
    return _constants(code, shared=_shared())


def _constants(code: int, *, shared: bool) -> dict[str, Any]:
    wide = Code.FLOAT64 <= code < Code.FLOAT8_FIRST
    return {
        "CODE": code,
        "FLOAT": tl.float64 if wide else tl.float32,
        "LANES": _LANES,
        "SMALL": 1e-140 if wide else 1e-12,
        "LARGE": 1e140 if wide else 1e15,
        "TINY": 1e-300 if wide else 1e-37,
        "SHARED": shared,
    }
