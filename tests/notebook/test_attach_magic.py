"""`%tdbg attach`, `detach`, `status` and `%%tdbg` with a real model in a real shell."""

from __future__ import annotations

import time

import pytest

from tdbg_lab.records import RunStatus
from tdbg_lab.run import list_runs, open_run

torch = pytest.importorskip("torch")

STEPS = """
for _ in range({n}):
    opt.zero_grad()
    criterion(model(torch.ones(4, 3)), torch.zeros(4, 2)).backward()
    opt.step()
"""


@pytest.fixture
def namespace(shell):
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    shell.user_ns |= {
        "torch": torch,
        "model": model,
        "opt": torch.optim.SGD(model.parameters(), lr=0.1),
        "criterion": torch.nn.MSELoss(),
        "settings": {"lr": 0.1},
    }
    yield shell.user_ns
    shell.run_cell("%tdbg detach")


def _ran(shell, code):
    result = shell.run_cell(code)
    result.raise_error()
    return result.result


def test_attach_records_a_run_with_the_objects_named_on_the_line(shell, namespace, tmp_path):
    handle = _ran(
        shell,
        "%tdbg attach --model model --optimizer opt --loss criterion --store runs/first --save-every 2 "
        "--rules none --name trial --tag a,b --notes 'a note' --hyperparameters settings --no-profiler",
    )
    _ran(shell, STEPS.format(n=6))
    _ran(shell, "%tdbg detach")
    run = open_run(tmp_path / "runs" / "first")
    assert run.status == RunStatus.FINISHED
    assert run.steps(mode="train", tensor="activation/1").tolist() == [0, 2, 4]
    assert (run.info.name, run.info.tags, run.info.notes) == ("trial", ("a", "b"), "a note")
    assert run.info.hyperparameters == {"lr": 0.1}
    assert {"gradient/0.weight", "activation/1", "loss/MSELoss"} <= set(run.tensor_names())
    assert handle.run_path == run.path


def test_status_and_detach_speak_about_what_is_attached(shell, namespace, capsys):
    _ran(
        shell,
        "_ = get_ipython().run_line_magic('tdbg', 'attach --model model --optimizer opt --store runs/a')",
    )
    capsys.readouterr()
    _ran(shell, "%tdbg status")
    assert "runs/a" in capsys.readouterr().out
    _ran(shell, "%tdbg detach --run runs/other")
    assert capsys.readouterr().out == "Nothing is attached to runs/other.\n"
    _ran(shell, "%tdbg detach")
    assert capsys.readouterr().out.startswith("Detached from ")
    _ran(shell, "%tdbg detach")
    assert capsys.readouterr().out == "Nothing is attached.\n"


def test_attach_refuses_what_is_no_model_in_one_sentence(shell, namespace, capsys):
    _ran(shell, "%tdbg attach --model settings --optimizer opt")
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert not said.err.startswith("%tdbg failed")


def test_cell_magic_watches_for_the_duration_of_the_cell(shell, namespace, tmp_path):
    value = _ran(
        shell,
        "%%tdbg --model model --optimizer opt --store runs/cell --save-every 1 --no-profiler\n"
        + STEPS.format(n=3)
        + "6 * 7",
    )
    run = open_run(tmp_path / "runs" / "cell")
    assert value == 42
    assert run.status == RunStatus.FINISHED
    assert run.last_step == 2
    assert not model_hooks(namespace["model"])


def test_cell_magic_passes_an_exception_on_and_marks_the_run(shell, namespace, tmp_path):
    result = shell.run_cell(
        "%%tdbg --model model --optimizer opt --store runs/cell --no-profiler\n" + STEPS.format(n=1) + "1 / 0"
    )
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert open_run(tmp_path / "runs" / "cell").status == RunStatus.FAILED
    assert not model_hooks(namespace["model"])


def test_cell_magic_does_not_run_the_cell_when_the_line_is_wrong(shell, namespace, capsys, tmp_path):
    _ran(shell, "%%tdbg --model modl\nran = True")
    assert "Did you mean 'model'?" in capsys.readouterr().err
    assert "ran" not in namespace
    assert list_runs(tmp_path) == []


@pytest.mark.parametrize("body", ["1 +", "return 1"])
def test_cell_magic_makes_no_run_of_a_cell_that_is_no_python(shell, namespace, tmp_path, body):
    result = shell.run_cell(f"%%tdbg --model model --store runs/cell --no-profiler\nran = True\n{body}")
    assert isinstance(result.error_in_exec, SyntaxError)
    assert "ran" not in namespace
    assert list_runs(tmp_path) == []


@pytest.mark.parametrize("body", ["await f()", "seen = await f()", "[x async for x in f()]"])
def test_cell_magic_says_that_a_cell_cannot_wait(shell, namespace, capsys, tmp_path, body):
    _ran(shell, f"%%tdbg --model model --store runs/cell\nran = True\nasync def f(): ...\n{body}")
    assert capsys.readouterr().err.startswith("The cell has an await outside of functions, ")
    assert "ran" not in namespace
    assert list_runs(tmp_path) == []


def test_cell_magic_compiles_a_cell_as_any_other(shell, namespace):
    cell = "%%tdbg --no-profiler --rules none\nclass Options:\n    width: int = 3\n"
    _ran(shell, cell)
    assert namespace["Options"].__annotations__ == {"width": int}
    _ran(shell, "from __future__ import annotations")
    _ran(shell, cell)
    assert namespace["Options"].__annotations__ == {"width": "int"}


def test_cell_magic_shows_what_the_cell_raises_without_our_frames(shell, namespace, capsys):
    shell.run_cell("%%tdbg --model model --store runs/cell --no-profiler\n1 / 0")
    shell.run_cell("%%tdbg --no-profiler --rules none\n1 / 0")
    said = capsys.readouterr().out
    assert said.count("division by zero") == 2
    assert "magics.py" not in said


def model_hooks(model):
    """Hooks that are on any part of a model."""
    return [hook for part in model.modules() for hook in (*part._forward_hooks, *part._forward_pre_hooks)]


def test_semicolon_hides_the_value_of_a_watched_cell_as_of_any_other(shell, namespace):
    cell = "%%tdbg --store runs/found --no-profiler --rules none\n" + STEPS.format(n=1)
    assert _ran(shell, cell + "'value'") == "value"
    assert _ran(shell, cell + "'value';  # not shown") is None


def test_cell_without_a_model_finds_what_it_trains(shell, namespace, tmp_path, capsys):
    _ran(shell, "%%tdbg --store runs/found --save-every 1 --no-profiler\n" + STEPS.format(n=3))
    run = open_run(tmp_path / "runs" / "found")
    assert run.status == RunStatus.FINISHED
    assert {"activation/1", "loss/MSELoss"} <= set(run.tensor_names())
    assert run.tensor("activation/1").steps().tolist() == [0, 1, 2]
    assert "tdbg: captured" in capsys.readouterr().err


@pytest.mark.usefixtures("namespace")
def test_cell_that_raises_says_where_its_run_is(shell, tmp_path, capsys):
    cell = f"%%tdbg --store runs/found --no-profiler\n{STEPS.format(n=3)}\nraise ValueError('mine')"
    with pytest.raises(ValueError, match="mine"):
        _ran(shell, cell)
    assert "tdbg: captured" in capsys.readouterr().err
    assert open_run(tmp_path / "runs" / "found").status == RunStatus.FAILED


def test_cell_without_a_model_is_watched_by_the_default_rules(shell, namespace, tmp_path):
    _ran(shell, "%%tdbg --store runs/found --no-profiler\n" + STEPS.format(n=3))
    _ran(shell, "%%tdbg --store runs/alone --no-profiler --rules none\n" + STEPS.format(n=3))
    run = open_run(tmp_path / "runs" / "found")
    deadline = time.monotonic() + 60
    while not run.rule_states():  # they are in a process of their own
        assert time.monotonic() < deadline
        time.sleep(0.1)
        run.refresh()
    assert not open_run(tmp_path / "runs" / "alone").rule_states()


def test_cell_whose_model_is_captured_already_says_where(shell, namespace, tmp_path, capsys):
    _ran(shell, "%tdbg attach --model model --store runs/first --no-profiler")
    _ran(shell, "%%tdbg --store runs/second\n" + STEPS.format(n=3))
    where = tmp_path / "runs" / "first"
    assert f"tdbg: what trained here is captured already, in {where}." in capsys.readouterr().err
    _ran(shell, "%%tdbg --store runs/second\nx = 1")
    assert "tdbg: nothing to attach to" in capsys.readouterr().err
    _ran(shell, "%tdbg detach")


def test_cell_without_any_training_says_so(shell, namespace, capsys):
    _ran(shell, "%%tdbg --store runs/none\nx = 1")
    assert "tdbg: nothing to attach to" in capsys.readouterr().err
