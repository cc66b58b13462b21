"""A rule written in a notebook cell runs in the runner's process and stops the run."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tdbg_lab.records import RunStatus
from tdbg_lab.run import open_run

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

RULE = """
from dataclasses import dataclass
import tdbg_lab as tdbg
from tdbg_lab.records import Kind
from tdbg_lab.rules import Needs

LIMIT = 3  # a global of the notebook travels with the rule

@dataclass(frozen=True, kw_only=True)
class CountsSteps(tdbg.Rule):
    limit: int = LIMIT

    def needs(self):
        return Needs(kinds=(Kind.LOSS,))

    def check(self, step, run):
        if step >= self.limit:
            return self.finding(step, f"Step {step} is past {self.limit}.")
        return None
"""

TRAIN = """
import time, torch
from tdbg_lab.actions import StopTraining
torch.set_num_threads(1)
model = torch.nn.Linear(3, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = torch.nn.MSELoss()
handle = tdbg.attach(model, optimizer=opt, loss=criterion, store="runs/own", save_every=1,
                     rules=["default", CountsSteps(actions=[StopTraining()])])
end_s = time.monotonic() + 60
try:
    while time.monotonic() < end_s:
        opt.zero_grad()
        criterion(model(torch.ones(4, 3)), torch.zeros(4, 2)).backward()
        opt.step()
        time.sleep(0.02)
except tdbg.TrainingStopped as stopped:
    print(stopped)
handle.detach()
"""


def test_rule_from_a_cell_runs_in_the_runner_and_stops_the_run(tmp_path):
    notebook = new_notebook(cells=[new_code_cell(RULE), new_code_cell(TRAIN)])
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    run = open_run(tmp_path / "runs" / "own")
    finding = next(each for each in run.findings() if each.rule == "counts_steps")
    assert finding.step_first == 3
    assert finding.message == f"Step {finding.step_last} is past 3."  # it grew until the run stopped
    assert run.status == RunStatus.STOPPED
    assert {state.rule for state in run.rule_states()} >= {"counts_steps", "dead_relu"}
    assert "Training stopped at step" in notebook.cells[1].outputs[-1]["text"]
