"""Findings and rule states."""

from __future__ import annotations

import math
import os
import stat

import pytest

from tdbg_lab.records import Finding, RuleState, RuleStatus, Severity, ViewRef
from tdbg_lab.rules.presence import Unattended
from tdbg_lab.run import open_run
from tdbg_lab.store import (
    FindingsWriter,
    create_run,
    read_findings,
    read_rule_states,
    read_rule_status,
    write_rule_states,
)
from tdbg_lab.store.findings import announce_runner

FINDING = Finding(
    rule="exploding_tensor",
    severity=Severity.CRITICAL,
    step_first=3,
    step_last=9,
    message="a.weight is not finite.",
    tensor="a.weight",
    module="a",
    evidence={"max_abs": math.inf, "nan_frac": math.nan, "count": 3, "where": "layer"},
    advice=("Lower the learning rate.",),
    view=ViewRef("histogram", {"tensor": "a.weight"}),
    rank=1,
    time_ns=5,
    id="x",
)


def test_finding_comes_back_as_it_was_written(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = FindingsWriter(path)
    writer.append(FINDING)
    (found,) = read_findings(path)
    writer.close()
    writer.close()
    assert math.isnan(found.evidence["nan_frac"])
    assert str(found) == str(FINDING)  # as text: NaN equals NaN


def test_each_writer_has_its_own_file(tmp_path):
    path = create_run(tmp_path / "run").path
    for _ in range(2):
        FindingsWriter(path).close()
    assert sorted(p.name for p in (path / "findings").iterdir()) == [
        "findings-000001.jsonl",
        "findings-000002.jsonl",
    ]


def test_later_line_of_the_same_id_takes_the_place_of_the_first(tmp_path):
    from dataclasses import replace

    path = create_run(tmp_path / "run").path
    writer = FindingsWriter(path)
    for identity, last in (("a", 1), ("b", 1), ("", 1), ("a", 8), ("", 2)):
        writer.append(replace(FINDING, id=identity, step_last=last))
    writer.close()
    assert [(f.id, f.step_last) for f in read_findings(path)] == [("a", 8), ("b", 1), ("", 1), ("", 2)]


def test_torn_and_broken_lines_are_left_out(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = FindingsWriter(path)
    writer.append(FINDING)
    writer.close()
    file = path / "findings" / "findings-000001.jsonl"
    line = file.read_bytes()
    file.write_bytes(
        b"garbage\n[]\n{}\n" + b"[" * 99_999 + b"\n" + line + b'{"severity": "odd"}\n' + line[:-9]
    )
    assert len(read_findings(path)) == 1
    for size in range(len(line)):
        file.write_bytes(line[:size])
        assert read_findings(path) == []


def test_rule_states_come_back_and_wrong_ones_are_left_out(tmp_path):
    path = create_run(tmp_path / "run").path
    states = [RuleState("a", RuleStatus.ISSUE_FOUND, "why", 5, 2, 1.5, {"threshold": 0.1, "on": True})]
    write_rule_states(path, states, cursor="c")
    assert read_rule_states(path) == states
    for text in ("", "[]", '{"rules": 5}', '{"rules": [5, {}, {"status": "x"}, null]}'):
        (path / "findings" / "status.json").write_text(text)
        assert read_rule_states(path) == []


def test_run_sees_new_findings_when_it_is_refreshed(tmp_path):
    path = create_run(tmp_path / "run").path
    run = open_run(path)
    assert run.findings() == []
    FindingsWriter(path).append(FINDING)
    assert run.findings() == []
    assert run.refresh()
    assert len(run.findings()) == 1
    assert not run.refresh()


def test_findings_behind_a_link_are_not_read(tmp_path):
    path = create_run(tmp_path / "run").path
    other = create_run(tmp_path / "other").path
    FindingsWriter(other).append(FINDING)
    (path / "findings").symlink_to(other / "findings")
    assert read_findings(path) == []
    assert read_rule_states(path) == []


def test_runner_that_is_about_to_begin_leaves_what_the_last_one_said(tmp_path):
    path = create_run(tmp_path / "run").path
    state = RuleState("dead_relu", RuleStatus.NO_ISSUE, step_checked=7)
    write_rule_states(path, [state], doubted_since={"dead_relu": 5}, ended=True)
    before = read_rule_status(path)
    announce_runner(path)
    after = read_rule_status(path)
    assert read_rule_states(path) == [state]
    assert after["doubted_since"] == {"dead_relu": 5}
    assert after["heartbeat_ns"] > before["heartbeat_ns"]
    assert not {"ended", "pid"} & set(after)
    assert Unattended().for_s(path, 0.0) is None


@pytest.mark.skipif(not hasattr(os, "fchmod"), reason="needs the rights of POSIX")
@pytest.mark.parametrize(("run", "file"), [(0o2775, 0o644), (0o755, 0o644), (0o750, 0o640), (0o700, 0o600)])
def test_findings_are_for_those_who_may_read_and_write_the_run(tmp_path, run, file):
    """The process of the rules may be another user's than the training, and the next one its own again."""
    tmp_path.chmod(run)
    umask = os.umask(0o077)
    try:
        announce_runner(tmp_path)
        FindingsWriter(tmp_path).close()
    finally:
        os.umask(umask)
    folder = tmp_path / "findings"
    assert stat.S_IMODE(folder.stat().st_mode) == run
    assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {file}
    folder.chmod(0o711)
    announce_runner(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o711, "somebody may have changed that"
