"""What is captured can be read when a cell ends, though no further step comes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tdbg_lab.run import open_run

ATTACHED = """
import torch, tdbg_lab
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
handle = tdbg_lab.attach(
    model, optimizer=opt, store="runs/first", save_every=1000,
    collections=["losses", "scalars", {"name": "custom", "values": "both"}],
)
def train(n):
    for _ in range(n):
        opt.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        opt.step()
"""


@pytest.fixture
def attached(shell):
    shell.run_cell(ATTACHED).raise_error()
    yield shell
    shell.run_cell("handle.detach()").raise_error()


def losses():
    return open_run("runs/first").scalars("loss/objective").steps.tolist()


def test_the_last_steps_of_a_cell_are_written_when_it_ends(attached):
    attached.run_cell("train(77)").raise_error()
    assert losses() == list(range(77))
    assert open_run("runs/first").spans().step.max() >= 75
    attached.run_cell("train(3)").raise_error()
    assert losses() == list(range(80))


def test_what_is_logged_after_the_last_step_is_written_when_the_cell_ends(attached):
    attached.run_cell("train(20)\nhandle.log(accuracy=0.5)").raise_error()
    assert open_run("runs/first").scalars("accuracy").values.tolist() == [0.5]


def test_raw_values_of_the_last_step_are_written_when_the_cell_ends(attached):
    attached.run_cell("train(1)\nhandle.record('codes', torch.eye(3))").raise_error()
    attached.user_ns["handle"]._engine.writer.flush()  # they are written in the background
    assert (open_run("runs/first").tensor("codes").value(0) == np.eye(3)).all()


def test_a_line_that_asks_sees_the_steps_of_its_own_cell(attached):
    attached.run_cell(
        "train(20)\n%tdbg status\nseen = len(tdbg_lab.open_run('runs/first').scalars('loss/objective'))"
    ).raise_error()
    assert attached.user_ns["seen"] == 20


def test_the_run_of_a_handle_is_as_it_is_now(attached):
    attached.run_cell("train(20)\nseen = [len(handle.run.scalars('loss/objective'))]").raise_error()
    attached.run_cell("train(9)\nseen.append(len(handle.run.scalars('loss/objective')))").raise_error()
    assert attached.user_ns["seen"] == [20, 29]


def test_a_cell_that_ends_leaves_another_thread_alone_that_trains(attached):
    attached.run_cell("train(1)").raise_error()
    trained = threading.Thread(target=attached.user_ns["train"], args=(300,))
    trained.start()
    while trained.is_alive():
        attached.run_cell("pass").raise_error()
    trained.join()
    attached.user_ns["handle"].detach()
    assert losses() == list(range(301))
    assert attached.user_ns["handle"].problems == []
