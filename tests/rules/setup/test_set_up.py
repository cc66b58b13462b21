"""Each wrong set-up is found by its rule; the same training without it has no alarm."""

from __future__ import annotations

import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Severity
from tdbg_lab.rules import list_rules, run_rules
from tdbg_lab.rules.registry import find_rule
from tdbg_lab.views import list_views

from .faulty_set_ups import FAULTY
from .healthy_set_ups import HEALTHY

OURS = [one.name for one in list_rules() if one.group == "setup"]


@pytest.mark.parametrize("loop", HEALTHY, ids=lambda one: one.__name__)
def test_healthy_set_up_has_no_alarm(tmp_path, loop):
    found = run_rules(loop().run(tmp_path / "run"), OURS)
    assert [one for one in found if one.severity is not Severity.NOTICE] == []


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loop", FAULTY, ids=lambda one: one.__name__)
def test_wrong_set_up_is_found_by_its_rule(tmp_path, loop):
    found = run_rules(loop().run(tmp_path / "run"), OURS)
    rules = [one.rule for one in found if one.severity is not Severity.NOTICE]
    assert loop.rule in rules
    assert set(rules) <= {loop.rule, "learning_rate"}, [one.message for one in found]
    assert rules.count(loop.rule) == 1
    finding = next(one for one in found if one.rule == loop.rule)
    assert finding.advice
    assert finding.view is not None
    assert finding.view.name in {one.name for one in list_views()}


@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("wrong_output", {"patience": 0}, "at least 1"),
        ("learning_rate", {"high": -1.0}, "above 0"),
        ("unscaled_inputs", {"largest": "much"}, "expected"),
    ],
)
def test_wrong_threshold_is_told(name, wrong, sentence):
    with pytest.raises(ConfigError, match=sentence):
        find_rule(name)(**wrong)
