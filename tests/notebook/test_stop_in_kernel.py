"""A stop in a real kernel: the cell ends with one message, the checkpoint is saved, the kernel goes on."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tdbg_lab.records import RunStatus
from tdbg_lab.run import open_run

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

TRAIN = """
import torch
import tdbg_lab as tdbg
from tdbg_lab.records import Finding, Severity
from tdbg_lab.actions import ActionContext, StopTraining
from tdbg_lab.store import FindingsWriter
torch.set_num_threads(1)
model = torch.nn.Linear(3, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.01)

def save(reason):
    torch.save(model.state_dict(), "last.pt")
    print("saved at", reason.step, "by", reason.by, "because of", reason.finding.rule)

def step():
    opt.zero_grad()
    model(torch.ones(4, 3)).square().mean().backward()
    opt.step()

def train():
    for _ in range(1_000_000):
        step()

handle = tdbg.attach(model, optimizer=opt, store="runs/own", save_every=1, profiler=False, checkpoint=save)
found = Finding("exploding_tensor", Severity.CRITICAL, 3, 3, "The loss is NaN since step 3.", id="f1")
writer = FindingsWriter(handle.run_path)
writer.append(found)
writer.close()
StopTraining().perform(found, ActionContext(handle.run_path))
try:
    train()
finally:
    print("cleaned up")
"""
AFTER = "print(type(handle).__name__, handle.attached, handle.stop_requested)"


def test_stop_ends_the_cell_with_one_message(tmp_path):
    cells = [new_code_cell(TRAIN), new_code_cell(AFTER), new_code_cell("%load_ext tdbg_lab\n%tdbg status")]
    notebook = new_notebook(cells=cells)
    nbformat.validate(notebook)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=120, resources=resources, allow_errors=True).execute()
    *texts, error = cells[0].outputs
    assert error.output_type == "error"
    assert error.ename == "TrainingStopped"
    (line,) = error.traceback
    assert "Training stopped at step" in line
    assert line.endswith("The loss is NaN since step 3.")
    printed = "".join(one.text for one in texts if one.output_type == "stream" and one.name == "stdout")
    assert "by rule exploding_tensor because of exploding_tensor" in printed
    assert printed.endswith("cleaned up\n")
    assert cells[1].outputs[0].text == "Handle False True\n"
    assert "Traceback" not in str(cells[2].outputs)
    assert (tmp_path / "last.pt").exists()
    run = open_run(tmp_path / "runs" / "own")
    assert (run.status, run.info.error) == (RunStatus.STOPPED, "The loss is NaN since step 3.")
