"""``tdbg rules`` and the commands below it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tdbg_lab.cli import run
from tdbg_lab.rules.registry import DEFAULT
from tdbg_lab.store import read_findings, read_rule_states
from tests.rules.made import Made


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = Made(tmp_path / "runs" / "first")
    for step in range(6):
        made.step(step, {"loss/x": float("nan") if step > 2 else 1.0})
    return made


def test_check_shows_findings_and_what_they_cost(made, capsys):
    made.end()
    assert run(["rules", "first", "--rule", "exploding_tensor"]) == 0
    out = capsys.readouterr().out
    assert "CRITICAL exploding_tensor (steps 3-5)" in out
    assert " ms " in out
    assert run(["rules", "check", "first", "--fail-on", "critical"]) == 1


def test_thresholds_come_from_options_and_files(made, capsys, tmp_path):
    made.end()
    option = ["--param", "exploding_tensor.patience_loss=9"]
    assert run(["rules", "first", "--rule", "exploding_tensor", *option]) == 0
    assert "WARNING exploding_tensor" in capsys.readouterr().out
    (tmp_path / "rules.yaml").write_text("default: false\nexploding_tensor: {patience_loss: 9}\n")
    assert run(["rules", "--config", "rules.yaml", "first"]) == 0
    out = capsys.readouterr().out
    assert "WARNING exploding_tensor" in out
    assert "dead_relu" not in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["first", "--param", "dead_relu"], "--param 'dead_relu' is not of the form rule.name=value."),
        (["first", "--param", "dead_relu.patience=x"], "dead_relu.patience is 'x'; expected a whole number."),
        (["first", "--rule", "dead_rely"], "Did you mean 'dead_relu'?"),
        (["explain", "dead_rely"], "Did you mean 'dead_relu'?"),
        (["first", "--rule", ""], "--rule names no rule; expected one that `tdbg rules list` shows."),
        (["first", "--rule", "dead_relu", "--config", __file__], "Give --rule or --config, not both."),
    ],
)
def test_wrong_choices_are_told(made, capsys, arguments, sentence):
    assert run(["rules", *arguments]) != 0
    assert sentence in capsys.readouterr().err


def test_list_names_every_default_rule_with_its_group(capsys):
    assert run(["rules", "list"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert {row[0] for row in rows if row[2] == "yes"} == set(DEFAULT)


def test_explain_tells_what_a_rule_sees_and_its_thresholds(capsys):
    assert run(["rules", "explain", "dead_relu"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Dead ReLU (dead_relu, tensors)")
    assert "patience: int = " in out
    assert "Recorded batches in a row" in out


def test_watch_finds_what_goes_wrong_in_a_running_run_until_interrupted(made):
    command = [sys.executable, "-c", "import sys; from tdbg_lab.cli import main; sys.exit(main())"]
    process = subprocess.Popen(
        [*command, "rules", "watch", "runs", "--rule", "exploding_tensor"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        deadline = time.monotonic() + 60
        while not read_findings(made.path) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "first step 3" in out
    assert "exploding_tensor" in out
    (state,) = read_rule_states(made.path)
    assert str(state.status) == "issue_found"
