"""Moments at which nothing may be read: a forward that is recomputed, a CUDA graph being captured."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["capturing", "recomputing"]


def recomputing() -> bool:
    """Whether a backward pass is running: a forward in it repeats one for activation checkpointing."""
    running: bool = torch._C._current_graph_task_id() >= 0  # noqa: SLF001
    return running


_stream_is_capturing: Any = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)  # noqa: SLF001


def capturing() -> bool:
    """Whether a CUDA graph is being captured, in which nothing may wait for the device."""
    return _stream_is_capturing is not None and torch.cuda._initialized and bool(_stream_is_capturing())  # noqa: SLF001
