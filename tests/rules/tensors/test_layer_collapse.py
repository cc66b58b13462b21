from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import RuleStatus, Severity
from tdbg_lab.rules import LayerCollapse, check_run
from tdbg_lab.rules.tensors.layer_collapse import _comes_back
from tests.rules import nets
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path

WEIGHTS = {"a.weight": np.eye(8), "b.weight": np.eye(8)}


_DIP = (
    *(0.375, 0.341, 0.281, 0.229, 0.193, 0.166, 0.139, 0.113, 0.094, 0.097, 0.105, 0.132, 0.099, 0.079),
    *(0.056, 0.024, 0.034, 0.060, 0.079, 0.114, 0.171, 0.197, 0.233, 0.194, 0.239, 0.271, 0.297),
)
"""Of the code of a variational autoencoder: what all samples have in common is learnt first."""


def _run(path: Path, spreads: list[float], *, layer: str = "activation/a", width: int = 8) -> Made:
    """A layer whose samples differ by a share of its size."""
    made, random = Made(path), np.random.default_rng(0)
    for step, spread in enumerate(spreads):
        code = np.sqrt(1 - spread**2) + spread * random.normal(size=(256, width))
        both = {"activation/a": random.normal(size=(256, width)), "activation/b": code}
        made.step(
            step, WEIGHTS | (both if layer == "activation/b" else {layer: code} | {"activation/b": code})
        )
    made.end()
    return made


@pytest.mark.parametrize(
    ("spreads", "found"),
    [
        ([0.6] * 8 + [0.05] * 24, 1),
        ([0.6] * 8 + [0.2] * 24, 0),  # still enough
        ([0.05] * 32, 0),  # as it began
        ([0.6] * 8 + [0.05] * 7 + [0.6] * 17, 0),  # it came back
        ([0.42, *_DIP, *np.linspace(0.3, 0.7, 12)], 0),  # as it is coming back
        ([0.42, *_DIP[:16], *[0.04] * 16], 1),
    ],
)
def test_hidden_layer_that_lost_its_spread_is_found(tmp_path: Path, spreads: list[float], found: int) -> None:
    findings = _run(tmp_path / "run", spreads).check(LayerCollapse())[0]
    assert [one.tensor for one in findings] == ["activation/a"] * found


def test_branch_that_is_passed_by_is_a_notice(tmp_path: Path) -> None:
    cases = ((0.5, 8, Severity.NOTICE), (0.05, 8, Severity.WARNING), (0.5, 6, Severity.WARNING))
    for place, (seen, width, severity) in enumerate(cases):
        made, random = Made(tmp_path / str(place)), np.random.default_rng(0)
        for step, spread in enumerate([0.6] * 8 + [0.05] * 24):
            branch, joined = (
                np.sqrt(1 - one**2) + one * random.normal(size=(256, 8)) for one in (spread, seen)
            )
            first = {"activation/first": random.normal(size=(256, width))}
            later = {"activation/a": branch, "activation/sum": joined, "activation/b": joined}
            made.step(step, WEIGHTS | first | later)
        made.end()
        found = made.check(LayerCollapse())[0]
        assert max(one.severity for one in found) is severity


def test_finding_lasts_when_what_was_before_is_forgotten(tmp_path: Path) -> None:
    (finding,), _ = _run(tmp_path / "run", [0.6] * 8 + [0.05] * 80).check(LayerCollapse())
    assert finding.step_last == 87


def test_last_and_narrow_layers_are_left_alone(tmp_path: Path) -> None:
    lost = [0.6] * 8 + [0.05] * 24
    assert _run(tmp_path / "last", lost, layer="activation/b").check(LayerCollapse())[0] == []
    assert _run(tmp_path / "narrow", lost, width=3).check(LayerCollapse())[0] == []


@pytest.mark.parametrize("pull", [30.0, 0.0])
def test_codes_drawn_together_are_found_in_a_training(tmp_path: Path, pull: float) -> None:
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 8))
    model = nn.Sequential(encoder, nn.Linear(8, 10))
    plain, held = nn.CrossEntropyLoss(), []
    encoder.register_forward_hook(lambda _module, _inputs, code: held.append(code))

    class Drawn(nn.Module):
        def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
            return plain(told, wanted) + pull * held[-1].var(0).sum()

    run = nets.train(
        tmp_path / "run",
        model,
        torch.optim.Adam(model.parameters(), 5e-3),
        steps=70,
        save_every=2,
        criterion=Drawn(),
    )
    findings = check_run(run, [LayerCollapse()])[0]
    assert bool(findings) is bool(pull)
    assert all(one.module.startswith("0") for one in findings)


def test_single_samples_have_no_spread(tmp_path: Path) -> None:
    made, random = Made(tmp_path / "run"), np.random.default_rng(0)
    for step in range(40):
        layers = {f"activation/{name}": random.normal(size=(64 if step < 8 else 1, 8)) for name in "ab"}
        made.step(step, WEIGHTS | layers)
    made.end()
    assert made.check(LayerCollapse())[0] == []


def test_says_that_there_is_no_hidden_layer(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(4):
        made.step(step, {"only.weight": np.eye(4), "activation/only": np.ones((8, 4))})
    made.end()
    state = made.check(LayerCollapse())[1]["layer_collapse"]
    assert state.status is RuleStatus.NOT_APPLICABLE
    assert "No hidden layer" in state.reason


def test_threshold_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"layer_collapse.spread is 2"):
        LayerCollapse(spread=2.0)


def test_rounding_is_no_spread_that_comes_back() -> None:
    assert not _comes_back(np.array([0.0] * 12 + [3e-4] * 4))
    assert _comes_back(np.array([0.01] * 12 + [0.02] * 4))


def _game(path: Path, *, lost_from: int) -> list[str]:
    """A maker and a critic; from a step on a layer of the maker gives nothing but zeros."""
    torch.manual_seed(0)
    hidden = nn.Linear(16, 16)
    maker = nn.Sequential(
        nn.Linear(4, 16), nn.ReLU(), hidden, nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4)
    )
    critic = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.1), nn.Linear(16, 1))
    both = {"maker": maker, "critic": critic}
    turns = {name: torch.optim.Adam(one.parameters(), 1e-3) for name, one in both.items()}
    loss, step = nn.BCEWithLogitsLoss(), 0
    hidden.register_forward_pre_hook(lambda _module, given: (given[0] * (step < lost_from),))
    with tdbg.attach(both, optimizer=turns, loss=loss, store=path, save_every=2, profiler=False):
        for step in range(70):  # noqa: B007 - the hook reads it
            real, made = torch.randn(32, 4) * 2 + 1, maker(torch.randn(32, 4))
            turns["critic"].zero_grad()
            (
                loss(critic(real), torch.ones(32, 1)) + loss(critic(made.detach()), torch.zeros(32, 1))
            ).backward()
            turns["critic"].step()
            turns["maker"].zero_grad()
            loss(critic(made), torch.ones(32, 1)).backward()
            turns["maker"].step()
    found = check_run(path, [LayerCollapse()])[0]
    return [one.tensor for one in found if one.severity is Severity.WARNING]


@pytest.mark.parametrize(("lost_from", "found"), [(20, ["activation/maker.2"]), (70, [])])
def test_in_a_game_a_layer_counts_that_is_the_same_for_all(tmp_path: Path, lost_from, found) -> None:
    assert _game(tmp_path / "run", lost_from=lost_from) == found


@pytest.mark.parametrize(("right", "severity"), [(0.9, Severity.NOTICE), (0.1, Severity.WARNING)])
def test_collapse_beside_what_is_learnt_is_a_notice(tmp_path: Path, right: float, severity: Severity) -> None:
    made, random = Made(tmp_path / "run"), np.random.default_rng(0)
    base = "check/loss/MSELoss/"
    for step, spread in enumerate([0.6] * 8 + [0.05] * 24):
        code = np.sqrt(1 - spread**2) + spread * random.normal(size=(256, 8))
        layers = {"activation/a": code, "activation/b": code}
        learnt = right * min(1.0, step / 8)
        facts = {"correlation": learnt, "samples": 256.0, "prediction_size": 1.0, "target_size": 1.0}
        told = {base + name: value for name, value in facts.items()}
        made.step(step, WEIGHTS | layers | told | {"loss/MSELoss": 1.0 - learnt})
    made.end()
    (finding,), _ = made.check(LayerCollapse())
    assert finding.severity is severity
