"""Every rule there is: wrong thresholds are refused, and a run without its facts is told why."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import RuleStatus
from tdbg_lab.rules import check_run, list_rules

from .made import Made

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.rules import Rule

OURS = [one for one in list_rules() if one.__module__.startswith("tdbg_lab.rules.")]
NUMBERS = [
    pytest.param(one, field.name, str(field.type), id=f"{one.name}.{field.name}")
    for one in OURS
    for field in fields(one)
    if {part.strip() for part in str(field.type).split("|")} & {"int", "float"}
]
SIGNED = {"threshold_tanh_min", "threshold_sigmoid_min"}
"""May be as low as one likes, but not above their upper ends."""
ALWAYS = {"exploding_tensor", "max_initialization_time", "stalled_training"}
"""Look at whatever is written, and when."""
WHY = re.compile(r"[A-Z](?:[^.]|\.\.\.|\.\w)+\.")
"""One sentence; dots within are those of ``handle.record(...)``."""
SENTENCE = re.compile(r"[^.]*\.\w+ is .+; expected [^.]+(\.\d+[^.]*)*\.")


@pytest.mark.parametrize(("rule", "field", "kind"), NUMBERS)
def test_nonsense_for_a_number_is_refused_in_one_sentence(rule: type[Rule], field: str, kind: str) -> None:
    wrong = ["much", True, 12345 if field in SIGNED else -12345] + ([math.nan] if "float" in kind else [2.5])
    for value in wrong:
        with pytest.raises(ConfigError) as told:
            rule(**{field: value})
        named = field.replace("_min", "_max") if field in SIGNED and value == 12345 else field
        assert str(told.value).startswith(f"{rule.name}.{named} is ")
        assert SENTENCE.fullmatch(str(told.value)), str(told.value)


def test_rules_without_their_facts_say_why_in_one_sentence(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(6):
        made.step(step, {"anything": 1.0})
    made.end()
    findings, states = check_run(made.path, [one() for one in OURS])
    assert findings == []
    told = {state.rule: (state.status, state.reason) for state in states}
    assert {name for name, (status, _) in told.items() if status is not RuleStatus.NOT_APPLICABLE} == ALWAYS
    assert [reason for status, reason in told.values() if status is RuleStatus.NOT_APPLICABLE
            and not WHY.fullmatch(reason)] == []  # fmt: skip
