from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Severity
from tdbg_lab.rules import InputBound, check_run

from .recorded import USUAL, Recorded, healthy

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.records import Finding

STARVED = {**USUAL, "data": 30.0}


class SlowRows(Dataset):
    """Rows that a slow disk holds: waiting for them takes no processor."""

    def __len__(self) -> int:
        return 120

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(0.02)
        return torch.full((8,), float(index)), index % 2


def train(path: Path, workers: int) -> tuple[list[Finding], float]:
    """Findings, and the median time that a step waits for data, s."""
    torch.set_num_threads(1)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(
        SlowRows(), batch_size=4, num_workers=workers, multiprocessing_context="fork" if workers else None
    )
    with tdbg.attach(model, optimizer=optimizer, store=path, strict=True) as handle:
        for x, y in loader:
            optimizer.zero_grad()
            with handle.phase("augment"):
                time.sleep(0.06)
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    spans = tdbg.open_run(handle.run_path).spans(phases=["data"])
    rule = InputBound(min_steps=10)
    return check_run(handle.run_path, [rule])[0], float(np.median(spans["duration_ns"])) / 1e9


def test_starved_training_is_told_and_the_advice_gains_what_it_says(tmp_path: Path) -> None:
    found, waited_s = train(tmp_path / "starved", 0)
    assert len(found) == 1
    (finding,) = found
    assert "Data loading is" in finding.message
    assert "num_workers=" in finding.message
    assert finding.evidence["num_workers_count"] == 0
    assert finding.evidence["wait_share_percent"] > 40
    assert finding.view is not None
    assert finding.view.name == "data_loading"
    workers = int(finding.evidence["advised_workers_count"])
    _, later_s = train(tmp_path / "fed", workers)
    step_s = waited_s + float(finding.evidence["rest_of_step_ms"]) / 1e3
    gained = (waited_s - later_s) / step_s
    assert gained > 0.4 * float(finding.evidence["gain_percent"]) / 100


def test_gain_follows_from_how_the_loader_is_set(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run").steps([STARVED] * 100).loader(num_workers=0, batch_size=16)
    made.load({("cpu", f"cpu{core}"): [20.0] * 4 for core in range(8)})
    finding = made.find(InputBound())
    assert finding is not None
    assert (
        finding.message
        == "Data loading is 44% of step time (30 of 68 ms): num_workers=1 would save up to 44%."
    )
    assert finding.evidence["gain_percent"] == pytest.approx(100 * 30 / 68)
    assert (
        finding.advice[0]
        == "Load in other processes: DataLoader(..., num_workers=1, persistent_workers=True)."
    )


@pytest.mark.parametrize(("steps", "found"), [(25, False), (40, True)])
def test_first_moments_of_a_training_tell_nothing(tmp_path: Path, steps: int, found) -> None:
    made = Recorded(tmp_path / "run").steps([STARVED] * steps).loader(num_workers=0, batch_size=16)
    assert (made.find(InputBound()) is not None) is found


def test_workers_that_cannot_keep_up_are_reckoned_with(tmp_path: Path) -> None:
    made = (
        Recorded(tmp_path / "run").steps([{**USUAL, "data": 38.0}] * 100).loader(num_workers=2, batch_size=16)
    )
    made.load({("cpu", f"cpu{core}"): [20.0] * 4 for core in range(8)})
    finding = made.find(InputBound())
    assert finding is not None
    assert "num_workers=4 would save up to 50%" in finding.message


def test_without_a_loader_it_is_not_called_loading(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run").steps([STARVED] * 100)
    made.load({("cpu", f"cpu{core}"): [20.0] * 4 for core in range(8)})
    finding = made.find(InputBound())
    assert finding is not None
    assert finding.message == (
        "What the loop does between two steps is 44% of step time (30 of 68 ms): if it loads data, "
        "a DataLoader with num_workers=1 would save up to 44%."
    )
    assert "several environments" in finding.advice[1]


def test_keras_is_told_what_it_has_to_load_ahead(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run", framework="keras").steps([STARVED] * 100)
    made.load({("cpu", f"cpu{core}"): [20.0] * 4 for core in range(8)})
    finding = made.find(InputBound())
    assert finding is not None
    assert finding.message.endswith(": if it loads data, loading ahead would save up to 44%.")
    assert "DataLoader" not in " ".join(finding.advice)
    assert "PyDataset with workers=1" in finding.advice[0]


def test_of_a_program_that_acts_it_is_a_notice(tmp_path: Path) -> None:
    finding = Recorded(tmp_path / "run").fact("gathers", 3.0).steps([STARVED] * 100).find(InputBound())
    assert finding is not None
    assert finding.severity is Severity.NOTICE
    assert finding.message == "Acting between two steps is 44% of step time (30 of 68 ms)."


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (healthy(100), "healthy"),
        ([{"data": 1.0, "forward": 0.5, "backward": 0.5}] * 300, "short steps of a tiny net"),
        ([USUAL, USUAL, USUAL, {**USUAL, "data": 900.0}] * 25, "a checkpoint now and then"),
        ([*healthy(5), STARVED, *healthy(30)], "slow first steps"),
    ],
)
def test_no_alarm(tmp_path: Path, steps: list[dict[str, float]], why: str) -> None:
    assert Recorded(tmp_path / "run").steps(steps).find(InputBound()) is None, why


def test_finding_ends_when_loading_becomes_fast(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run").steps([STARVED] * 100).steps(healthy(400))
    finding = made.find(InputBound())
    assert finding is not None
    assert finding.step_first < 100
    assert finding.step_last < 400


def test_not_applicable_without_phases(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run").steps([{"profile": 1.0}] * 4)
    assert made.why_not(InputBound()) == (
        "No step was timed so far; attach(..., profiler=True), the default, times them."
    )


def test_bad_thresholds_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"input_bound.max_share is 1.5; expected a number above 0 and below 1."
    ):
        InputBound(max_share=1.5)
