"""Rooms import only rooms below them, and heavy packages load only where they may.

Both are read off the source (every import statement, wherever it stands) and off a fresh interpreter.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tdbg_lab

PACKAGE = Path(tdbg_lab.__file__).parent

FLOORS = {
    "records": 1,
    "errors": 1,
    "version": 1,
    "nearest": 1,
    "background": 1,
    "clock": 1,
    "lazy": 1,
    "listening": 1,
    "config": 2,
    "stats": 3,
    "store": 3,
    "run": 4,
    "capture": 5,
    "profiler": 4,
    "actions": 4,
    "rules": 5,
    "analysis": 5,
    "views": 6,
    "exchange": 6,
    "server": 7,
    "notebook": 7,
    "cli": 7,
    "demo": 7,
    "smdebug": 7,
    "testing": 7,
}
"""Floor of each room. Rooms of one floor may import each other (ARCHITECTURE: `capture` uses `profiler`)."""

ALLOWED_HEAVY = {
    "torch": {"capture", "stats", "profiler", "smdebug", "analysis"},
    "keras": {"capture", "smdebug"},
    "xgboost": {"capture", "smdebug"},
    "transformers": {"capture"},
    "lightning": {"capture"},
    "pytorch_lightning": {"capture"},
    "ignite": {"capture"},
    "triton": {"stats"},
    "numba": {"stats", "cli", "exchange"},
    "tornado": {"server"},
    "jupyter_server": {"server", "cli"},
    "IPython": {"notebook", "smdebug"},
    "ipywidgets": {"notebook"},
    "plotly": {"views", "server", "notebook"},
    "sklearn": {"analysis"},
    "openTSNE": {"analysis"},
    "pandas": {
        *("run", "store", "views", "analysis", "rules"),
        *("notebook", "server", "cli", "smdebug", "exchange"),
    },
    "click": {"cli"},
    "apprise": {"actions"},
    "pynvml": {"profiler", "cli"},
    "obstore": {"store"},
    "distributed": {"rules"},
}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def runtime_imports(path: Path) -> set[str]:
    """Dotted names of what a module imports when it runs; not what is for type checkers only."""
    names: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                visit(child)
            return
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text()))
    return names


COMMANDS = {PACKAGE / "run" / "__main__.py"}
"""Not part of their room: what they start is the command, which stands above all."""
MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p.parent != PACKAGE or p.stem in FLOORS)


def test_every_room_has_a_floor() -> None:
    rooms = {room_of(p) for p in PACKAGE.rglob("*.py")} - {"__init__", "__main__", "_version"}
    assert rooms <= set(FLOORS), f"rooms without a floor: {sorted(rooms - set(FLOORS))}"


@pytest.mark.parametrize("path", sorted({*MODULES} - COMMANDS), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_imports_only_rooms_below_its_own(path: Path) -> None:
    floor = FLOORS[room_of(path)]
    for name in runtime_imports(path):
        if name.startswith("tdbg_lab."):
            target = name.split(".")[1]
            if target in FLOORS:
                assert FLOORS[target] <= floor, f"{path.name} (floor {floor}) imports {name}"


def test_no_files_import_each_other_in_a_circle() -> None:
    """Wherever the import stands; a part may know its whole by name, for type checkers."""
    named = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
    }
    graph = {
        name: {one if one in named else one.rpartition(".")[0] for one in runtime_imports(path)}
        & named.keys()
        for name, path in named.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_imports_heavy_packages_only_where_allowed(path: Path) -> None:
    for name in runtime_imports(path):
        allowed = ALLOWED_HEAVY.get(name.split(".")[0])
        assert allowed is None or room_of(path) in allowed, f"{path.name} imports {name}"


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("tdbg_lab", "torch tornado IPython plotly pandas pyarrow numba sklearn"),
        ("tdbg_lab.run", "torch tornado IPython plotly pandas pyarrow numba sklearn"),
        ("tdbg_lab.run.opening", "torch tornado IPython plotly numba sklearn obstore"),
        ("tdbg_lab.store", "torch tornado IPython plotly numba sklearn obstore"),
        ("tdbg_lab.store.remote.mirror", "torch tornado IPython plotly numba sklearn pandas obstore"),
        ("tdbg_lab.stats", "torch tornado IPython plotly pandas sklearn"),
        ("tdbg_lab.rules", "torch tornado IPython plotly sklearn"),
        ("tdbg_lab.capture", "torch keras xgboost transformers lightning ignite tornado IPython plotly"),
        ("tdbg_lab.views", "torch tornado IPython sklearn openTSNE"),
        ("tdbg_lab.profiler", "torch tornado IPython plotly pandas sklearn"),
        ("tdbg_lab.server.app", "torch IPython sklearn openTSNE"),
    ],
)
def test_importing_leaves_heavy_packages_unloaded(module: str, absent: str) -> None:
    code = f"import sys, {module}; print([m for m in {absent.split()!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
