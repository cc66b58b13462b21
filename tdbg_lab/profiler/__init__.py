"""What the machine does while a model trains: system samples and phase spans.

The sampler is a process of its own, started with ``python -m tdbg_lab.profiler`` (see `__main__`).
"""

from __future__ import annotations

from tdbg_lab.profiler.spans import PHASES, PhaseRecorder

__all__ = ["PHASES", "PhaseRecorder"]
