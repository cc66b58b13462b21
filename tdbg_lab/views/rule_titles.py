"""What rules are called, in every view as in the panel of the rules."""

from __future__ import annotations

from tdbg_lab.errors import NotFoundError
from tdbg_lab.rules import find_rule

__all__ = ["rule_title"]


def rule_title(name: str) -> str:
    """Title of a rule; its name in words where it is a user's own that is not loaded here."""
    try:
        return find_rule(name).title
    except NotFoundError:
        return name.replace("_", " ").capitalize()
