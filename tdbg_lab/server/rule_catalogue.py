"""What the server can tell of each rule: its title, what it sees, and what its thresholds mean."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from tdbg_lab.server.jsonable import jsonable

if TYPE_CHECKING:
    from tdbg_lab.rules.base import Rule
    from tdbg_lab.server.wire import RuleJson, ThresholdJson

__all__ = ["catalogue"]

MAX_HELP_CHARS = 2000


def catalogue() -> list[RuleJson]:
    """Every rule of ours and of installed packages, by name."""
    from tdbg_lab.rules.registry import list_rules

    return [_told(cls) for cls in list_rules()]


def _told(cls: type[Rule]) -> RuleJson:
    paragraphs = inspect.cleandoc(cls.__doc__ or "").split("\n\n")
    return {
        "name": cls.name,
        "title": cls.title,
        "group": str(getattr(cls, "group", "")),
        "explanation": " ".join(paragraphs[0].split())[:MAX_HELP_CHARS],
        "thresholds": _thresholds(cls),
    }


def _thresholds(cls: type[Rule]) -> list[ThresholdJson]:
    helps: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        helps |= _field_docs(base)
    return [
        {
            "name": one.name,
            "type": str(one.type),
            "default": None if one.default is MISSING else jsonable(_simple(one.default)),
            "help": helps.get(one.name, "")[:MAX_HELP_CHARS],
        }
        for one in fields(cls)
        if one.name != "actions"
    ]


def _simple(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def _field_docs(cls: type) -> dict[str, str]:
    """The texts below the fields of a class; none where the source is not there."""
    try:
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    if not isinstance(body, ast.ClassDef):
        return {}
    docs = {}
    for line, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and _is_text(after):
            docs[line.target.id] = " ".join(ast.literal_eval(after.value).split())  # type: ignore[attr-defined]
    return docs


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
