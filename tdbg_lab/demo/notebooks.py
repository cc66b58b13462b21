"""The example notebooks: part of the wheel, or ``examples/`` of a source tree."""

from __future__ import annotations

import shutil
from pathlib import Path

from tdbg_lab.errors import NotFoundError

__all__ = ["copy_examples", "examples_folder"]

KINDS = (".ipynb", ".py", ".md")


def examples_folder() -> Path:
    """Where the examples are.

    Raises
    ------
    NotFoundError
        When this installation has none.
    """
    here = Path(__file__).parent
    for folder in (here / "examples", here.parents[1] / "examples"):
        if (folder / "quickstart.ipynb").is_file():
            return folder
    raise NotFoundError("The example notebooks are not part of this installation; install tdbg-lab again.")


def copy_examples(target: Path) -> list[Path]:
    """Copy the examples to `target`; a file that is there already is left as it is."""
    source = examples_folder()
    target.mkdir(parents=True, exist_ok=True)
    copied = []
    for file in sorted(source.iterdir()):
        copy = target / file.name
        if file.suffix in KINDS and not copy.exists():
            shutil.copyfile(file, copy)
            copied.append(copy)
    return copied
