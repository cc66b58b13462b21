from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import psutil
import pytest

from tdbg_lab.cli import demo, run
from tdbg_lab.demo.notebooks import copy_examples, examples_folder
from tdbg_lab.run import open_run


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Calls of JupyterLab, which is not started, and keeps its workspaces in a folder of the test."""
    monkeypatch.setenv("JUPYTERLAB_WORKSPACES_DIR", str(tmp_path / "workspaces"))
    calls = []
    monkeypatch.setattr(demo, "_jupyter", lambda *args, **kwargs: calls.append((args, kwargs)) or 0)
    return calls


def test_examples_are_copied_and_changed_ones_stay(tmp_path):
    first = copy_examples(tmp_path / "demo")
    assert "quickstart.ipynb" in {path.name for path in first}
    (tmp_path / "demo" / "quickstart.ipynb").write_text("mine")
    assert copy_examples(tmp_path / "demo") == []
    assert (tmp_path / "demo" / "quickstart.ipynb").read_text() == "mine"
    assert (examples_folder() / "quickstart.ipynb").read_text() != "mine"


def test_demo_opens_the_quickstart(tmp_path, monkeypatch, started, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--port", "9000", "--no-browser"]) == 0
    ((folder, port), options), *_ = started
    assert (folder / "quickstart.ipynb").exists()
    assert (port, options) == (9000, {"browser": False, "notebook": True})


def test_workspace_of_the_demo_shows_the_side_bar_first_and_is_the_users_then(tmp_path):
    from tdbg_lab.demo.workspace import prepare_workspace

    assert prepare_workspace(tmp_path)
    (file,) = tmp_path.iterdir()
    assert (
        json.loads(file.read_text())["data"]["layout-restorer:data"]["left"]["current"] == "tdbg-lab-sidebar"
    )
    file.write_text("{}")
    assert not prepare_workspace(tmp_path)
    assert file.read_text() == "{}"


def test_demo_without_torch_says_what_to_do(tmp_path, monkeypatch, started, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run(["demo"]) == 2
    err = capsys.readouterr().err
    assert 'pip install "tdbg-lab[torch]"' in err
    assert "--synthetic" in err
    assert started == []


def test_synthetic_demo_writes_a_live_run_and_ends_it(tmp_path, monkeypatch, capsys):
    def follow(folder, _port, **_options):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                if open_run(folder / "runs" / "synthetic").last_step >= 1:
                    return 0
            except LookupError:
                pass
            time.sleep(0.05)
        return 1

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "_jupyter", follow)
    assert run(["demo", "--synthetic"]) == 0
    assert str(open_run(tmp_path / "tdbg-demo" / "runs" / "synthetic").status) == "stopped"


@pytest.mark.skipif(os.name == "nt", reason="what is killed there has no children to be told")
def test_demo_that_is_killed_leaves_nothing_running(tmp_path):
    folder = tmp_path / "demo"
    command = [sys.executable, "-m", "tdbg_lab", "demo", "--synthetic", "--no-browser", "--dir", str(folder)]
    places = {"JUPYTERLAB_WORKSPACES_DIR": tmp_path / "work", "JUPYTER_RUNTIME_DIR": tmp_path / "runtime"}
    demo = subprocess.Popen([*command, "--port", "8977"], env={**os.environ, **places})
    try:
        while not (folder / "runs" / "synthetic" / "run.json").exists() or not list(
            tmp_path.glob("runtime/jpserver-*.json")
        ):
            assert demo.poll() is None
            time.sleep(0.1)
        children = psutil.Process(demo.pid).children()
        assert len(children) == 2
    finally:
        demo.kill()
        demo.wait()
    gone, left = psutil.wait_procs(children, timeout=60)
    for one in left:
        one.kill()
    assert len(gone) == 2
    assert str(open_run(folder / "runs" / "synthetic").status) == "stopped"


def test_synthetic_training_stops_when_asked(tmp_path):
    command = [sys.executable, "-m", "tdbg_lab.demo.synthetic", str(tmp_path / "run"), "--rate", "20"]
    process = subprocess.Popen(command)  # takes its time to start on a busy machine
    try:
        while not (tmp_path / "run" / "run.json").exists():
            assert process.poll() is None
        assert run(["stop", str(tmp_path / "run"), "--wait", "90"]) == 0
    finally:
        process.wait(timeout=90)
    assert str(open_run(tmp_path / "run").status) == "stopped"
