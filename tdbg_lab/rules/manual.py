"""What a rule sees and what its thresholds mean, as its author wrote it."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from tdbg_lab.rules.thresholds import type_of

if TYPE_CHECKING:
    from tdbg_lab.rules.base import Rule

__all__ = ["Threshold", "description_of", "thresholds_of"]


class Threshold(NamedTuple):
    """One field of a rule."""

    name: str
    type: str
    default: float | int | str | bool | None
    """What is not a plain value comes as its text."""
    help: str
    """In one line; ``""`` where the source is not there."""


def description_of(cls: type[Rule]) -> list[str]:
    """Paragraphs of the text of a rule, each in one line."""
    return [_line(text) for text in inspect.cleandoc(cls.__doc__ or "").split("\n\n")]


def thresholds_of(cls: type[Rule]) -> list[Threshold]:
    """Thresholds of a rule, in the order of its fields: its own before those of its bases."""
    own = inspect.get_annotations(cls)
    helps: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        helps |= _field_docs(base)
    return [
        Threshold(one.name, type_of(one), _simple(one.default), helps.get(one.name, ""))
        for one in sorted(fields(cls), key=lambda one: one.name not in own)
        if one.name != "actions"
    ]


def _simple(value: Any) -> float | int | str | bool | None:
    if value is MISSING:
        return None
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def _field_docs(cls: type) -> dict[str, str]:
    """The texts below the fields of a class; none where the source is not there."""
    try:
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    docs: dict[str, str] = {}
    lines = body.body if isinstance(body, ast.ClassDef) else []
    for line, after in itertools.pairwise(lines):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            text = _text(after)
            if text is not None:
                docs[line.target.id] = _line(text)
    return docs


def _line(text: str) -> str:
    """Text in one line, with code marked as people write it, not as docstrings do."""
    return " ".join(text.split()).replace("``", "`")


def _text(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value.value if isinstance(node.value.value, str) else None
    return None
