"""Hand-made runs: arrays in, a run directory out, through the real writer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.rules import check_run
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.testing import block_of

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.records import Finding, RuleState
    from tdbg_lab.rules import Rule

_PREFIXES = {
    "gradient/": Kind.GRADIENT,
    "activation/": Kind.ACTIVATION,
    "input/": Kind.INPUT,
    "loss/": Kind.LOSS,
    "check/": Kind.CHECK,
    "optimizer/": Kind.OPTIMIZER,
}


class Made:
    """A run under the hand of a test."""

    def __init__(self, path: Path, *, ranks: int = 1, seal: bool = False, **about: Any) -> None:
        self.folder = create_run(path, world_size=ranks, **about)
        self.path = self.folder.path
        self.writers = [RankWriter(self.path, rank=rank, seal=seal) for rank in range(ranks)]

    def step(
        self,
        step: int,
        tensors: dict[str, Any],
        *,
        mode: Mode | str = "train",
        micro: int = 0,
        rank: int = 0,
        collections: dict[str, tuple[str, ...]] | None = None,
    ) -> Made:
        """Write one batch; the kind of a tensor follows from its name."""
        arrays = {name: np.asarray(value, np.float32) for name, value in tensors.items()}
        keys = tuple(
            TensorKey(
                name=name,
                kind=kind_of(name),
                module=name.partition("/")[2] if "/" in name else name.rpartition(".")[0],
                shape=array.shape,
                collections=(collections or {}).get(name, ()),
            )
            for name, array in arrays.items()
        )
        axes = [1 if kind_of(name) is Kind.ACTIVATION and a.ndim > 1 else None for name, a in arrays.items()]
        block = block_of(list(arrays.values()), axes)
        self.writers[rank].append(StatsRows(step, Mode(mode), micro, time.time_ns(), keys, block))
        return self

    def end(self, status: str = "finished") -> Path:
        for writer in self.writers:
            writer.close()
        self.folder.set_status(status)
        return self.path

    def check(self, *rules: Rule | str) -> tuple[list[Finding], dict[str, RuleState]]:
        """Findings and states after the fact."""
        found, states = check_run(self.path, list(rules), strict=True)
        return found, {state.rule: state for state in states}


def kind_of(name: str) -> Kind:
    for prefix, kind in _PREFIXES.items():
        if name.startswith(prefix):
            return kind
    if name.endswith(".weight"):
        return Kind.WEIGHT
    return Kind.BIAS if name.endswith(".bias") else Kind.SCALAR
