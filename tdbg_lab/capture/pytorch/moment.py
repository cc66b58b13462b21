"""Moments at which nothing may be read: a forward that is recomputed, a CUDA graph being captured."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["CAN_CAPTURE", "capturing", "recomputing"]

_graph_task: Any = torch._C._current_graph_task_id  # noqa: SLF001
_stream_is_capturing: Any = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)  # noqa: SLF001
CAN_CAPTURE = _stream_is_capturing is not None and torch.version.cuda is not None
"""Whether this PyTorch knows CUDA graphs."""


def recomputing() -> bool:
    """Whether a backward pass is running: a forward in it repeats one for activation checkpointing."""
    running: bool = _graph_task() >= 0
    return running


def capturing() -> bool:
    """Whether a CUDA graph is being captured, in which nothing may wait for the device."""
    return CAN_CAPTURE and torch.cuda._initialized and bool(_stream_is_capturing())  # noqa: SLF001
