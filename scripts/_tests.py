"""Run pytest and write how it ended: ``python scripts/_tests.py FILE ARGUMENT...``.

The tests are over when pytest says so. A thread or a child that a test left behind may keep the process
from ending: after two minutes it is ended, and what its threads were doing is told.
"""

import faulthandler
import sys
from pathlib import Path

import pytest

PATIENCE_S = 120

sys.path[0] = str(Path.cwd())  # as after ``python -m pytest``
status = int(pytest.main(sys.argv[2:]))
Path(sys.argv[1]).write_text(f"{status}\n")
faulthandler.dump_traceback_later(PATIENCE_S, exit=True)
sys.exit(status)
