"""Rules in their own process act on a training that goes on in this one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import tdbg_lab as tdbg
from tdbg_lab.actions import ApplyFix, ChangeSetting, Pattern, RunCallable
from tdbg_lab.records import Finding, Kind, Severity
from tdbg_lab.rules import Needs

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.rules import RunView

torch = pytest.importorskip("torch")


def test_findings_change_the_training_and_failures_are_told(tmp_path: Path) -> None:
    @dataclass(frozen=True, kw_only=True)
    class TooFast(tdbg.Rule):  # local: it travels by value
        def needs(self) -> Needs:
            return Needs(kinds=(Kind.LOSS, Kind.OPTIMIZER))

        def check(self, step: int, run: RunView) -> Finding | None:
            fix = {"setting": "learning_rate", "factor": 0.1}
            return self.finding(step, "It is too fast.", severity=Severity.CRITICAL, fix=fix)

    def fail(*_: object) -> None:
        raise ValueError("the lamp is off")

    torch.set_num_threads(1)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = tdbg.attach(
        model,
        optimizer=optimizer,
        store=tmp_path / "run",
        save_every=1,
        profiler=False,
        rules=[TooFast(actions=ApplyFix())],
        actions=[
            ChangeSetting(setting="clip_norm", value=1.0, when=Pattern(severity="critical")),
            ChangeSetting(factor=0.5, when=Pattern(rule="another")),
            RunCallable(function=fail),
        ],
    )
    deadline_s = time.monotonic() + 120
    while time.monotonic() < deadline_s:
        model(torch.ones(2, 3)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.02)
        run = handle.run
        run.refresh()
        told = [one for one in run.findings() if one.rule == "actions"]
        if len([one for one in run.setting_changes() if one.state == "done"]) >= 2 and told:
            break
    handle.detach()
    done = {one.change.setting: one for one in run.setting_changes()}
    assert sorted(done) == ["clip_norm", "learning_rate"]
    assert [one.by for one in done.values()] == ["rule too_fast"] * 2
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)
    assert told[0].message.startswith("The action RunCallable for too_fast failed")
    assert told[0].message.endswith(": the lamp is off")
