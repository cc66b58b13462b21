from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time

import pandas as pd
import pytest

from tdbg_lab.cli import run
from tdbg_lab.records import Finding, Severity
from tdbg_lab.run import open_run
from tdbg_lab.run.asker import user_name
from tdbg_lab.store import FindingsWriter, answer, requests
from tdbg_lab.store.control import pending
from tdbg_lab.store.remote import parse_url
from tdbg_lab.store.remote.spool import Spooled, spool_path
from tdbg_lab.testing import fake_run
from tdbg_lab.testing.fake import FakeTraining


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current directory, with one run."""
    monkeypatch.chdir(tmp_path)
    fake_run(tmp_path / "runs" / "first", steps=30, layers=2)
    return tmp_path


def test_version_is_told(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tdbg, version ")


def test_help_names_every_command(capsys):
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    for name in ("runs", "rules", "report", "stop", "export", "demo", "doctor"):
        assert name in out


@pytest.mark.parametrize("group", [[], ["rules"]])
def test_help_says_in_a_line_what_each_command_does(group, capsys):
    assert run([*group, "--help"]) == 0
    commands = capsys.readouterr().out.partition("Commands:")[2].split("\n  ")[1:]
    assert len(commands) >= 4
    assert all(one.strip().endswith(".") and not one.strip().endswith("...") for one in commands)


def test_runs_are_listed(folder, capsys):
    fake_run(folder / "runs" / "live", status="running", steps=2, close=False)
    assert run(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("NAME")
    assert lines[1].split()[:3] == ["live", "running", "1"], "the last step of what is not sealed yet, too"
    assert "runs/first" in lines[2]


def test_list_that_is_cut_says_so(folder, capsys):
    for number in range(2):
        fake_run(folder / "runs" / f"more-{number}", steps=1)
    assert run(["runs", "--limit", "2"]) == 0
    cut = capsys.readouterr()
    assert len(cut.out.splitlines()) == 1 + 2
    assert "--limit" in cut.err
    assert run(["runs", "--limit", "3"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("root", ["elsewhere", "../{}/elsewhere", "{}"])
def test_path_of_a_run_is_what_other_commands_take(folder, capsys, root):
    deep = folder / "elsewhere" / "a folder" / ("long-" * 20)
    fake_run(deep / "run", steps=2)
    root = root.format(folder if root == "{}" else folder.name)
    assert run(["runs", root]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "long-" in line)
    assert run(["rules", shlex.split(line)[-1], "--recorded"]) == 0


def test_no_runs_says_how_to_make_one(tmp_path, capsys):
    assert run(["runs", str(tmp_path)]) == 0
    assert "attach(" in capsys.readouterr().out


def test_escape_sequences_of_a_run_do_not_reach_the_terminal(folder, capsys):
    open_run(folder / "runs" / "first").edit(name="\x1b[31mred\x07")
    assert run(["runs"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_nothing_that_a_run_says_drives_the_terminal(folder, capsys):
    """Names of rules and answers to requests stand in its files, which others may have written."""
    path = fake_run(folder / "runs" / "live", steps=2, status="running")
    odd = "\x1b]0;owned\x07"
    writer = FindingsWriter(path)
    writer.append(Finding(odd, Severity.WARNING, 0, 1, "A message.", id="a"))
    writer.append(Finding(odd, Severity.WARNING, 0, 1, "A message.", id="b", cause="a"))
    writer.close()
    for state, code in (("done", 0), ("refused", 2)):
        thread = threading.Thread(target=_answer_with, args=(path, state, f"said {odd}"))
        thread.start()
        assert run(["set", "live", "learning_rate=0.1", "--wait", "20"]) == code
        thread.join()
    assert run(["rules", "live", "--recorded"]) == 0
    captured = capsys.readouterr()
    assert captured.out.count("owned") == 4
    assert captured.err.count("owned") == 1
    assert not {"\x1b", "\x07"} & set(captured.out + captured.err)


def _answer_with(path, state, text):
    answer(path, _wait_for_a_request(path).id, state, text)


def _wait_for_a_request(path):
    while not (asked := pending(path)):
        time.sleep(0.01)
    return asked[0]


def test_names_in_other_scripts_are_listed_where_the_output_has_no_such_characters(folder):
    """As that of Windows has not, when it is a file or a pipe."""
    open_run(folder / "runs" / "first").edit(name="\u4e2d\u6587")
    done = subprocess.run(
        [sys.executable, "-m", "tdbg_lab", "runs"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        check=True,
    )
    assert rb"\u4e2d\u6587" in done.stdout


def test_output_of_a_program_that_is_launched_is_its_own(folder):
    (folder / "script.py").write_text("import sys; print(sys.stdout.errors)")
    command = [sys.executable, "-m", "tdbg_lab", "run", "--quiet", "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    plain = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, check=True)
    assert done.stdout == plain.stdout


def test_user_without_a_name_is_nobody(monkeypatch):
    def nameless():
        raise ModuleNotFoundError("No module named 'pwd'")  # Windows, up to Python 3.12

    monkeypatch.setattr("getpass.getuser", nameless)
    assert user_name() == ""


def test_export_writes_csv_and_parquet(folder, capsys):
    assert run(["export", "first", "--csv"]) == 0
    assert run(["export", "runs/first", "-o", "out/all.parquet"]) == 0
    expected = open_run(folder / "runs" / "first").to_pandas()
    for frame in (pd.read_csv("first.csv"), pd.read_parquet("out/all.parquet")):
        assert len(frame) == len(expected)
        assert set(frame.columns) >= {"tensor", "mode", "step", "value", "mean", "std"}
    assert not list(folder.glob(".*tmp"))
    assert run(["export", "first", "first.csv"]) == 2
    assert (
        "exists; choose another path, or say force (--force on the command line)" in capsys.readouterr().err
    )
    assert run(["export", "first", "first.csv", "--force"]) == 0


def test_exported_event_files_are_imported_again(folder, capsys):
    assert run(["export", "first", "--to", "tensorboard", "logs"]) == 0
    assert run(["import", "logs", "runs/again", "--name", "again"]) == 0
    said = capsys.readouterr().out
    assert "runs/again" in said
    assert "values of TensorBoard" in said
    first, again = open_run(folder / "runs" / "first"), open_run(folder / "runs" / "again")
    assert again.info.name == "again"
    assert set(again.tensor_names()) == set(first.tensor_names())


def test_folder_that_may_not_be_read_is_not_one_without_runs(folder, capsys, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert run(["runs", "runs"]) == 2
    assert "The folder 'runs' may not be read by this user" in capsys.readouterr().err


def test_report_on_a_run_with_the_longest_name_is_written(folder, capsys):
    name = "n" + "é" * 127
    (folder / "runs" / "first").rename(folder / name)
    assert run(["report", name, "--notebook"]) == 0
    assert capsys.readouterr().out == f"n{'é' * 99}-report.ipynb\n"


def test_report_is_written(folder, capsys):
    assert run(["report", "first", "-o", "page.html"]) == 0
    assert capsys.readouterr().out == "page.html\n"
    assert (folder / "page.html").stat().st_size > 100_000
    assert run(["report", "first", "--notebook"]) == 0
    assert capsys.readouterr().out == "first-report.ipynb\n"
    assert json.loads((folder / "first-report.ipynb").read_text())["nbformat"] == 4


def test_stop_asks_the_training(folder, capsys):
    path = fake_run(folder / "runs" / "live", status="running", steps=2, close=False)
    assert run(["stop", "live", "--reason", "enough"]) == 0
    (request,) = requests(path)
    assert (request.kind, request.reason, request.state) == ("stop", "enough", "pending")


def test_stop_that_waits_tells_how_the_run_ended(folder, capsys):
    training = FakeTraining(folder / "runs" / "live", layers=1)
    training.step()
    thread = threading.Thread(target=lambda: _wait_for_a_request(training.path) and training.end("failed"))
    thread.start()
    assert run(["stop", "live", "--wait", "20"]) == 0
    thread.join()
    assert capsys.readouterr().out == "failed\n"


def test_set_does_not_wait_for_a_run_that_has_ended(folder, capsys):
    training = FakeTraining(folder / "runs" / "live", layers=1)
    training.step()
    thread = threading.Thread(target=lambda: _wait_for_a_request(training.path) and training.end("finished"))
    thread.start()
    assert run(["set", "live", "lr=0.5", "--wait", "20"]) == 2
    thread.join()
    assert "refused learning_rate = 0.5: the training ended before it came to that" in capsys.readouterr().err


def test_run_whose_name_has_a_slash_is_found(folder, capsys):
    open_run(folder / "runs" / "first").edit(name="warm-up/first")
    assert run(["set", "warm-up/first"]) == 0


def test_rules_say_of_a_run_without_a_step_that_none_was_checked(folder, capsys):
    fake_run(folder / "runs" / "none", steps=0)
    assert run(["rules", "none", "--rule", "dead_relu"]) == 0
    assert "-1" not in capsys.readouterr().out


def test_set_asks_the_training_and_shows_what_came_of_it(folder, capsys):
    path = fake_run(folder / "runs" / "live", status="running", steps=2, close=False)
    asked = ["set", "live", "lr*=0.1", "clip_norm=1", "--group", "0", "--reason", "too fast", "--wait", "0"]
    assert run(asked) == 0
    assert capsys.readouterr().out == "asked to set learning_rate[0] x 0.1, clip_norm = 1\n"
    first, second = requests(path)
    assert (first.kind, first.reason) == ("set", "too fast")
    answer(path, first.id, "done", "from step 2 on: optimizer/lr/0 from 1 to 0.1", result={"step": 2})
    answer(path, second.id, "refused", "no optimizer is known yet")
    assert run(["set", "live"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1].startswith("2     learning_rate[0] x 0.1  done")
    assert said[2].startswith("-     clip_norm = 1           refused")
    assert run(["set", "live", "lr=0.5", "--wait", "0.2"]) == 2
    assert "has not answered within 0.2 s" in capsys.readouterr().err


def test_profile_asks_the_training(folder, capsys):
    path = fake_run(folder / "runs" / "live", status="running", steps=2, close=False)
    assert run(["profile", "live", "--steps", "3", "--python", "off"]) == 0
    assert capsys.readouterr().out == "asked to profile\n"
    (request,) = requests(path)
    assert (request.kind, request.arguments["steps"], request.arguments["python"]) == ("profile", 3, "off")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["stop", "first"], "nothing to stop"),
        (["stop", "first", "--wait", "nan"], "nan is no number of seconds; expected 0 or more"),
        (["stop", "first", "--wait", "-1"], "not in the range x>=0"),
        (["profile", "first", "--seconds", "nan"], "expected"),
        (["set", "first", "lr=0.1"], "nothing to set"),
        (["set", "first", "lr"], "'lr' is not a setting"),
        (["set", "first", "momentum=0.9"], "There is no setting 'momentum'"),
        (["profile", "first"], "nothing to profile"),
        (["profile", "first", "--steps", "0"], "expected a whole number from 1 to 1000"),
        (["stop", "nowhere"], "no run 'nowhere'"),
        (["rules", "no/where"], "no run in 'no/where'"),
        (["export", "first"], "Say in which format: --to csv, parquet"),
        (["import", "no/where"], "There is nothing at"),
        (["export", "first", "--csv", "--regex", "("], "regular expression"),
        (["report", "first", "--notebook", "-o", "page.html"], "page.html must end in .ipynb"),
        (["report", "first", "--notebook", "--xgboost"], "--xgboost writes a page only"),
        (["report", "first", "--xgboost", "-o", "page.ipynb"], "--xgboost writes a page only"),
        (["report", "first", "-o", "/proc/no/page.html"], "cannot be written"),
        (["runs", "no/such"], "does not exist"),
        (["nonsense"], "No such command"),
        (["demo", "--port", "99999999"], "port"),
    ],
)
def test_errors_are_one_sentence_and_code_2(folder, capsys, arguments, words):
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_unexpected_error_is_one_line(folder, capsys, monkeypatch):
    monkeypatch.setattr("tdbg_lab.run.list_runs", lambda *_a, **_k: 1 / 0)
    assert run(["runs"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "ZeroDivisionError" in err


def test_closed_pipe_is_no_trouble(folder):
    command = f"{sys.executable} -c 'from tdbg_lab.cli import main; main()' runs | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, env=os.environ, check=False
    )
    assert done.stderr == ""


def test_command_is_light(folder):
    code = (
        "import sys; from tdbg_lab.cli import run; run(['runs']); "
        "print([m for m in ('torch', 'tornado', 'IPython', 'plotly', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.fixture
def spooled(folder, monkeypatch):
    """A run in the spool that was never sent."""
    monkeypatch.setenv("TDBG_SPOOL", str(folder / "spool"))
    place = parse_url("s3://bucket/runs/first")
    found = Spooled(fake_run(spool_path(place), steps=2))
    found.set_place(place, chief=True)
    return found


def test_sync_finds_a_run_by_what_it_says_of_it(spooled, capsys):
    for named in ("first", "s3://bucket/runs/first", "s3://bucket/runs/first/", str(spooled.path)):
        assert run(["sync", "--list", named]) == 0
        assert "bytes wait in" in capsys.readouterr().out


def test_sync_names_what_there_is_instead_of_a_wrong_name(spooled, capsys):
    assert run(["sync", "--list", "frist"]) == 2
    assert capsys.readouterr().err == (
        "Error: There is no run 'frist' in the spool: it holds s3://bucket/runs/first.\n"
    )
    shutil.rmtree(spooled.path)
    assert run(["sync", "frist"]) == 2
    assert "it is empty" in capsys.readouterr().err
