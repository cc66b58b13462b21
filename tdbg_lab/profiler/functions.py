"""Python functions of the training thread: by samples (pyinstrument) or by calls (cProfile)."""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConflictError, MissingDependencyError

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.profiler.window import ProfileWindow

__all__ = ["CALLS", "SAMPLES", "CallPass", "SamplingPass"]

SAMPLES = "python.speedscope.json"
"""Opens in https://www.speedscope.app."""
CALLS = "python.calls.json"
_PSTATS = "python.pstats"
_INTERVAL_S = 0.001
_LONG_S = 30.0
_LONG_INTERVAL_S = 0.01
_MOST_FUNCTIONS = 1000


class SamplingPass:
    """Samples of the training thread's stack, every millisecond of its time."""

    what = "Python functions"

    def __init__(self, window: ProfileWindow) -> None:
        long = window.seconds is not None and window.seconds > _LONG_S
        self._interval_s = _LONG_INTERVAL_S if long else _INTERVAL_S
        self._profiler: Any = None
        self._session: Any = None

    def start(self, step: int) -> None:  # noqa: ARG002 - samples know no steps
        """Begin.

        Raises
        ------
        MissingDependencyError
            pyinstrument is not installed.
        ConflictError
            Another profiler is at work in this thread.
        """
        _refuse_other()
        try:
            pyinstrument = import_module("pyinstrument")
        except ImportError:
            raise MissingDependencyError(
                "pyinstrument is not installed: pip install 'tdbg-lab[profile]'"
            ) from None
        self._profiler = pyinstrument.Profiler(interval=self._interval_s, async_mode="disabled")
        self._profiler.start()

    def step(self, step: int) -> None:
        """`step` begins: nothing to do."""

    def stop(self) -> None:
        """End."""
        self._session = self._profiler.stop()
        self._profiler = None

    def save(self, folder: Path) -> None:
        """Write `SAMPLES`. Any thread."""
        renderer = import_module("pyinstrument.renderers").SpeedscopeRenderer()
        (folder / SAMPLES).write_text(renderer.render(self._session), encoding="utf-8")
        self._session = None


class CallPass:
    """Every call of a Python function in the training thread, counted and timed."""

    what = "Python functions"

    def __init__(self, window: ProfileWindow) -> None:
        del window
        self._profiler = cProfile.Profile()

    def start(self, step: int) -> None:  # noqa: ARG002 - calls know no steps
        """Begin.

        Raises
        ------
        ConflictError
            Another profiler is at work in this thread.
        """
        _refuse_other()
        self._profiler.enable()

    def step(self, step: int) -> None:
        """`step` begins: nothing to do."""

    def stop(self) -> None:
        """End."""
        self._profiler.disable()

    def save(self, folder: Path) -> None:
        """Write `CALLS`, and the file that `pstats` and SnakeViz read. Any thread."""
        self._profiler.dump_stats(folder / _PSTATS)
        calls = pstats.Stats(self._profiler).stats  # type: ignore[attr-defined]
        rows = [
            {"name": name, "file": file, "line": line, "calls": calls, "self_s": own, "total_s": total}
            for (file, line, name), (_, calls, own, total, _) in calls.items()
        ]
        rows.sort(key=lambda row: -row["self_s"])
        (folder / CALLS).write_text(json.dumps(rows[:_MOST_FUNCTIONS]), encoding="utf-8")


def _refuse_other() -> None:
    if sys.getprofile() is not None:
        raise ConflictError("another profiler is at work in the training thread, and there can be only one")
