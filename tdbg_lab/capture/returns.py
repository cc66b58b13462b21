"""What functions of a program return, as Python tells it from version 3.12 on (`sys.monitoring`, PEP 669).

Nothing is put around a function: one that was imported by name, or is defined anew in each step, is heard,
too. Listeners are held weakly. On older versions nothing is heard.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tdbg_lab.listening import CHANGING, Audience

if TYPE_CHECKING:
    from types import CodeType

__all__ = ["RETURNS", "ReturnListener", "Returns"]

_NAME = "tdbg_lab"
_TOOLS = (3, 4, 1, 2)
"""Numbers for tools: those without a purpose first, then those of coverage and of profilers."""


class ReturnListener(Protocol):
    """Who is told what functions return."""

    def returned(self, code: CodeType, value: Any) -> bool:
        """A function of this code returns `value`. Never raises: it would, within the program.

        Returns
        -------
        bool
            Whether to be told again of what is returned at this place.
        """


class Returns:
    """Tells listeners what the functions return that they asked for.

    Parameters
    ----------
    monitoring
        ``sys.monitoring``; None where there is none.
    """

    def __init__(self, monitoring: Any) -> None:
        self._monitoring = monitoring
        self._tool: int | None = None
        """Our number. It is kept: another tool that had it would not be told of what we switched off."""
        self._asked: dict[int, Audience[ReturnListener]] = {}
        """By the identity of the code, whose hash takes long; that of None for all functions."""

    def hear(self, code: CodeType | None, listener: ReturnListener) -> bool:
        """Tell `listener` what functions of this code return from now on; None for all functions.

        Returns
        -------
        bool
            Whether it will be told: Python is new enough, and has a number for one more tool.
        """
        with CHANGING:
            if self._tool is None and not self._begin():
                return False
            audience = self._asked.get(id(code))
            if (
                audience is None
            ):  # which holds the code, so that its identity is not that of another one later
                audience = self._asked[id(code)] = Audience(partial(self._end, code))
                self._tell_python(code, self._monitoring.events.PY_RETURN)
            audience.add(listener)
            return True

    def forget(self, code: CodeType | None, listener: ReturnListener) -> None:
        """Tell `listener` no longer. Idempotent."""
        audience = self._asked.get(id(code))
        if audience is not None:
            audience.remove(listener)

    def _begin(self) -> bool:
        monitoring = self._monitoring
        free = () if monitoring is None else (one for one in _TOOLS if monitoring.get_tool(one) is None)
        self._tool = next(iter(free), None)
        if self._tool is None:
            return False
        monitoring.use_tool_id(self._tool, _NAME)
        monitoring.register_callback(self._tool, monitoring.events.PY_RETURN, self._returned)
        return True

    def _end(self, code: CodeType | None) -> None:
        if self._asked.pop(id(code), None) is not None:
            self._tell_python(code, 0)

    def _tell_python(self, code: CodeType | None, events: int) -> None:
        if code is None:
            self._monitoring.set_events(self._tool, events)
        else:
            self._monitoring.set_local_events(self._tool, code, events)

    def _returned(self, code: CodeType, _offset: int, value: Any) -> Any:
        """What Python calls; where nobody wants what is returned, not again."""
        wanted = False
        for one in (code, None):
            for listener in self._asked.get(id(one), ()):
                wanted |= listener.returned(code, value)
        return None if wanted else self._monitoring.DISABLE


RETURNS = Returns(getattr(sys, "monitoring", None))
"""Of this process."""
