"""What is done before a training stops."""

from __future__ import annotations

import pytest
import torch

from tdbg_lab.actions import ActionContext, StopTraining
from tdbg_lab.capture import control
from tdbg_lab.errors import StoreError, TrainingStopped
from tdbg_lab.records import Finding, Severity
from tdbg_lab.run import open_run
from tdbg_lab.store import FindingsWriter, outage, requests

FOUND = Finding("exploding_tensor", Severity.CRITICAL, 3, 3, "The loss is NaN.", id="f1")


def trained(attach, steps=3, **options):
    """A handle asked to stop because of `FOUND`, and the training that hears it."""
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, **options)
    writer = FindingsWriter(handle.run_path)
    writer.append(FOUND)
    writer.close()
    StopTraining().perform(FOUND, ActionContext(handle.run_path))

    def train():
        for _ in range(steps):
            handle._engine.control._next_s = 0.0
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()

    return handle, train


def test_checkpoint_is_called_first_with_step_and_finding(attach):
    seen = []
    handle, train = trained(attach, checkpoint=lambda reason: seen.append((reason, handle.attached)))
    with pytest.raises(TrainingStopped, match="stopped at step 1: The loss is NaN"):
        train()
    ((reason, attached),) = seen
    assert attached
    assert reason == "The loss is NaN."
    assert (reason.step, reason.by) == (1, "rule exploding_tensor")
    assert reason.finding == FOUND
    assert (
        requests(handle.run_path)[0].answer == "stopped at step 1; the checkpoint callback was called first"
    )


def test_checkpoint_that_fails_is_told_and_the_stop_goes_on(attach):
    handle, train = trained(attach, checkpoint=lambda _reason: 1 / 0)
    with pytest.raises(TrainingStopped):
        train()
    assert "the checkpoint callback failed (ZeroDivisionError" in requests(handle.run_path)[0].answer
    assert str(open_run(handle.run_path).status) == "stopped"


def test_on_stop_is_given_the_finding_and_training_goes_on(attach):
    seen = []
    handle, train = trained(attach, on_stop=seen.append)
    train()
    assert [(str(one), one.step, one.finding) for one in seen] == [("The loss is NaN.", 1, FOUND)]
    assert handle.step == 3


def test_training_that_cannot_answer_hears_the_next_request_and_answers_later(attach, monkeypatch):
    """The disk is full for the owner of the training, and not for who asks."""
    seen, on_disk = [], control.answer
    monkeypatch.setattr(outage, "RETRY_S", 0.0)
    handle, train = trained(attach, on_stop=seen.append, strict=False)

    def full(*_args, **_kwargs):
        raise StoreError("Cannot write: No space left on device.")

    monkeypatch.setattr(control, "answer", full)
    train()
    handle.run.request_stop("again")
    train()
    assert seen == ["The loss is NaN.", "again"]  # each once
    assert [one.state for one in requests(handle.run_path)] == ["pending"] * 2
    monkeypatch.setattr(control, "answer", on_disk)
    train()
    assert [one.state for one in requests(handle.run_path)] == ["done"] * 2
    assert handle.problems == []


def test_request_that_is_taken_back_leaves_the_training_hearing(attach):
    seen = []

    def take_back(_reason):
        for one in (handle.run_path / "control").glob("*.json"):
            one.unlink()

    handle, train = trained(attach, checkpoint=take_back, on_stop=seen.append, strict=False)
    train()
    handle.run.request_stop("again")
    train()
    assert seen == ["The loss is NaN.", "again"]
    assert handle.problems == []
