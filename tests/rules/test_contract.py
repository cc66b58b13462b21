"""What every rule may rely on: warm-up, confirmation, facts of the run, ranks, raw values, silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Finding, Kind, Severity
from tdbg_lab.rules import Needs, Rule
from tdbg_lab.rules.feed import Feed
from tdbg_lab.rules.runner import Runner
from tdbg_lab.store import FindingsWriter, read_findings

from .made import Made

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Above(Rule):
    warm_up: int = 0
    confirmations: int = 1
    calm: int = 2
    limit: float = 1.0
    regex: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("limit", at_least=0, below=100)

    def needs(self) -> Needs:
        return Needs(kinds=(Kind.LOSS,))

    def check(self, step: int, run: Any) -> Finding | None:
        _, values = run.scalars("loss/x")
        return self.finding(step, "high", tensor="loss/x") if values[-1] > self.limit else None

    def idle(self, quiet_s: float, run: Any) -> Finding | None:
        return self.finding(run.step, f"quiet for {quiet_s:.0f} s") if quiet_s > 0 else None


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run")


def test_rule_is_not_asked_while_it_warms_up(made: Made) -> None:
    for step in range(6):
        made.step(step, {"loss/x": 5.0}).step(step, {"accuracy": 1.0})
    (finding,) = made.check(Above(warm_up=4))[0]
    assert finding.step_first == 4


def test_finding_needs_its_confirmations_in_a_row_and_begins_at_the_first(made: Made) -> None:
    for step, value in enumerate([5, 5, 0, 5, 5, 5, 0, 0, 0]):
        made.step(step, {"loss/x": value})
    (finding,) = made.check(Above(confirmations=3))[0]
    assert (finding.step_first, finding.step_last) == (3, 5)


def test_finding_ends_after_its_calm_steps(made: Made) -> None:
    for step, value in enumerate([5, 0, 5, 0, 0, 5]):
        made.step(step, {"loss/x": value})
    assert [(one.step_first, one.step_last) for one in made.check(Above())[0]] == [(0, 2), (5, 5)]


def test_run_says_what_it_is(made: Made) -> None:
    feed = Feed.of(made.path, [])
    assert feed.view.info.id == made.folder.info.id
    assert feed.view.info.world_size == 1


def test_ranks_are_told_apart_for_a_rule_that_asks(tmp_path: Path) -> None:
    made = Made(tmp_path / "ranks", ranks=2)
    for step in range(3):
        for rank in range(2):
            made.step(step, {"gradient/a.weight": np.full((2, 2), 1.0 + rank)}, rank=rank)
    feed = Feed.of(made.path, [Needs(steps=2, per_rank=True)])
    list(feed.steps(last=True))
    assert feed.view.ranks == (0, 1)
    frames = feed.view.rank_frames(Kind.GRADIENT, 2)
    assert {rank: [frame.step for frame in own] for rank, own in frames.items()} == {0: [1, 2], 1: [1, 2]}
    assert [frames[rank][-1].block.mean[0] for rank in (0, 1)] == [1.0, 2.0]
    assert feed.view.frame().block.mean[0] == 1.5

    merged = Feed.of(made.path, [Needs()])
    list(merged.steps(last=True))
    assert merged.view.ranks == (0, 1)
    assert merged.view.rank_frames(Kind.GRADIENT) == {}


def test_raw_values_are_read_when_a_rule_asks(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made.step(0, {"latent": np.zeros(3)}).step(1, {"latent": np.zeros(3)})
    made.writers[0].write_raw(1, {"latent": np.arange(3.0)}, mode="train")
    made.end()
    feed = Feed.of(made.path, [Needs(raw=True)])
    list(feed.steps(last=True))
    value = feed.view.raw("latent")
    assert value is not None
    assert value.tolist() == [0, 1, 2]
    assert feed.view.raw("latent", 0) is None
    assert feed.view.raw("other") is None
    without = Feed.of(made.path, [Needs()])
    list(without.steps(last=True))
    assert without.view.raw("latent") is None
    monkeypatch.setattr("tdbg_lab.rules.raw_values.MAX_RULE_RAW_BYTES", 20)
    small = Feed.of(made.path, [Needs(raw=True)])
    list(small.steps(last=True))
    assert small.view.raw("latent") is None


def test_silence_is_asked_about_while_the_run_goes_on(made: Made) -> None:
    made.step(0, {"loss/x": 0.0})
    runner = Runner(made.path, [Above()])
    runner.work()
    assert not runner.findings
    runner._feed._clock = lambda: 1e9
    runner.work()
    (finding,) = runner.findings
    assert finding.message.startswith("quiet for")
    assert not made.check(Above())[0]


def test_fix_and_cause_survive_the_findings_file(made: Made) -> None:
    writer = FindingsWriter(made.path)
    fix = {"setting": "learning_rate", "factor": 0.1, "soon": True, "limit": float("inf")}
    writer.append(Finding("a", Severity.WARNING, 0, 1, "m", id="a-1", fix=fix, cause="b-1"))
    writer.append(Finding("b", Severity.WARNING, 0, 1, "m", id="b-1"))
    writer.close()
    first, second = read_findings(made.path)
    assert (first.fix, first.cause) == (fix, "b-1")
    assert (second.fix, second.cause) == (None, "")


@pytest.mark.parametrize(
    ("fix", "read"),
    [
        ("[1]", None),
        ('"x"', None),
        ("{}", None),
        ('{"a": [1], "b": {"c": 1}, "d": 1}', {"d": 1}),
        ('{"a": "NaN"}', {"a": pytest.approx(float("nan"), nan_ok=True)}),
    ],
)
def test_fix_of_the_wrong_form_is_left_out(made: Made, fix: str, read: Any) -> None:
    folder = made.path / "findings"
    folder.mkdir()
    line = '{"rule": "a", "severity": "warning", "step_first": 0, "step_last": 0, "cause": 3, "fix": ' + fix
    (folder / "findings-000001.jsonl").write_text(line + "}\n")
    (finding,) = read_findings(made.path)
    assert finding.fix == read
    assert finding.cause == ""


def test_facts_are_bounded(made: Made) -> None:
    writer = FindingsWriter(made.path)
    fix = {str(number): "x" * 100_000 for number in range(300)}
    writer.append(Finding("a", Severity.WARNING, 0, 1, "m", id="a-1", fix=fix))
    writer.close()
    (finding,) = read_findings(made.path)
    assert finding.fix is not None
    assert len(finding.fix) == 256
    assert max(len(str(value)) for value in finding.fix.values()) == 65_536


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"limit": "3"}, "above.limit is '3'; expected a number."),
        ({"limit": True}, "above.limit is True; expected a number."),
        ({"limit": float("nan")}, "above.limit is nan; expected a number."),
        ({"limit": 100}, "above.limit is 100; expected a number at least 0 and below 100."),
        ({"warm_up": 1.5}, "above.warm_up is 1.5; expected a whole number."),
        ({"warm_up": -1}, "above.warm_up is -1; expected a number at least 0."),
        ({"confirmations": 0}, "above.confirmations is 0; expected a number at least 1."),
        ({"regex": "("}, "above.regex is '(', which is not a regular expression"),
        ({"regex": 1}, "above.regex is 1; expected a text or None."),
    ],
)
def test_wrong_threshold_is_told(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Above(**values)
    assert sentence in str(caught.value)


def test_group_is_one_of_the_known() -> None:
    assert Above.group == "custom"
    with pytest.raises(ConfigError, match="expected one of tensors, losses"):
        type("Odd", (Rule,), {"group": "odd"})
