from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest

from tdbg_lab.actions import StopTraining
from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.rules import DeadRelu, Rule, find_rule, list_rules, resolve_rules
from tdbg_lab.rules.registry import Registry


@dataclass(frozen=True, kw_only=True)
class LoudGradient(Rule):
    limit: float = 2.0
    times: int | None = 3


def test_default_rules_have_causes_before_consequences() -> None:
    names = [rule.name for rule in resolve_rules("default")]
    assert set(names) <= {rule.name for rule in list_rules()}
    order = [
        names.index(name)
        for name in ("exploding_tensor", "dead_relu", "vanishing_gradient", "loss_not_decreasing")
    ]
    assert order == sorted(order)


def test_name_and_title_come_from_the_class() -> None:
    assert LoudGradient.name == "loud_gradient"
    assert LoudGradient.title == "Loud gradient"


def test_rules_come_as_names_classes_and_objects() -> None:
    made = resolve_rules(["dead_relu, exploding_tensor", LoudGradient, DeadRelu(patience=3)][:2])
    assert [rule.name for rule in made] == ["dead_relu", "exploding_tensor", "loud_gradient"]
    assert resolve_rules(LoudGradient(limit=7))[0].parameters == {"limit": 7, "times": 3}
    assert resolve_rules("none") == resolve_rules(None) == resolve_rules([]) == []


def test_parameters_are_read_by_their_type() -> None:
    (rule,) = resolve_rules(
        "dead_relu", {"dead_relu": {"threshold_layer": "60", "patience": "4", "classic": "true"}}
    )
    assert (rule.threshold_layer, rule.patience, rule.classic) == (60.0, 4, True)
    (rule,) = resolve_rules([LoudGradient], {"loud_gradient": {"times": "none"}})
    assert rule.times is None


@pytest.mark.parametrize(
    ("rules", "parameters", "word"),
    [
        ("dead_relu", {"dead_relu": {"thresold": "1"}}, "no parameter 'thresold'"),
        ("dead_relu", {"dead_relu": {"patience": "many"}}, "expected a whole number"),
        ("dead_relu", {"other": {"a": "1"}}, "does not run"),
        ("dead_relu", {"dead_relu": {"actions": "x"}}, "no parameter 'actions'"),
        (["dead_relu", DeadRelu()], {}, "more than once"),
        ([3], {}, "not a rule"),
    ],
)
def test_wrong_settings_are_told(rules, parameters, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        resolve_rules(rules, parameters)


def test_unknown_rule_is_told_with_the_nearest_name() -> None:
    with pytest.raises(NotFoundError, match="Did you mean 'dead_relu'"):
        find_rule("dead_rely")


def test_actions_may_be_one_or_a_list_and_are_no_parameter() -> None:
    stop = StopTraining()
    assert DeadRelu(actions=stop).actions == DeadRelu(actions=[stop]).actions == (stop,)
    assert "actions" not in DeadRelu(actions=stop).parameters


def test_rules_of_installed_packages_are_found_and_broken_ones_left_out(monkeypatch, caplog) -> None:
    here = f"{__name__}:LoudGradient"
    group = "tdbg_lab.rules"
    entries = [
        EntryPoint("loud_gradient", here, group),
        EntryPoint("broken", "no_such_module:Rule", group),
        EntryPoint("not_a_rule", "json:JSONDecoder", group),
    ]
    monkeypatch.setattr("tdbg_lab.rules.registry.entry_points", lambda *, group: entries)
    assert list(Registry().all()) == ["loud_gradient"]
    assert len(caplog.records) == 2


def test_two_rules_of_one_name_from_different_modules_clash() -> None:
    registry = Registry()
    registry.add(LoudGradient)
    registry.add(LoudGradient)
    other = type("LoudGradient", (Rule,), {"__module__": "elsewhere"})
    with pytest.raises(ConfigError, match="already"):
        registry.add(other)


def test_name_that_cannot_stand_on_the_wire_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a name"):
        type("Bad", (Rule,), {"name": "Bad Name"})


def test_rule_given_by_itself_takes_the_place_of_the_default_one() -> None:
    made = resolve_rules(["default", DeadRelu(patience=7)])
    assert [one.patience for one in made if isinstance(one, DeadRelu)] == [7]
    assert len(made) == len(resolve_rules("default"))
