"""Saving, logging and callbacks of a training become phases by themselves; libraries stay as they were."""

from __future__ import annotations

import pickle
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

import tdbg_lab as tdbg

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Slow:
    """What takes a while to be saved."""

    def __reduce__(self) -> tuple[Any, ...]:
        time.sleep(0.002)
        return (int, ())


class Training:
    """Steps of a small model, captured."""

    def __init__(self, path: Path, **how: Any) -> None:
        self.path = path
        self.model = nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.handle = tdbg.attach(
            self.model, optimizer=self.optimizer, store=path / "run", strict=True, **how
        )

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.model(torch.ones(3, 4)).sum().backward()
        self.optimizer.step()

    def save(self) -> None:
        torch.save({"model": self.model.state_dict(), "more": Slow()}, self.path / "model.pt")

    def phases(self) -> Counter[str]:
        self.handle.detach()
        spans = tdbg.open_run(self.handle.run_path).spans()
        return Counter(spans["phase"].astype(str).tolist())

    def steps_of(self, phase: str) -> list[int]:
        spans = tdbg.open_run(self.handle.run_path).spans()
        return spans.loc[spans["phase"].astype(str) == phase, "step"].tolist()


def train(path: Path, between: Callable[[Training, int], object], steps: int = 6) -> Training:
    training = Training(path)
    for step in range(steps):
        training.step()
        between(training, step)
    return training


def test_saving_is_a_checkpoint_of_the_step_it_follows(tmp_path: Path) -> None:
    training = train(tmp_path, lambda one, step: one.save() if step in (2, 4) else None)
    assert training.phases()["checkpoint"] == 2
    assert training.steps_of("checkpoint") == [3, 5]


def test_saving_in_another_thread_is_none_of_the_training(tmp_path: Path) -> None:
    def save_apart(one: Training, _step: int) -> None:
        thread = threading.Thread(target=one.save)
        thread.start()
        thread.join()

    assert "checkpoint" not in train(tmp_path, save_apart, steps=3).phases()


def test_saving_in_the_thread_that_trains_counts_wherever_attach_was_called(tmp_path: Path) -> None:
    training = Training(tmp_path)

    def loop() -> None:
        training.step()
        training.save()

    thread = threading.Thread(target=loop)
    thread.start()
    thread.join()
    assert training.phases()["checkpoint"] == 1


def test_phase_of_the_user_keeps_its_time(tmp_path: Path) -> None:
    def save_named(one: Training, _step: int) -> None:
        with one.handle.phase("best model"):
            one.save()

    phases = train(tmp_path, save_named, steps=3).phases()
    assert phases["best model"] == 3
    assert "checkpoint" not in phases


def test_safetensors_imported_by_name_is_seen(tmp_path: Path) -> None:
    save_file = pytest.importorskip("safetensors.torch").save_file
    weights = {"a": torch.zeros(1_000_000)}
    training = train(tmp_path, lambda _one, _step: save_file(weights, tmp_path / "a.safetensors"), steps=2)
    assert training.phases()["checkpoint"] == 2


def test_tensorboard_is_logging(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(tmp_path / "events") as writer:
        values = torch.arange(100_000.0)
        training = train(tmp_path, lambda _one, step: writer.add_histogram("h", values, step), steps=3)
    phases = training.phases()
    assert phases["logging"] == 3
    assert "_tdbg_lab_listeners" not in vars(tensorboard.SummaryWriter.add_histogram)


def test_tensorboardx_is_logging(tmp_path: Path) -> None:
    tensorboardx = pytest.importorskip("tensorboardX")
    with tensorboardx.SummaryWriter(str(tmp_path / "events")) as writer:
        values = torch.arange(100_000.0).numpy()
        training = train(tmp_path, lambda _one, step: writer.add_histogram("h", values, step), steps=3)
    assert training.phases()["logging"] == 3


def test_mlflow_is_logging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    mlflow.set_experiment("test")  # the one of an earlier test is in another folder
    with mlflow.start_run():
        training = train(tmp_path, lambda _one, step: mlflow.log_metrics({"a": 1.0, "b": 2.0}, step), steps=3)
    assert training.phases()["logging"] == 3


def test_wandb_is_logging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(mode="offline", dir=tmp_path, project="test"):
        pixels = torch.rand(128, 128, 3).numpy()
        training = train(tmp_path, lambda _one, _step: wandb.log({"image": wandb.Image(pixels)}), steps=3)
    assert training.phases()["logging"] == 3


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")
def test_distributed_checkpoint_is_a_checkpoint(tmp_path: Path) -> None:
    checkpoint = pytest.importorskip("torch.distributed.checkpoint")
    weights = {"a": torch.zeros(1_000_000)}

    def save(_one: Training, step: int) -> None:
        checkpoint.save(weights, checkpoint_id=tmp_path / f"step-{step}")

    training = train(tmp_path, save, steps=2)
    assert training.phases()["checkpoint"] == 2


def test_functions_are_put_back_with_the_last_handle_that_listens(tmp_path: Path) -> None:
    original = torch.serialization._save
    first, second = Training(tmp_path / "a"), Training(tmp_path / "b")
    assert torch.serialization._save is not original
    (tmp_path / "a").mkdir(exist_ok=True)
    for one in (first, second):
        one.step()
    first.save()
    assert first.phases()["checkpoint"] == 1
    assert torch.serialization._save is not original
    assert second.phases()["checkpoint"] == 1
    assert torch.serialization._save is original


def test_wrapper_of_somebody_else_is_left_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.serialization._save
    training = Training(tmp_path)
    ours = torch.serialization._save

    def theirs(*args: Any) -> Any:
        return ours(*args)

    monkeypatch.setattr(torch.serialization, "_save", theirs)
    training.handle.detach()
    assert torch.serialization._save is theirs
    training.save()
    monkeypatch.undo()
    assert torch.serialization._save is ours
    torch.serialization._save = original


def test_what_saving_raises_passes_through(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.step()
    with pytest.raises((AttributeError, pickle.PicklingError), match="local object"):
        torch.save(lambda: None, tmp_path / "model.pt")
    training.save()
    assert training.handle.problems == []
    training.handle.detach()


def test_without_the_profiler_nothing_is_replaced(tmp_path: Path) -> None:
    original = torch.serialization._save
    training = Training(tmp_path, config={"profiler": False})
    assert torch.serialization._save is original
    training.handle.detach()
