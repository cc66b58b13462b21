"""Which rules with which thresholds: mappings, YAML, JSON, command lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.rules import resolve_rules, run_rules
from tdbg_lab.rules.registry import DEFAULT

from .made import Made

if TYPE_CHECKING:
    from pathlib import Path


def names(rules: Any) -> list[str]:
    return [rule.name for rule in resolve_rules(rules)]


def test_mapping_changes_the_default_rules() -> None:
    rules = {
        rule.name: rule for rule in resolve_rules({"dead_relu": {"patience": 3}, "exploding_tensor": False})
    }
    assert set(rules) == set(DEFAULT) - {"exploding_tensor"}
    assert rules["dead_relu"].parameters["patience"] == 3


def test_mapping_without_the_default_rules_begins_with_none() -> None:
    assert names({"default": False, "dead_relu": True, "exploding_tensor": None}) == [
        "dead_relu",
        "exploding_tensor",
    ]
    assert names({}) == list(DEFAULT)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rules.yaml", "default: false\ndead_relu:\n  patience: 3\n  classic: true\n"),
        ("rules.yml", "{default: false, dead_relu: {patience: '3', classic: 'yes'}}"),
        ("rules.json", '{"default": false, "dead_relu": {"patience": 3, "classic": true}}'),
    ],
)
def test_file_is_read_as_the_mapping_it_holds(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    for given in (file, str(file)):
        (rule,) = resolve_rules(given)
        assert (rule.name, rule.parameters["patience"], rule.parameters["classic"]) == ("dead_relu", 3, True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- dead_relu", "rules.yaml holds a list; expected names of rules"),
        ("dead_relu: [1", "rules.yaml is neither YAML nor JSON"),
        ("dead_relu: 3", "dead_relu is 3; expected true, false or thresholds"),
        ("3: true", "3 is not the name of a rule"),
        ("dead_relu: {patience: ten}", "dead_relu.patience is 'ten'; expected a whole number."),
        ("dead_relu: {patience: 2.5}", "dead_relu.patience is 2.5; expected a whole number."),
        ("!!python/object/apply:os.system ['true']", "neither YAML nor JSON"),
        ("dead_relu: {since: 2026-13-45}", "neither YAML nor JSON: month must be in 1..12."),
        ("dead_relu: {patience: !!int ''}", "neither YAML nor JSON"),
        ("[" * 10_000, "neither YAML nor JSON"),
        ("a: " + "x" * 2**20, "larger than 1 MiB"),
    ],
)
def test_wrong_file_is_told(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        resolve_rules(file)
    assert sentence in str(caught.value)


def test_file_that_is_not_there_and_rules_that_do_not_exist_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml cannot be read: No such file"):
        resolve_rules(tmp_path / "none.yaml")
    with pytest.raises(NotFoundError, match="Did you mean 'dead_relu'"):
        resolve_rules({"dead_rely": False})
    with pytest.raises(NotFoundError, match="Did you mean 'dead_relu'"):
        resolve_rules({"dead_rely": {}})


def test_parameters_reach_a_check_after_the_fact(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(5):
        made.step(step, {"loss/x": float("nan")})
    severe = run_rules(made.path, ["exploding_tensor"], {"exploding_tensor": {"patience_loss": 2}})
    mild = run_rules(made.path, {"default": False, "exploding_tensor": {"patience_loss": 9}})
    assert [str(one.severity) for one in (*severe, *mild)] == ["critical", "warning"]
