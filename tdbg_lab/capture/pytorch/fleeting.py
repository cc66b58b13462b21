"""Hooks that may be copied, pickled and scripted with the model they hang on, and leave nothing there."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any

import torch

from tdbg_lab.listening import forget, listen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tdbg_lab.listening import Listeners

__all__ = ["Fleeting", "ScriptWatch"]

_INERT: Callable[..., None] = nullcontext().__exit__
"""Takes anything and does nothing. It is none of ours: a model that was saved while it was captured must load
where tdbg-lab is not installed."""
_SCRIPT = (torch.jit._recursive, "create_script_module")  # noqa: SLF001
"""What ``torch.jit.script`` makes of a module, by whatever name the program has the function."""


class Fleeting:
    """Base of hooks: on a copy of the model, and on one that is loaded, nothing is left of them."""

    __slots__ = ()

    def __deepcopy__(self, _memo: dict[int, Any]) -> Callable[..., None]:
        if not _for_copies:
            _for_copies.append(ScriptWatch())
        return _INERT

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _INERT.__reduce__()


class ScriptWatch:
    """While it lives, ``torch.jit.script``, which compiles the hooks of a module, sees none of ours."""

    def __init__(self) -> None:
        listen(*_SCRIPT, self, _scripting)

    def detach(self) -> None:
        """No longer. Idempotent."""
        forget(*_SCRIPT, self)


_for_copies: list[ScriptWatch] = []
"""Copies outlive the capture, and with them what has become of the hooks."""


def _scripting(original: Callable[..., Any], _watches: Listeners[ScriptWatch]) -> Callable[..., Any]:
    @wraps(original)
    def create_script_module(nn_module: Any, *args: Any, **kwargs: Any) -> Any:
        with _put_aside(nn_module):
            return original(nn_module, *args, **kwargs)

    return create_script_module


@contextmanager
def _put_aside(module: torch.nn.Module) -> Iterator[None]:
    """Take our hooks off a module and its parts, and put all of them back in their order."""
    held = []
    for part in module.modules():
        for hooks in (part._forward_hooks, part._forward_pre_hooks):  # noqa: SLF001
            ours = [key for key, hook in hooks.items() if _is_ours(hook)]
            if ours:
                held.append((hooks, list(hooks.items())))
                for key in ours:
                    del hooks[key]
    try:
        yield
    finally:
        for hooks, items in held:
            hooks.clear()
            hooks.update(items)


def _is_ours(hook: Any) -> bool:
    return isinstance(hook, Fleeting) or getattr(hook, "__func__", None) is nullcontext.__exit__
