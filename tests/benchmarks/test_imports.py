"""What a benchmark takes from another one is there. Most of them run for minutes, so they are only read."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FILES = sorted(BENCHMARKS.rglob("*.py"))


def source_of(module: str) -> Path | None:
    """Where a module of the benchmarks lies, by the name that they know it by; None for one of a library."""
    place = BENCHMARKS.joinpath(*module.removeprefix("benchmarks.").split("."))
    return next((one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file()), None)


def names_in(path: Path) -> set[str]:
    """What a module defines or imports at its top."""
    found = {one.stem for one in path.parent.glob("*.py")} if path.name == "__init__.py" else set()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {one.asname or one.name.partition(".")[0] for one in names}
            case ast.Assign() | ast.AnnAssign():
                found |= {
                    each.id
                    for each in ast.walk(node)
                    if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
                }
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(BENCHMARKS).as_posix())
def test_names_that_a_benchmark_takes_from_another_exist(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            source = source_of(node.module)
            if source is not None:
                missing = {one.name for one in node.names} - names_in(source)
                assert not missing, f"line {node.lineno}: {node.module} has no {missing}"


def test_a_missing_name_would_be_found():
    assert source_of("small_models") is not None
    assert "Gpt" in names_in(BENCHMARKS / "small_models.py")
    assert "Gpt" not in names_in(BENCHMARKS / "overhead.py")
