"""Rows of tensors for the recorder: ordinary ones on the CPU are measured straight into its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.stats.tensors import summarize_into, summarize_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from tdbg_lab.capture.recorder import Recorder
    from tdbg_lab.records import StatsBlock, TensorKey

__all__ = ["record_tensors"]


def record_tensors(
    recorder: Recorder,
    keys: list[TensorKey],
    tensors: Sequence[torch.Tensor],
    *,
    channel_axes: Sequence[int | None] | None = None,
) -> StatsBlock | None:
    """Add a row for each tensor. They are read before the call returns.

    Returns
    -------
    The rows, or None where they are the last of ``recorder.measured``.
    """
    if summarize_into(recorder.measured, tensors, channel_axes=channel_axes):
        recorder.add_measured(keys)
        return None
    block = summarize_tensors(tensors, channel_axes=channel_axes)
    recorder.add(keys, block)
    return block
