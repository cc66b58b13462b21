"""Numbers that no writer of ours writes, in small files of a run directory that anybody may have written."""

from __future__ import annotations

import json
import math

import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import check_run
from tdbg_lab.run import open_run
from tdbg_lab.store import pending, request
from tdbg_lab.store.jsonable import float_in, int_in
from tdbg_lab.store.settings import change_in
from tdbg_lab.testing import fake_run
from tdbg_lab.views import call_view

HUGE = 10**400
"""JSON has integers of any size; floats end at 1.8e308."""
WINDOW = {"first_step": 3, "last_step": 5, "start_ns": 1, "duration_ns": 2}
USE = {
    "steps": 1,
    "step_us": 1.0,
    "kernels": 0,
    "kernel_median_us": 1.0,
    "busy_us": 1.0,
    "operators": 3,
    "waits": [],
}


@pytest.fixture
def path(tmp_path):
    return fake_run(tmp_path / "run", steps=6, layers=1, findings=True)


def profile(path, window, use=USE, digest=None):
    folder = path / "rank-00000" / "profile" / "step-000000000003"
    folder.mkdir(parents=True)
    for name, value in (("window", window), ("use", use), ("digest", digest or {"format": 1})):
        (folder / f"{name}.json").write_text(json.dumps(value))


def test_number_is_a_float_or_none():
    values = [1, 1.5, HUGE, -HUGE, True, None, "1", [], math.inf]
    assert [float_in(value) for value in values] == [1.0, 1.5, None, None, None, None, None, None, math.inf]


@pytest.mark.parametrize("value", [2**63, HUGE, math.inf, math.nan, True, None, "1", []], ids=range(8))
def test_what_is_no_integer_of_64_bits_is_told(value):
    assert int_in(-5) == -5
    with pytest.raises(ValueError, match="64 bits"):
        int_in(value)


@pytest.mark.parametrize(
    "window",
    [{}, {**WINDOW, "first_step": math.inf}, {**WINDOW, "last_step": HUGE}, {**WINDOW, "start_ns": "x"}],
)
def test_profile_that_does_not_say_when_it_was_is_left_out(path, window):
    profile(path, window)
    assert open_run(path).profiles() == []
    findings, _ = check_run(path, ["tiny_kernels"])
    assert findings == []


@pytest.mark.parametrize("value", [HUGE, math.nan, -1.0], ids=["huge", "nan", "negative"])
def test_use_of_a_device_that_is_no_time_is_left_out(path, value):
    profile(path, WINDOW, {**USE, "busy_us": value})
    findings, _ = check_run(path, ["tiny_kernels"])
    assert findings == []
    assert len(open_run(path).profiles()) == 1


@pytest.mark.parametrize("value", [HUGE, math.nan], ids=["huge", "nan"])
def test_profile_with_impossible_numbers_is_drawn_without_them(path, value):
    row = {"name": "aten::mm", "calls": value, "self_us": value, "total_us": 2.0}
    tree = {"parent": [-1], "total": [value], "own": [value], "name": ["all"]}
    profile(path, WINDOW, digest={"format": 1, "operators": [row], "trees": {"python": tree}})
    for view in ("operators", "flame"):
        call_view(open_run(path), view)


def test_change_to_an_impossible_value_is_refused_where_it_is_read(path):
    identity = request(path, "set", arguments={"setting": "learning_rate", "value": 1.0})
    file = path / "control" / f"{identity}.json"
    told = json.loads(file.read_text())
    file.write_text(json.dumps({**told, "arguments": {"setting": "learning_rate", "value": HUGE}}))
    (asked,) = pending(path)
    with pytest.raises(ConfigError, match="expected a number from"):
        change_in(asked)
    assert open_run(path).setting_changes() == []


@pytest.mark.parametrize("name", ["step_first", "step_last", "time_ns", "rank"])
def test_finding_at_an_impossible_place_is_left_out(path, name):
    (file,) = (path / "findings").glob("*.jsonl")
    told = json.loads(file.read_text())
    assert len(open_run(path).findings()) == 1
    file.write_text(json.dumps({**told, name: HUGE}) + "\n")
    assert open_run(path).findings() == []
    call_view(open_run(path), "rules")
