"""Hooks that go on counting where training stood at its last checkpoint."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from tdbg_lab.smdebug.exceptions import SMDebugRuntimeError
from tests.smdebug.predecessor import answers_of_both, needs_predecessor

pytest.importorskip("torch")

TRAIN = """
import importlib, json, os, sys, tempfile
from pathlib import Path
import torch
name, folder = sys.argv[1], sys.argv[2]
framework = importlib.import_module(name + ".pytorch" if not name.endswith(".pytorch") else name)
trials = importlib.import_module(framework.__name__.rpartition(".")[0] + ".trials")
top = Path(tempfile.mkdtemp(dir=folder))
checkpoints = top / "checkpoints"
checkpoints.mkdir()
(top / "config.json").write_text(json.dumps({"LocalPath": str(checkpoints)}))
os.environ["CHECKPOINT_CONFIG_FILE_PATH"] = str(top / "config.json")
modes, answers = framework.modes, []


def train(out_dir, checkpoint_after):
    hook = framework.Hook(str(out_dir), save_config=framework.SaveConfig(save_interval=2))
    answers.append([hook.step, hook.last_saved_step, hook.training_run])
    torch.manual_seed(0)
    model, criterion = torch.nn.Sequential(torch.nn.Linear(4, 3)), torch.nn.CrossEntropyLoss()
    hook.register_module(model)
    hook.register_loss(criterion)
    for step in range(6):
        hook.set_mode(modes.EVAL if step == 2 else modes.TRAIN)
        criterion(model(torch.ones(2, 4)), torch.tensor([0, 1])).backward()
        if step in checkpoint_after:
            (checkpoints / f"{step}.pt").write_bytes(bytes(step + 1))
    hook.close()
    framework.del_hook()
    states = checkpoints / "metadata.json"
    answers.append(json.loads(states.read_text()) if states.exists() else None)
    trial = trials.create_trial(str(out_dir))
    answers.append([trial.steps(), trial.steps(mode=modes.TRAIN), trial.steps(mode=modes.EVAL)])


train(top / "first", {3})
train(top / "second", set(json.loads(sys.argv[3])))
train(top / "third", set())
print("answers", json.dumps(answers))
"""


@needs_predecessor
def test_states_and_steps_after_a_restart_are_the_predecessors(tmp_path):
    """Of the first checkpoint: at further ones it writes a state more than once."""
    there, here = answers_of_both(TRAIN, "smdebug.pytorch", str(tmp_path), "[]")
    assert here == there


def test_steps_go_on_from_the_last_checkpoint(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, "tdbg_lab.smdebug.pytorch", str(tmp_path), "[0, 4]"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    line = next(one for one in done.stdout.splitlines() if one.startswith("answers "))
    first, states, steps, second, more, later, third, *_ = json.loads(line.removeprefix("answers "))
    assert first == [-1, None, 0]
    (state,) = states
    assert state["latest-global-step-seen"] == 3
    assert state["latest-mode-step"]["TRAIN"] == 2
    assert state["latest-mode-step"]["EVAL"] == 0
    assert steps[0] == [0, 2, 3, 5]
    assert second == [3, 3, 1]
    assert [one["training-run"] for one in more] == [0, 1, 1]
    assert [one["latest-global-step-seen"] for one in more] == [3, 4, 8]
    assert later[0][0] > 3
    assert third[0] == 8


STATE = {
    "training-run": 0,
    "latest-global-step-seen": 4,
    "latest-global-step-saved": 0,
    "latest-mode-step": {"TRAIN": 4},
}


@pytest.fixture
def checkpoints(tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"LocalPath": str(folder)}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(config))
    return folder


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '[{"training-run": 0}]',
        json.dumps([STATE | {"latest-global-step-seen": 1e9}]),
        json.dumps([STATE | {"latest-mode-step": {"X": 1}}]),
        "[" * 100_000,
    ],
)
def test_states_that_no_hook_wrote_are_passed_over(checkpoints, tmp_path, text, caplog):
    from tdbg_lab.smdebug.pytorch import Hook

    (checkpoints / "metadata.json").write_text(text)
    hook = Hook(tmp_path / "run")
    assert (hook.step, hook.training_run) == (-1, 0)
    assert "steps begin at 0" in caplog.text


CUT_OFF = """
import os, sys, time
from pathlib import Path
import torch
from tdbg_lab.smdebug.pytorch import Hook, SaveConfig
hook = Hook(sys.argv[1], include_collections=["weights"], save_config=SaveConfig(save_interval=1))
model, criterion = torch.nn.Sequential(torch.nn.Linear(4, 3)), torch.nn.CrossEntropyLoss()
hook.register_module(model)
hook.register_loss(criterion)
for step in range(6):
    criterion(model(torch.ones(2, 4)), torch.tensor([0, 1])).backward()
    if step == 2:
        Path(sys.argv[2], "model.pt").write_bytes(b"1")
print("ready", flush=True)
time.sleep(100)
"""


def test_a_run_that_was_cut_off_goes_on_in_its_directory(checkpoints, tmp_path, net, train):
    from torch import nn

    from tdbg_lab.run import open_run
    from tdbg_lab.smdebug.pytorch import Hook, SaveConfig
    from tdbg_lab.smdebug.trials import create_trial

    run = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-c", CUT_OFF, str(run), str(checkpoints)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(SMDebugRuntimeError, match="holds an earlier run"):
            Hook(run)  # somebody is writing it
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        process.stdout.close()
    hook = Hook(run, save_config=SaveConfig(save_interval=1))
    assert hook.step == 2
    criterion = nn.CrossEntropyLoss()
    hook.register_module(net)
    hook.register_loss(criterion)
    train(net, criterion, 3)
    hook.close()
    trial = create_trial(run)
    assert trial.steps() == [0, 1, 2, 3, 4, 5]
    assert len(trial.tensor("CrossEntropyLoss_output_0").values()) == 6
    counts = open_run(run).stats("CrossEntropyLoss_output_0", "count")["count"]
    assert counts.tolist() == [1] * 6, "steps 3 and 4 were made twice, and count once"
    with pytest.raises(SMDebugRuntimeError, match="holds an earlier run"):
        Hook(run)  # it has ended
