from __future__ import annotations

import pytest

from tdbg_lab.notebook import load_ipython_extension, unload_ipython_extension
from tdbg_lab.records import RunStatus
from tdbg_lab.run import open_run
from tdbg_lab.store import create_run
from tdbg_lab.store.control import pending


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("atach", "There is no command '%tdbg atach'. Did you mean 'attach'?"),
        ("attach --model modl", "There is no variable 'modl'. Did you mean 'model'?"),
        ("attach --save-every x --model model", "--save-every takes a whole number or auto, not 'x'."),
        ("attach", "Say what to watch: %tdbg attach --model model --optimizer opt."),
        ("show histogrm", "There is no view 'histogrm'. Did you mean 'histogram'?"),
        (
            "show histogram --tenser conv1",
            "The view 'histogram' has no parameter 'tenser'. Did you mean 'tensor'?",
        ),
        ("stop", "There is no run yet: attach first (%tdbg attach --model model), or name one with --run."),
        ("status --run x", "'%tdbg status' has no option '--run'. It takes none."),
    ],
)
def test_magic_says_what_is_wrong_in_one_line_on_stderr(shell, capsys, line, sentence):
    shell.user_ns["model"] = object()
    result = shell.run_cell(f"%tdbg {line}")
    said = capsys.readouterr()
    assert result.success
    assert said.err == sentence + "\n"
    assert said.out == ""


def test_magic_prints_no_traceback_when_something_unforeseen_happens(shell, capsys, monkeypatch):
    monkeypatch.setattr("tdbg_lab.notebook.magics.run_line", lambda *_: 1 / 0)
    assert shell.run_cell("%tdbg status").success
    assert capsys.readouterr().err == "%tdbg failed: ZeroDivisionError: division by zero\n"


@pytest.mark.parametrize("command", ["", "help", "help attach", "attach --help"])
def test_magic_help_prints_text(shell, capsys, command):
    shell.run_cell(f"%tdbg {command}")
    assert "%tdbg" in capsys.readouterr().out


def test_magic_status_says_that_nothing_is_attached(shell, capsys):
    shell.run_cell("%tdbg status")
    assert capsys.readouterr().out == "Nothing is attached, and there is no run yet.\n"


def test_magic_status_names_the_newest_run_when_nothing_is_attached(shell, capsys, training):
    shell.run_cell("%tdbg status")
    assert "runs/fake (running, last step 11)" in capsys.readouterr().out.replace("\\", "/")


def test_magic_stop_leaves_a_request_in_the_run(shell, capsys, training):
    shell.run_cell('%tdbg stop --reason "seen enough"')
    (request,) = pending(training.path)
    assert (request.kind, request.reason, request.by) == ("stop", "seen enough", "notebook")
    assert capsys.readouterr().out == "Asked the run 'fake' to stop at the end of its current step.\n"


def test_magic_stop_says_of_a_run_that_has_ended_that_it_has(shell, capsys, tmp_path):
    create_run(tmp_path / "over").set_status(RunStatus.FINISHED)
    shell.run_cell("%tdbg stop --run over")
    assert "The run 'over' is finished: there is nothing to stop." in capsys.readouterr().err
    assert pending(tmp_path / "over") == []


def test_magic_rules_says_what_each_rule_found(shell, capsys, training):
    training.find()
    shell.run_cell("%tdbg rules --run runs/fake")
    said = capsys.readouterr().out
    run = open_run(training.path)
    assert run.rule_states()
    assert run.findings()
    assert all(state.rule in said for state in run.rule_states())
    assert all(finding.message in said for finding in run.findings())


def test_magic_rules_says_that_none_watch_the_run(shell, capsys, training):
    shell.run_cell("%tdbg rules")
    assert capsys.readouterr().out == (
        "No rules are watching the run 'fake': %tdbg rules default checks it now; "
        "attach with --rules default to have it watched.\n"
    )


def test_magic_report_writes_a_page(shell, capsys, training, tmp_path):
    shell.run_cell("%tdbg report seen.html")
    assert capsys.readouterr().out == "Wrote the report to seen.html.\n"
    assert "fake" in (tmp_path / "seen.html").read_text()


def test_magic_show_needs_a_notebook(shell, capsys, training):
    shell.run_cell("%tdbg show histogram")
    assert capsys.readouterr().err.startswith("show() needs a notebook; in a script, use ")


def test_extension_loads_twice_and_leaves_nothing_behind(shell):
    load_ipython_extension(shell)
    load_ipython_extension(shell)
    ours = [each for each in shell.Completer.custom_matchers if each.matcher_identifier == "tdbg_lab"]
    assert len(ours) == 1
    unload_ipython_extension(shell)
    assert "tdbg" not in shell.magics_manager.magics["line"]
    assert "tdbg" not in shell.magics_manager.magics["cell"]
    assert shell.Completer.custom_matchers == []


def test_magic_rules_is_a_table_with_icon_and_word(shell, training):
    training.find()
    table = shell.run_cell("%tdbg rules").result
    page = table._repr_html_()
    assert "\N{BLACK UP-POINTING TRIANGLE}</span> warning" in page
    assert "\N{CHECK MARK}</span> no issue" in page
    assert "<td" in page
    assert "75% of the units of layer" in page
    assert "Lower the learning rate." in page
    text = str(table)
    assert "\N{BLACK UP-POINTING TRIANGLE} warning" in text
    assert "dead_relu at step 6" in text


def test_magic_rules_escapes_what_a_run_says(shell, training):
    from tdbg_lab.records import Finding, Severity
    from tdbg_lab.store import FindingsWriter

    training.find()
    writer = FindingsWriter(training.path)
    writer.append(Finding("evil", Severity.CRITICAL, 1, 1, "<script>alert(1)</script>\x1b[2J", id="x"))
    writer.close()
    table = shell.run_cell("%tdbg rules").result
    assert "<script>" not in table._repr_html_()
    assert "\x1b" not in str(table)


def test_magic_rules_explain_says_what_a_rule_sees_and_found(shell, capsys, training):
    training.find()
    shell.run_cell("%tdbg rules explain dead_relu")
    said = capsys.readouterr().out
    assert "(dead_relu)" in said
    assert "Thresholds:" in said
    assert "75% of the units" in said
    assert "2. Use LeakyReLU." in said
    shell.run_cell("%tdbg rules explain dead_rely")
    assert "There is no rule 'dead_rely'. Did you mean 'dead_relu'?" in capsys.readouterr().err
    shell.run_cell("%tdbg rules explain")
    assert "Say which rule" in capsys.readouterr().err


def test_magic_rules_explain_of_a_rule_that_has_seen_no_step_tells_none(shell, capsys, training):
    from tdbg_lab.records import RuleState, RuleStatus
    from tdbg_lab.store.findings import write_rule_states

    write_rule_states(training.path, [RuleState("dead_relu", RuleStatus.IN_PROGRESS)])
    shell.run_cell("%tdbg rules explain dead_relu")
    assert ", has checked no step." in capsys.readouterr().out


def test_magic_set_leaves_a_request_in_the_run(shell, capsys, training):
    shell.run_cell("%tdbg set lr*=0.1 --group 1 --reason 'too fast'")
    assert "to set learning_rate[1] x 0.1 at the end" in capsys.readouterr().out
    (record,) = open_run(training.path).setting_changes()
    assert (record.by, record.reason, record.change.factor) == ("notebook", "too fast", 0.1)
    shell.run_cell("%tdbg set")
    assert "learning_rate[1] x 0.1 (notebook): pending." in capsys.readouterr().out
    shell.run_cell("%tdbg set momentum=1")
    assert "There is no setting 'momentum'" in capsys.readouterr().err


def test_completion_of_rules_and_settings(complete, training):
    assert "explain" in complete("%tdbg rules exp")
    assert "dead_relu" in complete("%tdbg rules explain dead")
    assert complete("%tdbg set clip") == ["clip_norm=", "clip_norm=off"]
    assert "--reason" in complete("%tdbg set lr=1 --rea")
