from __future__ import annotations

import pytest

from tdbg_lab.records import Finding, RuleState, RuleStatus, Severity
from tdbg_lab.run import open_run
from tdbg_lab.store import FindingsWriter, create_run, write_rule_states
from tdbg_lab.views import call_view

CHECKED, NOTICE, WARNING, CRITICAL = 1, 2, 3, 4


@pytest.fixture
def told(tmp_path):
    """A run of which only findings and states exist, checked up to step 99."""

    def make(findings, states=()):
        folder = create_run(tmp_path / "run")
        writer = FindingsWriter(folder.path)
        for finding in findings:
            writer.append(finding)
        writer.close()
        write_rule_states(folder.path, states)
        return open_run(folder.path)

    return make


def found(rule, severity, first, last, **more):
    return Finding(rule, severity, first, last, f"{rule} is bad.", id=f"{rule}:{first}", **more)


def heat(figure):
    return next(trace for trace in figure.data if trace.type == "heatmap")


STATES = (
    RuleState("quiet", RuleStatus.NO_ISSUE, step_checked=99),
    RuleState("late", RuleStatus.ISSUE_FOUND, step_checked=99, findings=1),
    RuleState("early", RuleStatus.ISSUE_FOUND, step_checked=99, findings=2),
    RuleState("pictures", RuleStatus.NOT_APPLICABLE, reason="No images were recorded."),
)
FINDINGS = (
    found("late", Severity.CRITICAL, 60, 99),
    found("early", Severity.NOTICE, 10, 50),
    found("early", Severity.WARNING, 40, 70),
)


def test_rules_stand_in_the_order_of_their_first_finding_and_cells_have_the_worst_severity(told):
    figure = call_view(told(FINDINGS, STATES), "rule_timeline")
    cells = heat(figure)
    assert list(cells.y) == ["Early", "Late", "Quiet"]
    early, late, quiet = cells.z
    assert [early[step] for step in (9, 10, 45, 70, 71)] == [CHECKED, NOTICE, WARNING, WARNING, CHECKED]
    assert [late[step] for step in (59, 60, 99)] == [CHECKED, CRITICAL, CRITICAL]
    assert set(quiet) == {CHECKED}
    assert cells.customdata[0][45] == 2
    assert list(figure.layout.yaxis.categoryarray) == ["Quiet", "Late", "Early"]
    assert "1 not shown" in figure.layout.meta["tdbg"]["caption"]


def test_marks_tell_severity_by_word_and_shape(told):
    figure = call_view(told(FINDINGS, STATES), "rule_timeline")
    marks = {trace.name: trace for trace in figure.data if trace.type == "scatter"}
    assert list(marks) == ["critical (1)", "warning (1)", "notice (1)"]
    assert len({trace.marker.symbol for trace in marks.values()}) == 3
    assert list(marks["critical (1)"].x) == [60]


@pytest.mark.parametrize(("show", "rows"), [("found", 2), ("applicable", 3), ("all", 4)])
def test_rules_shown_are_those_asked_for(told, show, rows):
    assert len(heat(call_view(told(FINDINGS, STATES), "rule_timeline", {"show": show})).y) == rows


def test_short_finding_in_a_long_run_is_not_lost_in_the_bins(told):
    states = (RuleState("late", RuleStatus.ISSUE_FOUND, step_checked=99_999, findings=1),)
    run = told([found("late", Severity.CRITICAL, 54_321, 54_321)], states)
    cells = heat(call_view(run, "rule_timeline", {"n_out": 100}))
    assert len(cells.x) == 100
    assert list(cells.z[0]).count(CRITICAL) == 1
    assert abs(cells.x[list(cells.z[0]).index(CRITICAL)] - 54_321) < 1000


def test_finding_of_a_rule_without_a_state_is_shown(told):
    cells = heat(call_view(told(FINDINGS), "rule_timeline"))
    assert list(cells.y) == ["Early", "Late"]


def test_rules_are_called_as_in_their_panel(told):
    run = told([found("dead_relu", Severity.WARNING, 3, 5), found("my_own", Severity.NOTICE, 9, 9)])
    for view, titles in (
        ("rule_timeline", ["Dead ReLU", "My own"]),
        ("rules", ["<b>My own</b>", "<b>Dead ReLU</b>"]),
    ):
        rows = call_view(run, view).layout.yaxis.categoryarray
        assert all(any(title in row for row in rows) for title in titles), rows
    assert "first: Dead ReLU at step 3" in call_view(run, "rule_timeline").layout.meta["tdbg"]["caption"]


def test_muted_rule_says_so(told):
    run = told(FINDINGS, STATES)
    run.edit(muted=["late"])
    assert "Late (muted)" in heat(call_view(run, "rule_timeline")).y


def test_line_leads_from_the_root_cause_to_what_follows(told):
    root = found("early", Severity.CRITICAL, 10, 50)
    run = told([root, found("late", Severity.WARNING, 30, 60, cause=root.id)], STATES)
    (line,) = [trace for trace in call_view(run, "rule_timeline").data if trace.name == "follows from"]
    assert list(line.x) == [10, 30, None]
    assert list(line.y) == ["Early", "Late", None]
