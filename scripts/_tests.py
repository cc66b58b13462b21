"""Run pytest and write how it ended: ``python scripts/_tests.py FILE ARGUMENT...``.

The tests are over when pytest says so. A thread or a child that a test left behind may keep the process
from ending: after two minutes it is ended, and what its threads were doing is told.
"""

import faulthandler
import sys
from pathlib import Path

import pytest

PATIENCE_S = 120


def main(ended: str, *arguments: str) -> int:
    """Run pytest with these arguments; its exit status, which is also written to the file."""
    sys.path[0] = str(Path.cwd())  # as after ``python -m pytest``
    status = int(pytest.main(list(arguments)))
    Path(ended).write_text(f"{status}\n")
    faulthandler.dump_traceback_later(PATIENCE_S, exit=True)
    return status


if __name__ == "__main__":  # processes that tests spawn import this file, too
    sys.exit(main(*sys.argv[1:]))
