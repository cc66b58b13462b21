"""Train one program once and keep what was recorded, under a name that says which code did it."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import shutil
import sys
import textwrap
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from benchmarks.detection.loop import train

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.detection.program import Program

__all__ = ["digest_of", "place_of", "record", "score"]

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "tdbg_lab"


def _meaning(source: str) -> str:
    """What stays the same when code is only written or commented differently."""
    return ast.dump(ast.parse(textwrap.dedent(source)))


@cache
def _digest_of_code(*patterns: str) -> str:
    texts = [_meaning(path.read_text()) for one in patterns for path in sorted(HERE.parents[1].glob(one))]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


@cache
def digest_of(*patterns: str) -> str:
    """Hash of source files, by patterns below the repository."""
    found = hashlib.sha256()
    for pattern in patterns:
        for path in sorted(HERE.parents[1].glob(pattern)):
            found.update(path.read_bytes())
    return found.hexdigest()


@cache
def _source(function: Callable[..., Any]) -> str:
    """Source of the function that made a closure (or of the function itself)."""
    outer = function.__qualname__.split(".")[0]
    made_by = getattr(sys.modules[function.__module__], outer, function)
    return _meaning(inspect.getsource(made_by))


def _parts(program: Program) -> Iterable[str]:
    """Everything that the training depends on."""
    yield _digest_of_code(
        "benchmarks/detection/recipe.py", "benchmarks/detection/loop.py",
        "benchmarks/detection/programs/data.py", "benchmarks/detection/programs/networks.py",
        "benchmarks/detection/programs/pretraining.py", "benchmarks/detection/faults/parts.py",
    )  # fmt: skip
    folder = program.task.build.__module__.split(".")[3]
    if folder in ("held", "second", "third"):
        yield _digest_of_code(
            *(f"benchmarks/detection/programs/{folder}/{one}.py" for one in ("data", "networks", "readers"))
        )
    elif (HERE / "programs" / folder).is_dir():
        yield _digest_of_code(f"benchmarks/detection/programs/{folder}/*.py")
    yield program.name
    yield _source(program.task.build)
    if program.variant:
        yield _source(program.task.variants[program.variant])
    if program.fault is not None:
        yield _source(program.fault.change)
        yield repr([cell.cell_contents for cell in program.fault.change.__closure__ or ()
                    if isinstance(cell.cell_contents, (int, float, str, tuple))])  # fmt: skip


def place_of(program: Program, seed: int, cache_folder: Path, *, bare: bool = False) -> Path:
    """Where a recording lies, or will lie; `bare`: what the training without capture scored."""
    key = hashlib.sha256("\n".join([*_parts(program), str(seed)]).encode()).hexdigest()[:16]
    return cache_folder / ("bare" if bare else "runs") / f"{program.name.replace('!', '--')}-{seed}-{key}"


def score(program: Program, seed: int, place: Path) -> float:
    """Train without any capture, unless it was done, and give the final score."""
    if not place.exists():
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(repr(train(program.recipe(seed), None, seed)))
    return float(place.read_text())


def capture_code() -> str:
    """Hash of the code that records."""
    return digest_of("tdbg_lab/capture/**/*.py", "tdbg_lab/stats/**/*.py", "tdbg_lab/config.py")


def record(
    program: Program, seed: int, place: Path, *, fresh: bool = True, to_be_asked: bool = True
) -> dict[str, Any]:
    """Train, unless it was done (by the capture as it is now, if it must be `fresh`).

    A recording that was dropped is made again only when it is `to_be_asked` about.

    Gives what is known besides the run: score, steps, CPU time, epochs.
    """
    told = place / "facts.json"
    if told.exists():
        known: dict[str, Any] = json.loads(told.read_text())
        there = (place / "run").exists() or not to_be_asked
        if there and (not fresh or known["capture"] == capture_code()):
            return known
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    begun = time.process_time()
    recipe = program.recipe(seed)
    score = train(recipe, place / "run", seed)
    facts = {
        "capture": capture_code(),
        "score": score,
        "cpu_s": round(time.process_time() - begun, 2),
        "steps": recipe.steps,
        "epochs": recipe.told,
        "classes": recipe.criterion.__class__.__name__
        in ("CrossEntropyLoss", "NLLLoss", "BCEWithLogitsLoss"),
        "input_max": float(recipe.train[0].abs().max()) if recipe.train[0].is_floating_point() else None,
    }
    told.write_text(json.dumps(facts))
    return facts
