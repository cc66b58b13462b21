"""Rules, and what tests of the runner ask of a run."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle
import pytest

from tdbg_lab.records import Finding, Kind, Severity
from tdbg_lab.rules import Needs, Rule
from tdbg_lab.store import read_findings, read_rule_states

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Above(Rule):
    """Finds a scalar above a limit."""

    limit: float = 1.0

    def needs(self) -> Needs:
        return Needs(kinds=(Kind.LOSS,))

    def check(self, step: int, run: Any) -> Finding | None:
        _, values = run.scalars("loss/x")
        if values[-1] > self.limit:
            return self.finding(step, f"{values[-1]:g}", tensor="loss/x", severity=Severity.CRITICAL)
        return None


@dataclass(frozen=True, kw_only=True)
class Broken(Rule):
    def check(self, step: int, run: Any) -> Finding | None:
        if step == 2:
            raise ZeroDivisionError("oh no")
        return None


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    return pytest.fail("it did not happen in time")


def latest(path: Path) -> dict[str, Finding]:
    return {finding.id: finding for finding in read_findings(path)}


def state_of(path: Path, rule: str) -> Any:
    return next((state for state in read_rule_states(path) if state.rule == rule), None)


def send(*rules: Rule) -> bytes:
    from tdbg_lab.rules import payload

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as a notebook cell would be
    try:
        return payload.pack(rules)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
