"""Runs of which every phase takes a known time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.store.loaders import write_loaders

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.run import Run

START_NS = 1_700_000_000_000_000_000
MS = 10**6


def made(path: Path, steps: int, *, ranks: int = 1, loaders=(), extra=None, **slow) -> Run:
    """A run whose steps wait 6 ms, and take 2 ms forward, 1 ms backward and 1 ms in the optimizer.

    `slow` are further ms: ``{"data_of_rank_1": 3}``; `extra` gives a span within a step.
    """
    folder = create_run(path)
    for rank in range(ranks):
        writer, now = RankWriter(folder.path, rank), START_NS
        spans = []
        for step in range(steps):
            for phase, length in (("data", 6), ("forward", 2), ("backward", 1), ("optimizer", 1)):
                took = (length + slow.get(f"{phase}_of_rank_{rank}", 0)) * MS
                spans.append((phase, now, took, step))
                if extra and phase == "data":
                    name, ms, chosen = extra
                    if step in chosen:
                        spans[-1] = (phase, now, took + ms * MS, step)
                        spans.append((name, now + MS, ms * MS, step))
                        took += ms * MS
                now += took
        phases, starts, lengths, numbers = zip(*spans, strict=True)
        writer.append_spans(phases, phases, starts, lengths, numbers, thread=1)
        write_loaders(writer.path, loaders)
        writer.close()
    folder.set_status("finished", last_step=steps - 1)
    return open_run(folder.path)
