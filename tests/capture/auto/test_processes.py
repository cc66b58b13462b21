"""``tdbg run`` captures what a program trains in processes that it starts."""

from __future__ import annotations

import importlib
from functools import partial
from multiprocessing import pool

import pytest
import torch
from torch import multiprocessing

import tdbg_lab as tdbg
from tdbg_lab.capture.auto import AutoWatch
from tdbg_lab.capture.origin import of_program

PROGRAM = """
import os, sys
import torch
from torch import distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

def train(rank, how):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    if how != "alone":
        place = f"file://{os.getcwd()}/meeting"
        distributed.init_process_group("gloo", init_method=place, rank=rank, world_size=2)
        model = DistributedDataParallel(model)
    optimizer, criterion = torch.optim.SGD(model.parameters(), lr=0.1), nn.CrossEntropyLoss()
    for step in range(6):
        optimizer.zero_grad()
        criterion(model(torch.randn(6, 4)), torch.randint(0, 3, (6,))).backward()
        optimizer.step()
        if how == "fails" and step == 3:
            raise ValueError(f"bad step on rank {rank}")
    if rank == 0:
        print("weights", sum(float(one.detach().double().sum()) for one in model.parameters()))
    if how != "alone":
        distributed.destroy_process_group()

class Worker(multiprocessing.get_context(sys.argv[1]).Process):
    def __init__(self, rank, how):
        super().__init__()
        self.rank, self.how = rank, how

    def run(self):
        train(self.rank, self.how)

if __name__ == "__main__":
    method, how, by = sys.argv[1:]
    context = multiprocessing.get_context(method)
    if by == "start_processes":
        multiprocessing.start_processes(train, (how,), nprocs=2, start_method=method)
    elif by == "pool":
        with context.Pool(2) as pool:
            pool.starmap(train, [(rank, how) for rank in range(2)])
    else:
        make = Worker if by == "class" else lambda *args: context.Process(target=train, args=args)
        processes = [make(rank, how) for rank in range(2)]
        for one in processes:
            one.start()
        for one in processes:
            one.join()
        assert "run" not in vars(processes[0])
        sys.exit(max(one.exitcode for one in processes))
"""

LIGHTNING = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import lightning.pytorch as pl

class Small(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        self.criterion = nn.CrossEntropyLoss()

    def training_step(self, batch, index):
        return self.criterion(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

if __name__ == "__main__":
    data = DataLoader(TensorDataset(torch.randn(24, 4), torch.randint(0, 3, (24,))), batch_size=4)
    options = "logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"
    quiet = dict.fromkeys(options, False)
    pl.Trainer(max_epochs=1, accelerator="cpu", devices=2, strategy=sys.argv[1], **quiet).fit(Small(), data)
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path


@pytest.fixture(scope="module")
def weights(python_in, tmp_path_factory):
    """What the two ranks print without us, however they are started."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "train.py").write_text(PROGRAM)
    return python_in(folder, "train.py", "fork", "together", "function").stdout


@pytest.fixture
def watched(python):
    """Runs a program under ``tdbg run``."""
    options = ["--store", "run", "--save-every", "2", "--rules", "none", "--no-profiler"]
    return lambda *program: python("-m", "tdbg_lab.run", *options, *program)


@pytest.mark.parametrize(
    ("method", "by"),
    [("spawn", "start_processes"), ("fork", "start_processes"), ("fork", "function"), ("spawn", "class")],
)
def test_ranks_that_the_program_starts_write_one_run(program, weights, watched, method, by):
    result = watched("train.py", method, "together", by)
    assert (result.returncode, result.stdout) == (0, weights), result.stderr
    assert weights.startswith("weights ")
    assert f"tdbg: captured {program / 'run'}." in result.stderr
    run = tdbg.open_run(program / "run")
    assert run.status == "finished"
    assert run.ranks() == [0, 1]
    for rank in run.ranks():
        assert len(run.scalars("loss/CrossEntropyLoss", rank=rank).steps) == 6
    assert run.tensor("activation/0").steps(mode="train").tolist() == [0, 2, 4]


@pytest.mark.parametrize("strategy", ["ddp_spawn", "ddp"])
def test_lightning_may_start_processes(tmp_path, watched, strategy):
    """By ``ddp`` it starts the script again for each of the other ranks."""
    pytest.importorskip("lightning")
    (tmp_path / "fit.py").write_text(LIGHTNING)
    result = watched("fit.py", strategy)
    assert result.returncode == 0, result.stderr
    assert f"tdbg: captured {tmp_path / 'run'}." in result.stderr
    run = tdbg.open_run(tmp_path / "run")
    assert (run.status, run.ranks(), run.last_step, run.problems) == ("finished", [0, 1], 2, [])
    assert run.tensor("activation/net.0").steps(mode="train").tolist() == [0, 2]


def test_processes_that_train_alone_write_a_run_each(program, watched):
    result = watched("train.py", "fork", "alone", "function")
    assert result.returncode == 0, result.stderr
    assert f"tdbg: captured {program / 'run'} and {program / 'run'}-2." in result.stderr
    assert all(tdbg.open_run(path).status == "finished" for path in (program / "run", program / "run-2"))


@pytest.mark.parametrize("by", ["start_processes", "function"])
def test_a_process_that_fails_says_so_as_without_us(program, watched, by):
    result = watched("train.py", "fork", "fails", by)
    assert result.returncode == 1
    assert "ValueError: bad step on rank" in result.stderr
    assert f"tdbg: captured {program / 'run'}." in result.stderr
    assert tdbg.open_run(program / "run").status in {"failed", "crashed"}  # the other may end the first


def test_processes_of_a_library_are_left_alone(program, watched):
    result = watched("train.py", "fork", "alone", "pool")
    assert result.returncode == 0, result.stderr
    assert "no training was seen in this process." in result.stderr
    assert not (program / "run").exists()


def test_functions_of_the_program_are_told_from_those_of_libraries(tmp_path, monkeypatch):
    (tmp_path / "its_part.py").write_text("def work(): pass")
    monkeypatch.syspath_prepend(tmp_path)
    work = importlib.import_module("its_part").work
    for own in (work, partial(work), type("Worker", (), {"__module__": "__main__"})):
        assert of_program(own)
    for other in (pool.worker, torch.utils.data._utils.worker._worker_loop, AutoWatch.start, None):
        assert not of_program(other)


def test_settings_that_no_process_can_be_told_leave_the_program_alone(tmp_path):
    original = multiprocessing.start_processes
    watch = AutoWatch({"store": tmp_path / "run", "checkpoint": lambda reason: None})
    watch.start()
    try:
        assert multiprocessing.start_processes is not original
        multiprocessing.spawn(abs, (), nprocs=1)
    finally:
        watch.stop()
    assert multiprocessing.start_processes is original
    assert "the settings cannot be handed to the processes that it started" in watch.summary()
