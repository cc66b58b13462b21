"""Whatever fails in us, training goes on, the user is told once, and the run says so."""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
import threading
from functools import partial
from itertools import takewhile

import pytest
import torch
from capture_training import Net, train
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.capture import cost, gathered, plan, recorder
from tdbg_lab.capture.pytorch import losses, measuring, modules, optimizers, parameters, scaler, updates
from tdbg_lab.capture.pytorch.last_measured import LastMeasured
from tdbg_lab.errors import StoreError, TdbgError
from tdbg_lab.profiler.spans import PhaseRecorder
from tdbg_lab.stats import cpu
from tdbg_lab.stats.growing import GrowingBlock
from tdbg_lab.stats.repeated import Repeated
from tdbg_lab.store import RankWriter, RunFolder, outage, raw_writer, tail
from tdbg_lab.store import stream as store_stream
from tdbg_lab.store import writer as store_writer

WRITERS = ["append", "append_spans", "write_raw", "flush", "close"]
PLACES = [
    (measuring, "summarize_into"),
    (LastMeasured, "record"),
    (modules, "tensors_in"),
    (modules.ModuleProbe, "take"),
    (modules.ModuleProbe, "_know"),
    (parameters, "record_tensors"),
    (parameters.ParameterProbe, "record"),
    (parameters.ParameterProbe, "live"),
    (updates.UpdateProbe, "before"),
    (updates.UpdateProbe, "after"),
    (updates, "Samples"),
    (updates.Samples, "ratios"),
    (losses, "tensors_in"),
    (losses.LossProbe, "take"),
    (losses, "own_loss"),
    (optimizers.OptimizerWatch, "before"),
    (optimizers.OptimizerWatch, "after"),
    (optimizers.OptimizerWatch, "_rates"),
    (scaler.ScalerWatch, "_skip"),
    (plan.Due, "mask"),
    (recorder.Recorder, "move_to"),
    (recorder.Recorder, "flush"),
    (recorder.Recorder, "flush_rows"),
    (recorder.Recorder, "add_scalar"),
    (recorder.Recorder, "add_measured"),
    (Repeated, "add"),
    (GrowingBlock, "reserve"),
    (GrowingBlock, "block"),
    (recorder.Recorder, "add_problem"),
    (gathered, "concat"),
    (cost.CostMeter, "read"),
    (cost.CostMeter, "step_done"),
    (PhaseRecorder, "switch"),
    (PhaseRecorder, "close"),
    (RunFolder, "set_status"),
    *((RankWriter, name) for name in WRITERS),
]


class Fault(Exception):
    pass


def faulty(*_args, **_kwargs):
    raise Fault("injected")


def loop(handle, model, optimizer, criterion):
    criterion_losses = train(model, optimizer, 4, loss=criterion)
    handle.log(accuracy=0.5)
    handle.record("latent", torch.ones(3, 2), labels=[1, 2, 3])
    with handle.mode("eval"), handle.phase("mine"):
        model(torch.ones(2, 1, 8, 8))
    return criterion_losses


@pytest.mark.parametrize("place", PLACES, ids=lambda p: f"{p[0].__name__.rpartition('.')[2]}.{p[1]}")
@pytest.mark.parametrize("when", ["before attach", "after attach"])
def test_failure_in_any_part_of_capture_never_reaches_the_loop(attach, monkeypatch, place, when):
    torch.manual_seed(0)
    bare = Net()
    twin = Net()
    twin.load_state_dict(bare.state_dict())
    torch.manual_seed(1)
    expected = train(bare, torch.optim.SGD(bare.parameters(), lr=0.1), 4)

    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    owner, name = place
    inject = (owner, name, faulty)
    if when == "before attach" and name not in {"mask", "move_to"}:
        monkeypatch.setattr(*inject)
    handle = attach(twin, optimizer=optimizer, loss=criterion, strict=False, profiler=False)
    handle._engine.phases = PhaseRecorder(handle._engine.writer)
    monkeypatch.setattr(*inject)
    torch.manual_seed(1)
    assert loop(handle, twin, optimizer, criterion) == expected
    handle.detach()
    assert all(torch.equal(a, b) for a, b in zip(bare.parameters(), twin.parameters(), strict=True))


def test_failed_probe_is_told_once_and_recorded(attach, monkeypatch, caplog):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, strict=False)
    train(model, optimizer, 1)
    monkeypatch.setattr(updates.UpdateProbe, "before", faulty)
    with caplog.at_level(logging.WARNING, "tdbg_lab"):
        train(model, optimizer, 3)
    handle.detach()
    told = [record.getMessage() for record in caplog.records if "update_ratio" in record.getMessage()]
    assert len(told) == 1
    assert "step 1" in told[0]
    assert "Fault: injected" in told[0]
    problem = handle.problems[0]
    assert (problem.probe, problem.step, problem.message) == ("optimizer/update_ratio", 1, "Fault: injected")
    rows = [
        (row["step"], row["reason"])
        for chunk in takewhile(lambda one: one is not None, tail(handle.run_path))
        for row in chunk.table.to_pylist()
        if row["tensor"] == "tdbg/problem/optimizer/update_ratio"
    ]
    assert rows == [(1, "step 1: Fault: injected")]
    assert handle.run.steps(tensor="conv.weight").tolist() == [0, 1, 2, 3], "the other probes go on"


def test_strict_raises_what_fails(attach, monkeypatch):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    attach(model, optimizer=optimizer)
    monkeypatch.setattr(updates.UpdateProbe, "before", faulty)
    with pytest.raises(Fault):
        train(model, optimizer, 1)


def test_interrupt_by_the_user_passes_through(attach, monkeypatch):
    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, strict=False)
    monkeypatch.setattr(measuring, "summarize_into", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(model, optimizer, 1)
    monkeypatch.undo()
    train(model, optimizer, 2)
    handle.detach()
    assert not handle.problems
    assert handle.run.steps(tensor="conv.weight").tolist() == [0, 1]


def test_step_whose_measurement_broke_off_has_no_rows_under_wrong_names(attach, monkeypatch):
    cpu.warm_up()  # until they are ready, rows are not measured straight into the columns

    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, strict=False)
    train(model, optimizer, 1)
    with monkeypatch.context() as patch:
        patch.setattr(recorder.Recorder, "add_measured", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(model, optimizer, 1)
    train(model, optimizer, 2)
    handle.detach()
    assert not handle.problems
    run = handle.run
    assert run.steps(tensor="conv.weight").tolist() == [0, 2]
    assert run.tensor("conv.weight").stats(2).count.tolist() == [model.conv.weight.numel()]


def full(*_args, **_kwargs):
    raise StoreError(errno.ENOSPC, "No space left on device")


def test_full_disk_stops_the_writing_and_not_the_training(attach, monkeypatch, caplog):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, strict=False)
    train(model, optimizer, 2)
    monkeypatch.setattr(RankWriter, "append", full)
    train(model, optimizer, 3)
    monkeypatch.undo()
    handle.detach()
    assert handle.step == 5
    assert sum("is lost until" in record.getMessage() for record in caplog.records) == 1
    assert handle.run.steps(tensor="conv.weight").tolist() == [0, 1]


def test_capture_goes_on_when_a_full_disk_has_room_again(attach, monkeypatch, caplog):
    monkeypatch.setattr(outage, "RETRY_S", 0.0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, strict=False)
    train(model, optimizer, 2)
    with monkeypatch.context() as disk:
        disk.setattr(store_stream.StreamWriter, "_write", full)
        train(model, optimizer, 3)
        waiting = len(handle._engine.recorder.measured)
        train(model, optimizer, 10)
        assert len(handle._engine.recorder.measured) == waiting  # nothing piles up meanwhile
    train(model, optimizer, 3)
    handle.detach()
    run = handle.run
    assert run.steps(tensor="conv.weight").tolist() == [0, 1, 15, 16, 17]
    told = [one.getMessage() for one in caplog.records if "training goes on" in one.getMessage()]
    assert len([one for one in told if "is lost until it can be written again" in one]) == 1
    assert any("writing goes on; of what was captured since step 2, " in one for one in told)
    (problem,) = [one for one in handle.problems if one.probe == "store"]
    assert not problem.off
    assert "tdbg/problem/store" in run.tensor_names()


def test_rows_do_not_pile_up_when_the_store_is_off(attach, monkeypatch):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, strict=False)
    train(model, optimizer, 2)
    monkeypatch.setattr(RankWriter, "append", ValueError)  # not even a call: a fault of ours
    train(model, optimizer, 3)
    waiting = len(handle._engine.recorder.measured)
    train(model, optimizer, 10)
    assert len(handle._engine.recorder.measured) == waiting
    handle.detach()


@pytest.mark.parametrize("when", ["before attach", "after attach", "for a while"])
def test_everything_is_recorded_where_no_more_threads_may_be_started(attach, monkeypatch, when):
    """As in a container with a limit of processes, which threads count in, too: `attach` raised."""

    def refused(_thread):
        raise RuntimeError("can't start new thread")

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with monkeypatch.context() as patched:
        if when == "before attach":
            patched.setattr(threading.Thread, "start", refused)
        handle = attach(
            model,
            optimizer=optimizer,
            collections=["default", {"name": "r", "include": ".", "values": "raw"}],
        )
        patched.setattr(threading.Thread, "start", refused)
        train(model, optimizer, 300)  # past the rotation of a segment
        handle.flush()
        if when != "for a while":
            handle.detach()
    train(model, optimizer, 300)
    handle.detach()
    assert not handle.problems
    steps = 600 if when == "for a while" else 300
    raw = handle.run.tensor_names(kind="weight")[0]
    assert handle.run.steps().tolist() == [*range(steps)]
    assert list(handle.run.raw_steps(raw)) == [*range(steps)]


def test_deleted_run_directory_does_not_stop_training(attach, caplog):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(
        model,
        optimizer=optimizer,
        strict=False,
        collections=["default", {"name": "r", "include": ".", "values": "raw"}],
    )
    train(model, optimizer, 2)
    handle._engine.writer.flush()
    shutil.rmtree(handle.run_path, ignore_errors=True)
    train(model, optimizer, 300)  # past the rotation of a segment
    handle.detach()
    assert handle.step == 302
    told = [record.getMessage() for record in caplog.records]
    assert sum("the run directory was deleted" in one for one in told) == 1
    assert len(told) == len(set(told)) <= 3  # rows, raw values, the status at the end


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_read_only_directory_is_refused_before_training(attach, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError):
        attach(Net())


def test_attaching_to_something_else_is_refused_with_a_sentence(attach):
    from tdbg_lab.errors import CaptureError, ConfigError

    with pytest.raises(CaptureError, match=r"model is of type str; expected a torch\.nn\.Module"):
        attach("resnet")
    with pytest.raises(
        CaptureError, match=r"model is the class Net; expected an instance of it: Net\(\.\.\.\)"
    ):
        attach(Net)
    with pytest.raises(CaptureError, match="model is empty"):
        attach([])
    with pytest.raises(CaptureError, match=r"model is of type int; expected a torch\.nn\.Module\."):
        attach([1])
    xgboost = pytest.importorskip("xgboost")
    with pytest.raises(
        CaptureError, match=r"of type XGBRegressor.*callbacks=\[tdbg_lab\.XGBoostCallback\(\)\]"
    ):
        attach(xgboost.XGBRegressor())
    with pytest.raises(CaptureError, match=r"loss is of type function.*handle\.log_loss"):
        attach(Net(), loss=torch.nn.functional.mse_loss)
    with pytest.raises(CaptureError, match="optimizer '0' is of type int"):
        attach(Net(), optimizer=[1, 2])
    with pytest.raises(ConfigError, match="save_every"):
        attach(Net(), save_every=0)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"store": 5}, "store is 5 (int); expected the folder of a run, or s3://"),
        ({"store": ""}, "store is '' (str); expected the folder"),
        ({"store": "runs\0one"}, r"store is 'runs\x00one' (str); expected the folder"),
        ({"if_exists": "overwrite"}, "if_exists is 'overwrite' (str); expected 'new', 'resume' or 'error'."),
        ({"name": 5}, "name is 5 (int); expected a text."),
        ({"tags": "abc"}, "tags is 'abc' (str); expected a list of texts, such as ['baseline']."),
        ({"hyperparameters": [1]}, "hyperparameters is [1] (list); expected a mapping"),
        ({"first_step": -1}, "first_step is -1 (int); expected the number of a step, 0 or more."),
        ({"actions": "stop"}, "actions holds str; expected actions, such as StopTraining()."),
    ],
)
def test_what_is_wrong_about_the_run_is_said_before_anything_is_made(tmp_path, monkeypatch, given, sentence):
    from tdbg_lab.errors import ConfigError

    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        tdbg.attach(Net(), **{"store": "run", **given})
    assert sentence in str(caught.value)
    assert not list(tmp_path.iterdir())


def slow_disk(monkeypatch, kept):
    """The disk takes nothing before the training is done, and one tensor is as much as may wait for it."""
    write = raw_writer.RawWriter._write
    monkeypatch.setattr(
        raw_writer.RawWriter, "_write", lambda self, *args: (kept.wait(60), write(self, *args))[1]
    )
    monkeypatch.setattr(store_writer, "RawWriter", partial(raw_writer.RawWriter, queue_bytes=1))


@pytest.mark.parametrize("steps", [2, 5], ids=["of the last step", "of several"])
def test_raw_values_that_the_disk_is_too_slow_for_are_left_out_and_told_once(
    attach, monkeypatch, caplog, steps
):
    slow_disk(monkeypatch, kept := threading.Event())
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    raw = {"name": "raw", "tensors": ["weight"], "values": "raw"}
    with caplog.at_level(logging.WARNING, "tdbg_lab"):
        handle = attach(model, optimizer=optimizer, collections=[raw])
        for _ in range(steps):
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()
        threading.Timer(1, kept.set).start()  # the end waits for the disk
        handle.detach()
    assert handle.run.raw_steps("weight") == [0]
    told = [
        record.getMessage() for record in caplog.records if "raw values are left out" in record.getMessage()
    ]
    assert len(told) == 1
    assert "wait for the disk" in told[0]
    assert [problem.probe for problem in handle.problems] == ["raw values"]


@pytest.mark.parametrize(
    ("limit", "sentence"), [(1000, "where a step has more than"), (None, "raw values of latent are left out")]
)
def test_raw_values_that_no_file_takes_are_left_out_and_told(attach, monkeypatch, limit, sentence):
    if limit is not None:
        monkeypatch.setattr(recorder, "_MAX_RAW_BYTES", limit)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    latent = {"name": "latent", "tensors": ["latent"], "values": "both"}
    handle = attach(model, optimizer=optimizer, collections=[latent])
    for _ in range(3):
        handle.record("latent", torch.ones(300, 3, dtype=torch.complex128))
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    handle.detach()
    (problem,) = handle.problems
    assert sentence in problem.message


def test_steps_of_a_training_that_goes_on_are_numbered_from_its_checkpoint(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, first_step=100)
    train(model, optimizer, 3)
    handle.detach()
    assert handle.run.steps().tolist() == [100, 101, 102]
    again = attach(model, optimizer=optimizer, first_step=50, if_exists="resume")
    train(model, optimizer, 2)
    again.detach()
    assert again.run.steps().tolist() == [50, 51], (
        "what was made anew counts once, and what came after it not"
    )


def test_training_that_goes_on_with_fewer_processes_leaves_out_what_the_others_had(attach, tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer):
        train(model, optimizer, 4)
    shutil.copytree(tmp_path / "run" / "rank-00000", tmp_path / "run" / "rank-00001")
    with attach(model, optimizer=optimizer, first_step=2, if_exists="resume") as handle:
        train(model, optimizer, 2)
    counts = handle.run.stats("conv.weight", "count")["count"].tolist()
    size = model.conv.weight.numel()
    assert counts == [2 * size, 2 * size, size, size]


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (["dead_rely"], "There is no rule 'dead_rely'. Did you mean 'dead_relu'?"),
        ("defualt", "There is no rule 'defualt'. Did you mean 'default'?"),
        ({"dead_relu": {"patiance": 3}}, "patiance"),
    ],
)
def test_rules_that_do_not_exist_are_said_before_anything_is_opened(attach, tmp_path, rules, sentence):
    model = Net()
    with pytest.raises(TdbgError, match=re.escape(sentence)):
        attach(model, rules=rules)
    assert not any(module._forward_hooks for module in model.modules())
    assert not (tmp_path / "run").exists()


def test_failure_while_attaching_leaves_no_hooks_and_no_running_run(attach, monkeypatch, tmp_path):
    from tdbg_lab import list_runs
    from tdbg_lab.capture.pytorch import session

    monkeypatch.setattr(session, "hook_losses", faulty)
    model = Net()
    with pytest.raises(Fault):
        attach(model)
    assert not any(module._forward_hooks for module in model.modules())
    assert [str(one.status) for one in list_runs(tmp_path)] == ["failed"]
