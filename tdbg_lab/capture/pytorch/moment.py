"""Forwards that are not for real, and those that a stage of a pipeline calls."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["in_stage", "in_trainer", "not_for_real"]

_graph_task: Any = torch._C._current_graph_task_id  # noqa: SLF001
_tracing: Any = torch._C._is_tracing  # noqa: SLF001
_STAGE: Final = "torch.distributed.pipelining.stage"
_REHEARSALS: Final = (
    _STAGE,
    frozenset({"_forward_metadata_inference", "_backward_metadata_inference", "_shape_inference"}),
)
"""Where a pipeline stage calls its module and its loss with whatever is in memory, to learn the shapes."""
_CALLS: Final = _STAGE, frozenset({"forward_one_chunk"})
"""Where it calls its module with a micro-batch."""
_TRAINER: Final = "transformers.trainer"
_PASSES: Final = _TRAINER, frozenset({"training_step"})
"""Where the trainer of transformers makes a pass of a step."""


def not_for_real() -> bool:
    """Whether a forward or a loss is not for real: no training sees what comes out of it.

    While a backward pass is running it repeats one for activation checkpointing; a stage of
    `torch.distributed.pipelining` rehearses them before its first step; and ``torch.jit.trace`` would write
    down what is read.
    """
    aside: bool = _graph_task() >= 0 or _tracing()
    return aside or (_STAGE in sys.modules and torch.distributed.is_initialized() and _within(*_REHEARSALS))


def in_stage() -> bool:
    """Whether a stage of `torch.distributed.pipelining` calls its module."""
    return _STAGE in sys.modules and torch.distributed.is_initialized() and _within(*_CALLS)


def in_trainer() -> bool:
    """Whether the trainer of transformers makes a pass of a step, whose losses add up to that of the step."""
    return _TRAINER in sys.modules and _within(*_PASSES)


def _within(module: str, functions: frozenset[str]) -> bool:
    """Whether one of these functions of a module is running."""
    names = sys.modules[module].__dict__
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - nothing else tells
    while frame is not None:
        code = frame.f_code
        if code.co_name in functions and frame.f_globals is names:
            return True
        frame = frame.f_back
    return False
