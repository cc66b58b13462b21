"""The order in which tensors first appeared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.errors import TdbgError

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.records import TensorKey

__all__ = ["known_keys"]


def known_keys(run_path: Path) -> list[TensorKey]:
    """Tensors of what is sealed already, in the order they were first written.

    Sealed segments are sorted by name; rules need the order of the forward pass. A run without
    sealed segments gives nothing: what is live comes in its own order.
    """
    if not any(run_path.glob("rank-*/stats-*.parquet")):
        return []
    from tdbg_lab.run import open_run  # pandas, which a fresh live run does not need

    try:
        return open_run(run_path).tensors()
    except TdbgError:
        return []
