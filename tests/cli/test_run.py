"""``tdbg run``: a program runs as with plain ``python``, and what it trains is captured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tdbg_lab as tdbg
from tdbg_lab.cli import run

ROOT = Path(tdbg.__file__).parent.parent
PLAIN = [sys.executable]
WATCHED = [sys.executable, "-m", "tdbg_lab.run", "--quiet"]

FACTS = """
'''Doc.'''
import json, sys
x: int = 1
names = {name: repr(value).split(' at 0x')[0] for name, value in sorted(globals().items()) if name not in
         ("__builtins__", "__loader__", "__spec__", "json", "sys")}
spec = None if __spec__ is None else [__spec__.name, __spec__.origin, __spec__.parent]
loader = [type(__loader__).__name__, __loader__.path, __loader__.name]
heavy = [name for name in ("numpy", "torch", "pandas", "pyarrow", "numba") if name in sys.modules]
is_main = sys.modules["__main__"].__dict__ is globals()
print(json.dumps([names, spec, loader, sys.argv, sys.path, is_main, heavy]))
"""

ENDINGS = """
import atexit, os, signal, sys
atexit.register(lambda: print("bye"))
def inner():
    try:
        {}["a"]
    except KeyError as error:
        raise ValueError("bad") from error
match sys.argv[1]:
    case "raise": inner()
    case "group": raise ExceptionGroup("many", [ValueError(1), TypeError(2)])
    case "code": sys.exit(7)
    case "interrupt": os.kill(os.getpid(), signal.SIGINT); signal.pause()
    case "hook":
        sys.excepthook = lambda kind, error, tail: print("mine", kind, tail.tb_frame.f_code.co_name)
        inner()
"""


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}


def done(command, cwd, **more):
    result = subprocess.run(
        command, cwd=cwd, env=environment(**more), capture_output=True, text=True, timeout=280, check=False
    )
    return result.returncode, result.stdout, result.stderr


@pytest.fixture
def folder(tmp_path):
    files = {
        "facts.py": FACTS,
        "ends.py": ENDINGS,
        "wrong.py": "x = = 1\n",
        "imports.py": "import broken\n",
        "broken.py": "1 / 0\n",
        "pkg/__init__.py": "",
        "pkg/__main__.py": FACTS,
        "pkg/other.py": "",
        "pkg/mod.py": FACTS + "\nfrom . import other\nfrom .other import __name__ as name\nprint(name)\n",
        "dir/__main__.py": FACTS + "\nimport beside\n",
        "dir/beside.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["facts.py", "a", "-m", "--store", "b"],
        ["./pkg/../facts.py"],
        ["-m", "pkg.mod", "a"],
        ["dir", "b"],
    ],
    ids=" ".join,
)
def test_program_sees_what_it_sees_under_plain_python(folder, arguments):
    plain = done([*PLAIN, *arguments], folder)
    assert plain[0] == 0, plain[2]
    assert json.loads(plain[1].splitlines()[0])[-1] == []  # no library of ours is there before the program's
    assert done([*WATCHED, *arguments], folder) == plain


@pytest.mark.parametrize("rank", ["--local_rank=1", "--local-rank=1"])
def test_rank_that_a_launcher_puts_first_is_the_scripts(folder, rank):
    plain = done([*PLAIN, "facts.py", rank, "a"], folder)
    assert rank in json.loads(plain[1])[3]
    assert done([*WATCHED, rank, "facts.py", "a"], folder) == plain


@pytest.mark.parametrize("ending", ["raise", "group", "code", "interrupt", "hook"])
def test_program_ends_as_under_plain_python(folder, ending):
    plain = done([*PLAIN, "ends.py", ending], folder)
    assert done([*WATCHED, "ends.py", ending], folder) == plain


@pytest.mark.parametrize("script", ["wrong.py", "imports.py"])
def test_broken_program_shows_its_own_traceback_only(folder, script):
    plain = done([*PLAIN, script], folder)
    assert plain[0] == 1
    assert done([*WATCHED, script], folder) == plain


def test_program_that_is_not_there_is_said_in_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert run(["run", "nope.py"]) == 2
    assert (
        capsys.readouterr().err == "Error: The script 'nope.py' cannot be read: No such file or directory.\n"
    )
    assert run(["run", "-m", "nope.more"]) == 2
    assert "There is no module named 'nope.more'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--save-every", "some"], "'some' is neither a whole number nor auto"),
        (
            ["--save-every", "0"],
            'save_every is 0 (int); expected a whole number of steps, at least 1, or "auto"',
        ),
        (["--config", "no.yaml"], "The configuration file no.yaml cannot be read"),
        (["--rules", "dead_relu,dead_rely"], "There is no rule 'dead_rely'. Did you mean 'dead_relu'?"),
    ],
)
def test_wrong_setting_is_said_before_anything_runs(folder, monkeypatch, capsys, options, sentence):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert run(["run", *options, "facts.py"]) == 2
    shown = capsys.readouterr()
    assert sentence in shown.err
    assert shown.out == ""


def test_nothing_to_attach_to_is_said_in_one_sentence(folder):
    code, _, error = done([sys.executable, "-m", "tdbg_lab", "run", "facts.py"], folder)
    assert code == 0
    assert error == (
        "tdbg: nothing to attach to: the program imported no framework that tdbg-lab knows. "
        "Of a loop of its own, tdbg_lab.attach() records what it is told.\n"
    )
    assert not (folder / "runs").exists()


def test_program_that_closes_its_streams_ends_as_under_plain_python(tmp_path):
    (tmp_path / "closes.py").write_text("import sys\nsys.stderr.close()\nsys.stdout.close()\n")
    command = [sys.executable, "-m", "tdbg_lab.run", "closes.py"]
    assert done(command, tmp_path) == done([*PLAIN, "closes.py"], tmp_path) == (0, "", "")


# -- with PyTorch ---------------------------------------------------------------------------------


def stripped_example() -> str:
    """examples/script.py without tdbg-lab: the same training, printed losses."""
    text = (ROOT / "examples" / "script.py").read_text()
    text = re.sub(r"import tdbg_lab as tdbg\n", "", text)
    text = re.sub(r"    with tdbg.attach\(.*?\) as handle:\n", "    if True:\n", text, flags=re.DOTALL)
    text = text.replace("            handle.log(epoch=epoch)\n", "")
    text = re.sub(
        r"    run = tdbg.open_run.*?\n\n\nif", "    print(loss.item())\n\n\nif", text, flags=re.DOTALL
    )
    assert "tdbg." not in text.replace("tdbg.attach", "")
    return text


def test_example_without_tdbg_is_captured_and_trains_the_same(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "script.py").write_text(stripped_example())
    plain = done([*PLAIN, "script.py", "--epochs", "1"], tmp_path)
    assert plain[0] == 0, plain[2]
    command = [sys.executable, "-m", "tdbg_lab.run", "--store", "runs/first", "--save-every", "7"]
    command += ["--rules", "none", "--no-profiler", "script.py", "--epochs", "1"]
    watched = done(command, tmp_path)
    assert watched[:2] == plain[:2]
    assert watched[2] == f"tdbg: captured {tmp_path / 'runs' / 'first'}.\n"
    recorded = tdbg.open_run(tmp_path / "runs" / "first")
    assert recorded.status == "finished"
    losses = recorded.scalars("loss/CrossEntropyLoss")
    assert losses.steps.tolist() == list(range(57))
    assert f"{losses.values[-1]:.4f}" == f"{float(plain[1]):.4f}"
    assert recorded.tensor("activation/1").steps().tolist() == list(range(0, 57, 7))


def test_place_that_does_not_exist_costs_the_program_nothing_and_is_said(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "script.py").write_text(
        "import torch\n"
        "model = torch.nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "model(torch.ones(1, 2)).sum().backward()\n"
        "optimizer.step()\n"
        "print('trained')\n"
    )
    (tmp_path / "taken").write_text("a file")
    command = [sys.executable, "-m", "tdbg_lab.run", "--store", "taken/first", "--no-profiler", "script.py"]
    code, out, error = done(command, tmp_path)
    assert (code, out) == (0, "trained\n")
    warning, summary = error.splitlines()
    assert "the program goes on. Cause: " in warning
    assert summary == "tdbg: nothing was captured, for the reason above."


SPAWNING = """
import torch, sys
from torch import nn
print("top", __name__, "tdbg_lab.capture.auto.pytorch" in sys.modules, flush=True)
def main():
    torch.set_num_threads(1)
    data = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context="spawn")
    model, criterion = nn.Linear(4, 1), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad(); criterion(model(x), y).backward(); optimizer.step()
    raise RuntimeError("after training")
if __name__ == "__main__":
    main()
"""


def test_spawned_workers_run_plain_and_a_failure_is_recorded(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "script.py").write_text(SPAWNING)
    command = [*WATCHED, "--store", "runs/first", "--rules", "none", "--no-profiler", "script.py"]
    code, out, error = done(command, tmp_path)
    assert code == 1
    assert out.splitlines() == ["top __main__ True", "top __mp_main__ False"]
    assert "tdbg_lab" not in error
    recorded = tdbg.open_run(tmp_path / "runs" / "first")
    assert (recorded.status, recorded.info.error) == ("failed", "RuntimeError: after training")
    assert recorded.last_step == 1
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["first"]


def test_switch_makes_it_a_plain_run(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "script.py").write_text(
        SPAWNING.replace('multiprocessing_context="spawn"', "").replace("=1, ", "=0")
    )
    code, out, _ = done([sys.executable, "-m", "tdbg_lab.run", "script.py"], tmp_path, TDBG_DISABLED="1")
    assert (code, out) == (1, "top __main__ False\n")
    assert not (tmp_path / "runs").exists()


REPLICA = """
import torch, torch.distributed as dist
from torch import nn
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
optimizer, criterion = torch.optim.SGD(model.parameters(), lr=0.1), nn.CrossEntropyLoss()
for step in range(3):
    generator = torch.Generator().manual_seed(10 * step + dist.get_rank())
    x, y = torch.randn(8, 4, generator=generator), torch.randint(0, 3, (8,), generator=generator)
    optimizer.zero_grad(); criterion(model(x), y).backward(); optimizer.step()
dist.destroy_process_group()
"""


def test_launcher_of_two_processes_makes_one_run_with_two_ranks(tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    (tmp_path / "script.py").write_text(REPLICA)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command += ["-m", "tdbg_lab.run", "--save-every", "1", "--rules", "none", "--no-profiler", "script.py"]
    code, _, error = done(command, tmp_path)
    assert code == 0, error
    (path,) = (tmp_path / "runs").iterdir()
    assert error.count("tdbg: captured") == 1
    recorded = tdbg.open_run(path)
    assert recorded.ranks() == [0, 1]
    assert recorded.status == "finished"
    losses = [recorded.scalars("loss/CrossEntropyLoss", rank=rank).values.tolist() for rank in (0, 1)]
    assert len(losses[0]) == len(losses[1]) == 3
    assert losses[0] != losses[1]
    assert recorded.tensor("activation/1").steps().tolist() == [0, 1, 2]
