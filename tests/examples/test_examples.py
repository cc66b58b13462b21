"""The examples, run as a user would run them: in a real kernel, as a script."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tdbg_lab.records import RunStatus
from tdbg_lab.run import open_run

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))

pytest.importorskip("torch")


def _run(name, folder, *, epochs):
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    client = NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TDBG_EXAMPLE_EPOCHS", str(epochs))
        client.execute()
    return notebook


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    """The notebook after two epochs, and its run."""
    folder = tmp_path_factory.mktemp("quickstart")
    notebook = _run("quickstart.ipynb", folder, epochs=2)
    return notebook, open_run(folder / "runs" / "quickstart")


def _texts(notebook):
    """Everything a notebook says, errors included."""
    said = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            said += [output.get("text", ""), *output.get("traceback", ())]
    return "\n".join(said)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_valid_and_kept_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


@pytest.mark.slow
def test_quickstart_records_what_it_promises(quickstart):
    notebook, run = quickstart
    assert run.status == RunStatus.FINISHED
    assert run.last_step >= 85
    for name in ("activation/conv1", "gradient/conv1.weight", "conv1.weight"):
        series = run.tensor(name).histograms(mode="train")
        assert len(series.steps) >= 18
        assert (series.block.count > 0).all()
        assert len(series.block.hist_counts) > 0
    assert len(run.scalars("loss/CrossEntropyLoss")) >= 18
    assert len(run.scalars("accuracy")) == 2
    assert run.rule_states()
    assert not [each for each in run.findings() if each.severity == "critical"]
    assert "Traceback" not in _texts(notebook)


@pytest.mark.slow
def test_quickstart_keeps_the_latent_layer_with_its_labels(quickstart):
    latent = quickstart[1].tensor("latent")
    steps = latent.steps(mode="eval")
    assert len(steps) == 2
    for step in steps:
        assert latent.value(step, mode="eval").shape == (360, 32)
        assert set(latent.labels(step, mode="eval").tolist()) == set(range(10))


@pytest.mark.slow
def test_broken_stops_by_itself_with_a_finding(tmp_path):
    notebook = _run("broken.ipynb", tmp_path, epochs=40)
    run = open_run(tmp_path / "runs" / "broken")
    assert run.status == RunStatus.STOPPED
    assert run.last_step < 40 * 57 - 1
    finding = next(each for each in run.findings() if each.rule == "dead_relu")
    assert finding.severity == "critical"
    assert "relu" in finding.tensor
    said = _texts(notebook)
    assert said.count("Training stopped at step") == 1
    assert "Traceback" not in said


@pytest.mark.slow
def test_script_leaves_a_finished_run(tmp_path):
    shutil.copy(EXAMPLES / "script.py", tmp_path)
    done = subprocess.run(
        [sys.executable, "script.py", "--epochs", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "finished, loss" in done.stdout
    assert open_run(tmp_path / "runs" / "script").status == RunStatus.FINISHED
