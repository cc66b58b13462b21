"""Hand-made phases and load, through the real writers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.capture.notes import check_key
from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.rules import check_run
from tdbg_lab.store import RankWriter, SystemWriter, create_run
from tdbg_lab.store.loaders import LoaderFacts, write_loaders
from tdbg_lab.testing import block_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tdbg_lab.records import Finding, RuleState
    from tdbg_lab.rules import Rule

_MS = 1_000_000
_LOSS = (TensorKey(name="loss/x", kind=Kind.LOSS, module="x", shape=()),)
USUAL = {"data": 2.0, "forward": 10.0, "backward": 20.0, "optimizer": 8.0}
"""Milliseconds of the phases of a healthy step."""


class Recorded:
    """A run whose steps take as long as a test says, from one second after it was created on."""

    def __init__(self, path: Path, *, ranks: int = 1, begin_s: float = 1.0, framework: str = "") -> None:
        self.folder = create_run(path, world_size=ranks, framework=framework)
        self.path = self.folder.path
        self.zero_ns = self.folder.info.created_ns + int(begin_s * 1e9)
        self.now_ns = [self.zero_ns] * ranks
        self.step = [0] * ranks
        self._writers = [RankWriter(self.path, rank=rank, seal=False) for rank in range(ranks)]

    def steps(self, phases: Sequence[Mapping[str, float]], *, rank: int = 0) -> Recorded:
        """Add steps: for each the phases in order, ms. They are written ten at a time."""
        for first in range(0, len(phases), 10):
            self._write(phases[first : first + 10], rank)
        return self

    def _write(self, phases: Sequence[Mapping[str, float]], rank: int) -> None:
        rows: list[tuple[str, int, int, int]] = []
        for one in phases:
            for name, length_ms in one.items():
                length_ns = int(length_ms * _MS)
                rows.append((name, self.now_ns[rank], length_ns, self.step[rank]))
                self.now_ns[rank] += length_ns
            loss = StatsRows(
                self.step[rank], Mode.TRAIN, 0, self.now_ns[rank], _LOSS, block_of([np.float32(1.0)], [None])
            )
            self._writers[rank].append(loss)
            self.step[rank] += 1
        names, starts, lengths, steps = zip(*rows, strict=True)
        self._writers[rank].append_spans(names, names, starts, lengths, steps)

    def load(
        self, series: Mapping[tuple[str, str], Sequence[float]], *, every_s: float = 0.5, rank: int = 0
    ) -> Recorded:
        """Add samples of metrics and devices, from the first step on."""
        writer = SystemWriter(self.path, rank=rank)
        metrics, devices = zip(*series, strict=True)
        for row, values in enumerate(zip(*series.values(), strict=True)):
            writer.append(self.zero_ns + int((row + 1) * every_s * 1e9), metrics, devices, values)
        writer.close()
        return self

    def fact(self, name: str, value: float, *, rank: int = 0) -> Recorded:
        """Add a fact of the loop, at the step to come."""
        place = [self.step[rank]], [self.now_ns[rank]]
        self._writers[rank].append_scalars(*place, [check_key(name)], [value], mode=Mode.TRAIN)
        return self

    def loader(self, *, rank: int = 0, **facts: Any) -> Recorded:
        """Say how the data loader of a rank is set."""
        write_loaders(self._writers[rank].path, [LoaderFacts(kind="Images", **facts)])
        return self

    def check(self, *rules: Rule | str) -> tuple[list[Finding], dict[str, RuleState]]:
        """Findings and states after the fact."""
        for writer in self._writers:
            writer.close()
        self.folder.set_status("finished")
        found, states = check_run(self.path, list(rules), strict=True)
        return found, {state.rule: state for state in states}

    def find(self, rule: Rule) -> Finding | None:
        """What one rule finds: nothing, or one finding."""
        found, states = self.check(rule)
        assert len(found) <= 1, [one.message for one in found]
        assert found or states[rule.name].status != "not_applicable", states[rule.name].reason
        return found[0] if found else None

    def why_not(self, rule: Rule) -> str:
        """Why a rule has nothing to look at."""
        found, states = self.check(rule)
        assert not found
        assert states[rule.name].status == "not_applicable"
        return states[rule.name].reason


def healthy(n: int, factor: float = 1.0) -> list[dict[str, float]]:
    """Steps without any trouble, each `factor` times as long as usual."""
    return [{name: factor * length_ms for name, length_ms in USUAL.items()}] * n
