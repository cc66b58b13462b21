"""Functions of ours that the compiler need not look at when they are called from within compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._compile import _disable_dynamo

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["compiler", "leave_out", "outside"]

_frames: Any = getattr(torch._C._dynamo, "eval_frame", None)  # noqa: SLF001 - loads no compiler


def _no_compiler() -> None:
    """What an older PyTorch answers."""


compiler: Callable[[], Any] = getattr(_frames, "get_eval_frame_callback", _no_compiler)
"""What would compile a function that is called now: None or False where nothing would. Tells nothing within
one that was left out deeply."""


def leave_out(function: Callable[..., Any] | None, *, deeply: bool = True) -> None:
    """Run `function` as it is where compiled code calls it, instead of compiling it by itself.

    Where it is traced as a part of something else, nothing changes. An older PyTorch compiles it.

    Parameters
    ----------
    deeply
        Whether the same goes for whatever it calls.
    """
    choose = getattr(_frames, "set_code_exec_strategy", None)
    code = getattr(function, "__code__", None)
    if choose is None or code is None:
        return
    action = _frames._FrameAction  # noqa: SLF001
    below = action.SKIP if deeply else action.DEFAULT
    choose(code, _frames._FrameExecStrategy(action.SKIP, below))  # noqa: SLF001


@_disable_dynamo  # `torch.compiler.disable` would load the compiler at once
def outside(function: Callable[..., object], *values: Any) -> None:
    """Call a function where compiled code passes: the graph ends here."""
    function(*values)
