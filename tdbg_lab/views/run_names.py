"""What several runs of one picture are called: plain texts that differ."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.run import Run

__all__ = ["run_names"]


def run_names(runs: Sequence[Run]) -> list[str]:
    """Their names; where two have the same, with the folders that tell them apart, or else a number."""
    often = Counter(run.info.name for run in runs)
    names = [
        run.info.name if often[run.info.name] == 1 else f"{run.info.name} ({run.path.name})" for run in runs
    ]
    seen: Counter[str] = Counter()
    for index, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[index] = f"{name} ({seen[name]})"
    return names
