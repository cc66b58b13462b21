"""2048 counts that the threads of a Triton program share: functions for its kernels, in LLVM's language.

Each element of a block calls its function once, if the block has as many elements as the program has threads
or more. Between clearing, counting and reading belongs ``tl.debug_barrier()``.

Imports Triton: import it inside of functions, after `tdbg_lab.stats.triton_kernels`.
"""
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

from __future__ import annotations

from pathlib import Path
from typing import Any

from triton.language import core

__all__ = ["LIBRARY", "clear", "count", "counted"]

LIBRARY = {"tdbg": str(Path(__file__).with_suffix(".ll"))}
"""The option ``extern_libs`` of a kernel that calls them."""


@core.extern
def clear(places: Any, _semantic: Any = None) -> Any:
    """Set counts to zero."""
    return _call("tdbg_clear", places, _semantic)


@core.extern
def count(places: Any, _semantic: Any = None) -> Any:
    """Add one to the count of each place, from 0 to 2047; those of several threads add up."""
    return _call("tdbg_count", places, _semantic)


@core.extern
def counted(places: Any, _semantic: Any = None) -> Any:
    """The counts at places."""
    return _call("tdbg_counted", places, _semantic)


def _call(function: str, places: Any, semantic: Any) -> Any:
    int32 = core.dtype("int32")
    functions = {(int32,): (function, int32)}
    return core.extern_elementwise("tdbg", "", [places], functions, is_pure=False, _semantic=semantic)
