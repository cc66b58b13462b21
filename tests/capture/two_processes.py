"""Trainings that `torchrun` starts in two processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def environment(*paths, **more):
    """Of a process that finds this package, what lies beside the tests, and `paths`; one thread each."""
    path = os.pathsep.join(map(str, (ROOT, HERE, *paths)))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def launched(*command, env=None, timeout=280):
    """Run a script with its arguments to its end, in both."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launch, *map(str, command)],
        env=environment() if env is None else env,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def told_by_each(root):
    """What each has written of itself."""
    return [json.loads((root / f"told-{rank}.json").read_text()) for rank in (0, 1)]
