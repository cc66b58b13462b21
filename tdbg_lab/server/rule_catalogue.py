"""What the server can tell of each rule: its title, what it sees, and what its thresholds mean."""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

from tdbg_lab.server.jsonable import jsonable

if TYPE_CHECKING:
    from tdbg_lab.rules.base import Rule
    from tdbg_lab.server.wire import RuleJson

__all__ = ["catalogue"]

MAX_HELP_CHARS = 2000

_reading = Lock()
"""Sources are read by one thread at a time: Python 3.11 may fail where two of them parse at once."""


def catalogue() -> list[RuleJson]:
    """Every rule of ours and of installed packages, by name."""
    from tdbg_lab.rules.registry import list_rules

    with _reading:
        # mypy takes the hash of an instance for that of its class.
        return [_told(cls) for cls in list_rules()]  # type: ignore[arg-type]


@cache
def _told(cls: type[Rule]) -> RuleJson:
    from tdbg_lab.rules.manual import description_of, thresholds_of

    return {
        "name": cls.name,
        "title": cls.title,
        "group": cls.group,
        "explanation": description_of(cls)[0][:MAX_HELP_CHARS],
        "thresholds": [
            {
                "name": one.name,
                "type": one.type,
                "default": jsonable(one.default),
                "help": one.help[:MAX_HELP_CHARS],
            }
            for one in thresholds_of(cls)
        ],
    }
