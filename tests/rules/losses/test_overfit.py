from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import Overfit, check_run
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path


def train(path: Path, *, samples: int, noisy: float) -> Path:
    """Digits with a share of wrong labels; evaluated every 10 steps."""
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    data = load_digits()
    x = torch.tensor(data.data / 16, dtype=torch.float32)
    y = torch.tensor(data.target)
    held = slice(1200, None)
    wrong = random.random(samples) < noisy
    labels = y[:samples].clone()
    labels[wrong] = torch.tensor(random.integers(0, 10, int(wrong.sum())))
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer, criterion = torch.optim.Adam(model.parameters(), 5e-3), nn.CrossEntropyLoss()
    with tdbg.attach(
        model, optimizer=optimizer, loss=criterion, store=path, profiler=False, collections=["losses"]
    ) as handle:
        for step in range(250):
            rows = torch.tensor(random.integers(0, samples, 32))
            optimizer.zero_grad()
            criterion(model(x[rows]), labels[rows]).backward()
            optimizer.step()
            if step % 10 == 9:
                with torch.no_grad(), handle.mode("eval"):
                    criterion(model(x[held]), y[held])
        return handle.run_path


def test_wrong_labels_learnt_by_heart_are_found(tmp_path: Path) -> None:
    (finding,), _ = check_run(train(tmp_path / "run", samples=100, noisy=0.4), [Overfit()])
    assert finding.evidence["rise_percent"] > 15
    assert finding.view is not None


def test_the_same_net_on_enough_data_is_left_alone(tmp_path: Path) -> None:
    assert check_run(train(tmp_path / "run", samples=1200, noisy=0.0), [Overfit()])[0] == []


def test_gap_alone_is_no_overfit_but_meets_the_classic_condition(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(60):
        made.step(step, {"loss/x": 1.0 * 0.97**step}).step(step, {"loss/x": 0.5 + 0.97**step}, mode="eval")
    assert made.check(Overfit())[0] == []
    assert len(made.check(Overfit(classic=True))[0]) == 1


@pytest.mark.parametrize(("ratio", "fires"), [(0.5, False), (0.49, True)])
def test_classic_threshold_is_exclusive(tmp_path: Path, ratio: float, fires) -> None:
    made = Made(tmp_path / "run")
    made.step(0, {"loss/x": 2.0}).step(0, {"loss/x": 3.0}, mode="eval")
    assert bool(made.check(Overfit(classic=True, ratio_threshold=ratio))[0]) is fires


def test_classic_finding_tells_numbers_of_one_evaluation(tmp_path: Path) -> None:
    """The last one may be infinite: it has no share of the training loss."""
    made = Made(tmp_path / "run")
    for step, held in enumerate([3.0, 3.0, float("inf")]):
        made.step(step, {"loss/x": 2.0}).step(step, {"loss/x": held}, mode="eval")
    (finding,), _ = made.check(Overfit(classic=True))
    assert finding.message == "loss/x is 3, 50.0 % above loss/x."


def test_logged_val_loss_goes_with_the_only_training_loss(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(60):
        made.step(step, {"loss/x": 0.95**step, "val_loss": 1.0 + abs(step - 20) * 0.02})
    (finding,), _ = made.check(Overfit())
    assert finding.tensor == "val_loss"


def test_evaluation_after_the_training_is_judged_too(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    held = {20: 1.5, 40: 1.2, 60: 1.0, 80: 1.05, 100: 1.1, 120: 1.2, 140: 1.25, 160: 1.3, 180: 1.35}
    for step in range(200):
        if step in held:
            made.step(step, {"loss/x": held[step]}, mode="eval")
        made.step(step, {"loss/x": 0.985**step})
    assert made.check(Overfit())[0] == []
    made.step(200, {"loss/x": 1.4}, mode="eval")
    (finding,), _ = made.check(Overfit())
    assert finding.step_first == 200


@pytest.mark.parametrize(("zeros", "found"), [(1.0, 0), (0.3, 1)])
def test_evaluations_with_zeros_instead_of_targets_are_not_compared(
    tmp_path: Path, zeros: float, found: int
) -> None:
    made = Made(tmp_path / "run")
    for step in range(80):
        made.step(step, {"loss/x": 0.97**step, "check/loss/x/target_zeros": 0.2})
        if step % 5 == 4:
            made.step(step, {"loss/x": 0.1 + 0.01 * step, "check/loss/x/target_zeros": zeros}, mode="eval")
    made.end()
    assert len(made.check(Overfit())[0]) == found


def test_an_evaluation_of_the_training_data_is_none_to_compare_with(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(4):
        made.step(step, {"loss/x": 1.0}).step(step, {"loss/x/training_data": 0.9}, mode="eval")
    assert "No evaluation loss" in made.check(Overfit())[1]["overfit"].reason


def test_run_without_evaluation_says_how_to_record_it(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(4):
        made.step(step, {"loss/x": 1.0})
    assert "handle.mode('eval')" in made.check(Overfit())[1]["overfit"].reason


@pytest.mark.parametrize(("held", "found"), [(1.9, 1), (0.9, 0)])
def test_little_of_what_is_learnt_holds_for_others_though_their_loss_does_not_rise(
    tmp_path: Path, held: float, found: int
) -> None:
    made = Made(tmp_path / "run")
    facts = {"check/loss/CrossEntropyLoss/kind": 1.0, "check/loss/CrossEntropyLoss/entropy": 2.3}
    for step in range(100):
        made.step(step, {"loss/CrossEntropyLoss": 0.2 + 2.1 * 0.9**step} | facts)
        if step % 10 == 9:
            loss = held + (2.3 - held) * 0.93**step
            made.step(step, {"loss/CrossEntropyLoss": loss} | facts, mode="eval")
    made.end()
    findings = made.check(Overfit())[0]
    assert [round(one.evidence["share_that_holds_percent"]) for one in findings] == [19] * found


def test_negative_ratio_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"overfit.ratio_threshold is -0.1"):
        Overfit(ratio_threshold=-0.1)


@pytest.mark.parametrize(
    ("rise", "trained", "lasts", "found"),
    [
        (0.12, 0.4, 20, 1),
        (0.03, 0.4, 20, 0),  # too little
        (0.12, 0.78, 20, 0),  # nothing was learnt meanwhile
        (0.12, 0.4, 5, 0),  # not for long
    ],
)
def test_small_rise_counts_when_it_lasts(
    tmp_path: Path, rise: float, trained: float, lasts: int, found: int
) -> None:
    made = Made(tmp_path / "run")
    for at in range(12 + lasts):
        to_best = min(at, 8) / 8
        held = 2.0 - to_best if at < 12 else 1.0 + rise
        train = 2.0 - 1.2 * to_best if at < 12 else trained
        made.step(10 * at, {"loss/a": train})
        made.step(10 * at, {"loss/a": held}, mode="eval")
    assert len(made.check(Overfit())[0]) == found


@pytest.mark.parametrize(("rows", "decay", "found"), [(24, 0.0, 1), (400, 1e-2, 0)])
def test_few_rows_learnt_by_heart_are_found_and_many_are_left_alone(
    tmp_path: Path, rows: int, decay: float, found: int
) -> None:
    torch.manual_seed(1)
    x = torch.randn(800, 5)
    y = torch.sin(x[:, :1]) + x[:, 1:2] * x[:, 2:3] / 2 + 0.3 * torch.randn(800, 1)
    model = nn.Sequential(nn.Linear(5, 18), nn.Tanh(), nn.Linear(18, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 1.5e-2, weight_decay=decay)
    criterion = nn.MSELoss()
    options = {"profiler": False, "rules": "none", "collections": ["losses"]}
    with tdbg.attach(model, optimizer=optimizer, loss=criterion, store=tmp_path / "run", **options) as handle:
        for step in range(600):
            at = torch.randint(rows, (32,))
            optimizer.zero_grad()
            criterion(model(x[at]), y[at]).backward()
            optimizer.step()
            if step % 20 == 19:
                with torch.no_grad(), handle.mode("eval"):
                    criterion(model(x[400:]), y[400:])
    assert len(check_run(handle.run_path, [Overfit()])[0]) == found


@pytest.mark.parametrize(
    ("left", "scale", "found"), [(0.3, 1, 1), (0.1, 1, 0), (0.02, 32, 0)], ids=["known", "learnt", "a sum"]
)
def test_rows_known_by_heart_are_found_whatever_the_loss_is_and_though_that_of_others_stays(
    tmp_path: Path, left: float, scale: int, found: int
) -> None:
    made = Made(tmp_path / "run")
    for step in range(200):
        made.step(step, {"loss/Own": 2.0 * max(0.02, 0.95**step)})
        if step % 20 == 19:
            made.step(
                step,
                {"loss/Own": scale * 2.0 * max(left, (0.97 if scale == 1 else 0.95) ** step)},
                mode="eval",
            )
    assert len(made.check(Overfit())[0]) == found
