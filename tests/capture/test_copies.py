"""Copies to a device are a phase. ``meta`` stands for one: it takes the same way, without hardware."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
import torch

from tdbg_lab.capture.pytorch import copies

if TYPE_CHECKING:
    from collections.abc import Callable

    import tdbg_lab as tdbg

    Attach = Callable[..., tdbg.Handle]

METHODS = ("to", "cuda", "pin_memory")


@pytest.fixture
def device(monkeypatch):
    """The model counts as one on a device, and no copy is too short."""
    monkeypatch.setattr(copies, "_on_device", lambda _: True)
    monkeypatch.setattr(copies, "_LEAST_NS", 0)


def replaced() -> list[str]:
    return [name for name in METHODS if name in vars(torch.Tensor)]


def trainer():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def train(model, optimizer, steps, copy=lambda x: x.to("meta")) -> None:
    for step in range(steps):
        x = torch.full((3, 4), float(step))
        copy(x)
        optimizer.zero_grad()
        model(x.to(torch.float32)).pow(2).mean().backward()
        optimizer.step()


def spans(handle):
    return handle.run.spans(phases=["copy"])


@pytest.mark.usefixtures("device")
def test_each_copy_to_a_device_is_a_span_of_its_step(attach: Attach) -> None:
    model, optimizer = trainer()
    with attach(model, optimizer=optimizer, profiler=True) as handle:
        train(model, optimizer, 4)
    found = spans(handle)
    assert found["step"].tolist() == [0, 1, 2, 3]
    assert (found["duration_ns"] > 0).all()
    assert replaced() == []


@pytest.mark.usefixtures("device")
def test_what_is_no_copy_to_a_device_is_no_span(attach: Attach) -> None:
    def others(x: torch.Tensor) -> None:
        x.to(torch.float64)
        x.to("cpu")
        torch.empty(2, device="meta").to(torch.float64)
        thread = threading.Thread(target=lambda: x.to("meta"))
        thread.start()
        thread.join()

    model, optimizer = trainer()
    with attach(model, optimizer=optimizer, profiler=True) as handle:
        train(model, optimizer, 3, others)
        with handle.phase("mine"):
            torch.ones(3).to("meta")
    assert len(spans(handle)) == 0


@pytest.mark.usefixtures("device")
def test_training_is_the_same_and_errors_are_the_programs_own(attach: Attach) -> None:
    bare, seen = trainer(), trainer()
    train(*bare, 3)
    with attach(seen[0], optimizer=seen[1], profiler=True):
        train(*seen, 3)
        with pytest.raises(RuntimeError, match="nowhere"):
            torch.ones(2).to("nowhere")
        assert torch.ones(2).to(dtype=torch.int64, copy=True).tolist() == [1, 1]
        assert isinstance(seen[0].weight.to("meta"), torch.Tensor)
    assert all(torch.equal(a, b) for a, b in zip(bare[0].parameters(), seen[0].parameters(), strict=True))


@pytest.mark.usefixtures("device")
def test_compiled_code_is_not_broken_by_it(attach: Attach) -> None:
    model, optimizer = trainer()

    @torch.compile(fullgraph=True, backend="eager")
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float64) * 2

    with attach(model, optimizer=optimizer, profiler=True):
        assert twice(torch.ones(2)).tolist() == [2, 2]
    assert twice(torch.ones(3)).tolist() == [2, 2, 2]


@pytest.mark.usefixtures("device")
def test_methods_are_put_back_with_the_last_handle(attach: Attach) -> None:
    first, second = trainer(), trainer()
    one = attach(first[0], optimizer=first[1], profiler=True)
    two = attach(second[0], optimizer=second[1], profiler=True)
    assert replaced() == list(METHODS)
    one.detach()
    one.detach()
    assert replaced() == list(METHODS)
    train(*second, 2)
    two.detach()
    assert replaced() == []
    assert len(spans(two)) == 2
    assert len(spans(one)) == 0


def test_on_a_cpu_or_without_phases_nothing_is_replaced(attach: Attach, monkeypatch) -> None:
    model, optimizer = trainer()
    with attach(model, optimizer=optimizer, profiler=True):
        assert replaced() == []
    monkeypatch.setattr(copies, "_on_device", lambda _: True)
    with attach(model, optimizer=optimizer, profiler=False):
        assert replaced() == []
