"""Scripts written against the predecessor's documentation run here with only their imports changed.

When ``TDBG_SMDEBUG_PYTHON`` names an interpreter that has the real library, the same scripts run
there too, and every answer must be the same.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.smdebug.predecessor import PREDECESSOR, needs_predecessor

pytest.importorskip("torch")
SCRIPTS = Path(__file__).parent / "scripts"
REPOSITORY = Path(__file__).parents[2]
DIFFERS = (
    "both",  # ours is a subclass of what is raised there
    "collection names",  # there only those known when the collections were exported
)


def run(interpreter, script, *args):
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    environment.pop("SMDEBUG_CONFIG_FILE_PATH", None)
    command = [interpreter, str(script), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(re.search(r"^ANSWER (.*)$", done.stdout, re.MULTILINE)[1])


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    from sklearn.datasets import load_digits

    found = load_digits()
    path = tmp_path_factory.mktemp("data") / "digits.npz"
    images = (found.images[:448, None] / 16).astype(np.float32)
    np.savez(path, images=images, labels=found.target[:448].astype(np.int64))
    return path


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """The scripts, with ``smdebug`` replaced in their imports."""
    folder = tmp_path_factory.mktemp("scripts")
    changed = {}
    for script in SCRIPTS.glob("*.py"):
        text = script.read_text()
        text = re.sub(r"^from smdebug\b", "from tdbg_lab.smdebug", text, flags=re.MULTILINE)
        text = re.sub(r"^import smdebug$", "import tdbg_lab.smdebug as smdebug", text, flags=re.MULTILINE)
        text = re.sub(r"^import smdebug\b", "import tdbg_lab.smdebug", text, flags=re.MULTILINE)
        changed[script.stem] = folder / script.name
        changed[script.stem].write_text(text)
    return changed


@pytest.fixture(scope="module")
def ours(tmp_path_factory, digits, changed):
    """The answers of all scripts here."""
    out = tmp_path_factory.mktemp("ours") / "run"
    answers = {"train_digits": run(sys.executable, changed["train_digits"], out, digits)}
    for name in ("rule_digits", "analyse_digits"):
        answers[name] = run(sys.executable, changed[name], out)
    return answers


def test_training_script_saves_the_documented_names_and_steps(ours):
    answer = ours["train_digits"]
    assert answer["names"] == [
        "CrossEntropyLoss_output_0",
        "Net_conv.bias",
        "Net_conv.weight",
        "Net_fc.bias",
        "Net_fc.weight",
        "fc_input_0",
        "fc_output_0",
        "gradient/Net_conv.bias",
        "gradient/Net_conv.weight",
        "gradient/Net_fc.bias",
        "gradient/Net_fc.weight",
        "nll_loss_output_0",
        "relu_output_0",
        "scalar/lr",
    ]
    assert answer["steps"] == [0, 4, 8, 10, 12, 16, 20, 24, 26]
    assert answer["mode_steps"][3:7] == [["EVAL", 0], ["EVAL", 2], ["TRAIN", 12], ["TRAIN", 16]]
    assert answer["values"]["relu_output_0"]["TRAIN 4"] == "TensorUnavailableForStep"
    assert answer["shapes"]["relu_output_0 TRAIN 4"] == [32, 4, 6, 6]
    assert answer["values"]["Net_fc.weight"]["EVAL 2"][:2] == ["float32", [10, 144]]


def test_rule_script_sees_every_saved_step_and_ends_with_no_more_data(ours):
    answer = ours["rule_digits"]
    assert answer["quiet"] == "NoMoreData"
    assert answer["met"] == "RuleEvaluationConditionMet"
    assert answer["range"] == answer["logged"] == "done"
    assert answer["unsaved"] == "StepUnavailable"
    assert {step for step, *_ in answer["seen"]} == {0, 4, 8, 16, 20}  # gradients: train steps only


def test_analysis_script_answers_each_documented_question(ours):
    answer = ours["analyse_digits"]
    assert answer["passed"] == "AVAILABLE"
    assert answer["passed unsaved"] == answer["passed behind"] == "UNAVAILABLE"
    assert answer["wait unsaved"] == answer["loss unsaved"] == "StepUnavailable"
    assert answer["wait behind"] == "NoMoreData"
    assert answer["loss wrong worker"] == "InvalidWorker"
    assert answer["grad at eval"] == answer["relu prod"] == "TensorUnavailableForStep"
    assert answer["grad wrong"] == "SMDebugValueError"
    assert answer["ranged"] == [4, 8, 10]
    assert answer["no_refresh"] == answer["refresh"]


def close(one, other, where):
    if isinstance(one, float) and isinstance(other, (int, float)):
        assert math.isclose(one, other, rel_tol=2e-5, abs_tol=2e-6), where
    elif isinstance(one, dict):
        assert sorted(one) == sorted(other), where
        for key in one:
            close(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for index, pair in enumerate(zip(one, other, strict=True)):
            close(*pair, f"{where}[{index}]")
    else:
        assert one == other, f"{where}: {one!r} here, {other!r} there"


@needs_predecessor
def test_real_library_gives_the_same_answers(ours, changed, digits, tmp_path):
    out = tmp_path / "run"
    close(ours["train_digits"], run(PREDECESSOR, SCRIPTS / "train_digits.py", out, digits), "train")
    for name in ("rule_digits", "analyse_digits"):
        theirs = run(PREDECESSOR, SCRIPTS / f"{name}.py", out)
        foreign = run(sys.executable, changed[name], out)  # its store, opened here
        for differs in DIFFERS:
            theirs.pop(differs, None)
            foreign.pop(differs, None)
        mine = {key: value for key, value in ours[name].items() if key not in DIFFERS}
        close(mine, theirs, name)
        close(foreign, theirs, f"{name}, store of smdebug")
