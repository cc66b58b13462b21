"""Beginnings and ends: cells run again, kernels restarted, children forked, memory over time."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import torch
from capture_training import Net, batch, train
from torch import nn

import tdbg_lab
from tdbg_lab import open_run
from tdbg_lab.capture import open_handles
from tdbg_lab.errors import ConflictError, TrainingStopped
from tdbg_lab.store import requests

ROOT = Path(tdbg_lab.__file__).parent.parent


def test_running_the_cell_again_detaches_the_first_handle_and_says_so(attach, tmp_path, caplog):
    handles = []
    for _ in range(2):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        handles.append((attach(model, optimizer=optimizer), model))
        train(model, optimizer, 2)
    first, second = (handle for handle, _ in handles)
    assert not first.attached
    assert second.attached
    assert "is detached now" in caplog.text
    assert (first.run_path, second.run_path) == (tmp_path / "run", tmp_path / "run-2")
    assert str(open_run(first.run_path).status) == "finished"
    assert open_handles() == [second]


def test_restarted_kernel_resumes_the_run_or_makes_a_new_one(attach, tmp_path):
    for _ in range(2):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        handle = attach(model, optimizer=optimizer, if_exists="resume")
        train(model, optimizer, 2)
        handle.detach()
    assert handle.run_path == tmp_path / "run"
    assert handle.run.steps(tensor="conv.weight").tolist() == [0, 1, 2, 3]
    with pytest.raises(ConflictError):
        attach(Net(), if_exists="error")


def test_resumed_run_goes_on_with_the_next_step_also_after_a_last_evaluation(attach):
    for _ in range(3):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with attach(model, optimizer=optimizer, if_exists="resume") as handle:
            train(model, optimizer, 2)
            model.eval()
            model(batch(9)[0])
    run = open_run(handle.run_path)
    assert run.steps(mode="train").tolist() == [0, 1, 2, 3, 4, 5]
    assert run.steps(mode="eval").tolist() == [2, 4, 6]


def test_leaving_the_with_block_says_how_the_run_ended(attach, tmp_path):
    with attach(Net(), store=tmp_path / "fine") as fine:
        pass
    with pytest.raises(ZeroDivisionError), attach(Net(), store=tmp_path / "bad") as bad:
        _ = 1 / 0
    with pytest.raises(KeyboardInterrupt), attach(Net(), store=tmp_path / "cut") as cut:
        raise KeyboardInterrupt
    ended = [open_run(one.run_path) for one in (fine, bad, cut)]
    assert [str(run.status) for run in ended] == ["finished", "failed", "stopped"]
    assert ended[1].info.error == "ZeroDivisionError: division by zero"


def test_stop_request_ends_training_at_the_end_of_a_step(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    train(model, optimizer, 2)
    handle._engine.control._next_s = 0.0
    open_run(handle.run_path).request_stop("loss exploded", by="test")
    with pytest.raises(TrainingStopped, match="stopped at step 3: loss exploded") as stopped:
        train(model, optimizer, 50)
    assert stopped.value.step == 3
    assert handle.stop_requested
    assert not handle.attached
    run = open_run(handle.run_path)
    assert str(run.status) == "stopped"
    assert run.steps(tensor="conv.weight").tolist() == [0, 1, 2]
    assert [(one.state, one.answer) for one in requests(handle.run_path)] == [("done", "stopped at step 3")]
    train(model, optimizer, 1)  # nothing of ours is left


@pytest.mark.parametrize("given", [True, False], ids=["optimizer given", "optimizer found"])
def test_on_stop_is_called_instead_and_may_detach(attach, given):
    reasons = []

    def on_stop(reason):
        reasons.append(reason)
        handle.detach()

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer if given else None, on_stop=on_stop)
    open_run(handle.run_path).request_stop("enough")
    train(model, optimizer, 3)
    assert reasons == ["enough"]
    assert str(open_run(handle.run_path).status) == "stopped"
    handle.detach()
    assert not optimizer._optimizer_step_post_hooks
    assert not optimizer._optimizer_step_pre_hooks


def test_unknown_requests_are_refused(attach):
    from tdbg_lab.store import request

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    request(handle.run_path, "dance")
    train(model, optimizer, 1)
    assert requests(handle.run_path)[0].state == "refused"


def test_stop_without_an_optimizer_comes_at_the_next_forward(attach):
    model = nn.Linear(2, 2)
    handle = attach(model)
    model(torch.ones(1, 2))
    open_run(handle.run_path).request_stop("enough")
    handle._engine.control._next_s = 0.0
    with pytest.raises(TrainingStopped):
        model(torch.ones(1, 2))


# A program of its own forks: this one has threads of many libraries by now, and they may hold locks.
FORKING = """
import os, sys, torch
import tdbg_lab as tdbg

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
handle = tdbg.attach(model, optimizer=optimizer, store=sys.argv[1], save_every=1, profiler=False)

def train(steps):
    for _ in range(steps):
        model(torch.randn(4, 3)).mean().backward()
        optimizer.step()

train(1)
child = os.fork()
if child == 0:
    train(2)
    handle.log(child=1.0)
    handle.detach()
    os._exit(0 if handle._engine.open is False else 2)
assert os.waitpid(child, 0)[1] == 0
train(1)
handle.detach()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_writes_nothing_of_ours(tmp_path):
    path = tmp_path / "run"
    subprocess.run([sys.executable, "-c", FORKING, path], cwd=ROOT, check=True, timeout=120)
    run = open_run(path)
    assert run.steps(tensor="weight").tolist() == [0, 1]
    assert "child" not in run.tensor_names()
    assert str(run.status) == "finished"


def test_data_loader_workers_do_not_disturb(attach):
    from torch.utils.data import DataLoader, TensorDataset

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    loader = DataLoader(
        TensorDataset(torch.randn(8, 3)), batch_size=2, num_workers=2, multiprocessing_context="fork"
    )
    for _ in range(2):
        for (x,) in loader:
            model(x).mean().backward()
            optimizer.step()
    handle.detach()
    assert handle.run.steps(tensor="weight").tolist() == list(range(8))
    assert str(handle.run.status) == "finished"


SCRIPT = """
import sys, torch
import tdbg_lab as tdbg
torch.set_num_threads(1)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
tdbg.attach(model, optimizer=optimizer, store=sys.argv[1], save_every=1, profiler=False)
for _ in range(3):
    model(torch.randn(4, 3)).mean().backward()
    optimizer.step()
{end}
"""


@pytest.mark.parametrize(
    ("end", "status", "error"),
    [
        ("", "finished", None),
        ("raise ValueError('bad batch')", "failed", "ValueError: bad batch"),
        ("sys.exit(0)", "finished", None),
        ("import os; os._exit(1)", "crashed", None),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "crashed", None),
    ],
    ids=["end", "exception", "exit", "_exit", "kill"],
)
def test_process_that_ends_without_detach_leaves_a_run_that_reads_well(tmp_path, end, status, error):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(end=end))
    subprocess.run(
        [sys.executable, script, tmp_path / "run"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        timeout=120,
    )
    run = open_run(tmp_path / "run")
    assert str(run.status) == status
    assert run.info.error == error
    assert run.steps(tensor="weight").tolist() == [0, 1, 2]


@pytest.mark.slow
def test_memory_does_not_grow_over_ten_thousand_steps(attach):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    handle = attach(model, optimizer=optimizer, save_every=5)
    x = torch.randn(2, 4)

    def steps(n):
        for _ in range(n):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()

    steps(2000)
    tracemalloc.start()
    steps(2000)
    before = tracemalloc.get_traced_memory()[0]
    steps(6000)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    handle.detach()
    assert after - before < 600_000, f"{after - before} bytes more after 6000 steps"
    assert handle.step == 10_000


def test_other_ranks_write_rows_and_leave_the_status_to_the_chief(tmp_path):
    for rank in ("0", "1"):
        script = tmp_path / "script.py"
        script.write_text(SCRIPT.format(end="import os; os.environ['RANK'] == '0' and os._exit(0)"))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RANK": rank, "WORLD_SIZE": "2"}
        command = [sys.executable, script, tmp_path / "run"]
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    run = open_run(tmp_path / "run")
    assert run.ranks() == [0, 1]
    assert str(run.status) == "crashed", "only the chief says that the run has ended, and it was killed"
    assert run.tensor("weight").stats(0).count[0] == 2 * 3
