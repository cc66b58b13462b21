"""The predecessor itself, where TDBG_SMDEBUG_PYTHON names an interpreter that has it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PREDECESSOR = os.environ.get("TDBG_SMDEBUG_PYTHON", "")
needs_predecessor = pytest.mark.skipif(
    not PREDECESSOR, reason="TDBG_SMDEBUG_PYTHON names no interpreter with smdebug"
)


def answers_of_both(code: str, module: str, *arguments: str) -> list[str]:
    """Lines ``answers ...`` that code prints for a module of the predecessor, and for ours of that name."""
    told = []
    for python, name in ((PREDECESSOR, module), (sys.executable, f"tdbg_lab.{module}")):
        command = [python, "-c", code, name, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        told.append(next(line for line in done.stdout.splitlines() if line.startswith("answers")))
    return told
