from __future__ import annotations

import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import find_rule
from tdbg_lab.smdebug.exceptions import SMDebugValueError
from tdbg_lab.smdebug.rules import builtin_rule, builtin_rules


@pytest.mark.parametrize("name", builtin_rules())
def test_every_builtin_rule_is_one_of_ours_in_its_classic_setting(name: str) -> None:
    rule = builtin_rule(name)
    assert isinstance(rule, find_rule(rule.name))
    assert rule.parameters["classic"] is True


@pytest.mark.parametrize(
    ("name", "given", "ours"),
    [
        ("VanishingGradient", {"threshold": "0.0001"}, {"threshold": 0.0001}),
        ("vanishing_gradient", {"threshold": "0.0001"}, {"threshold": 0.0001}),
        ("AllZero", {"tensor_regex": ".*relu", "threshold": "90"}, {"regex": ".*relu", "threshold": 90.0}),
        (
            "Overfit",
            {"patience": "3", "ratio_threshold": "0.2"},
            {"patience_classic": 3, "ratio_threshold": 0.2},
        ),
        ("StalledTrainingRule", {"threshold": "60", "stop_training_on_fire": "True"}, {"threshold": 60.0}),
        ("stalled_training_rule", {"threshold": "60"}, {"threshold": 60.0}),
        ("TreeDepth", {"depth": "6"}, {"depth": 6.0}),
        ("SimilarAcrossRuns", {"other_trials": "runs/first"}, {"other": "runs/first"}),
        (
            "LowGPUUtilization",
            {"threshold_p95": "60", "window": "100", "scan_interval_us": "60000000"},
            {"threshold_p95": 60.0, "window": 100, "patience": 1000},
        ),
        ("IOBottleneck", {"io_threshold": "40"}, {"io_threshold": 40.0, "gpu_threshold": 10.0}),
        ("step_outlier", {"stddev": "5", "mode": "None"}, {"stddev": 5.0, "n_outliers": 10, "mode": None}),
        ("ClassImbalance", {"argmax": "True", "samples": "100"}, {"argmax": True, "samples": 100}),
    ],
)
def test_parameters_come_as_text_and_keep_their_meaning(name: str, given, ours) -> None:
    parameters = builtin_rule(name, given).parameters
    assert {key: parameters[key] for key in ours} == ours


def test_unknown_rule_and_parameter_are_told() -> None:
    with pytest.raises(SMDebugValueError, match="no built-in rule 'Nothing'"):
        builtin_rule("Nothing")
    with pytest.raises(ConfigError, match="has no parameter 'treshold'"):
        builtin_rule("TreeDepth", {"treshold": "6"})
