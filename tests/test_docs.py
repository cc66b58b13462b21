"""Programs that the pages show whole run as they stand."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import pytest

import tdbg_lab as tdbg

PAGES = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def unbound(code: str) -> set[str]:
    """Names that a snippet takes from elsewhere: it is a part of a program then."""
    bound, used = set(dir(builtins)), set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(one.asname or one.name).split(".")[0] for one in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
    return used - bound


def is_program(code: str) -> bool:
    """Whether it trains in one process, with nothing but what it makes itself."""
    return "tdbg.attach(" in code and "init_process_group" not in code and not unbound(code)


PROGRAMS = [
    pytest.param(code, id=page.stem)
    for page in sorted(PAGES.glob("*.md"))
    for code in BLOCK.findall(page.read_text(encoding="utf-8"))
    if is_program(code)
]


def test_there_are_such_programs() -> None:
    assert {one.id for one in PROGRAMS} >= {"capture", "checks", "frameworks", "pytorch"}


@pytest.mark.parametrize("code", PROGRAMS)
def test_it_runs_and_says_what_its_comments_say(code, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "snippet", "exec"), {"__name__": "__main__"})
    (run,) = tdbg.list_runs(tmp_path / "runs")
    assert run.status == "finished"
    said = capsys.readouterr().out
    for line in code.splitlines():
        if line.startswith("print(") and re.match(r"[\[(]", comment := line.partition("  # ")[2]):
            assert comment in said
