from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import PoorWeightInitialization, check_run
from tests.rules import nets
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("constant", [True, False])
def test_constant_weights_are_found_at_the_first_step(tmp_path: Path, constant) -> None:
    torch.manual_seed(0)
    model = nets.mlp()
    if constant:
        nn.init.constant_(model[2].weight, 0.1)
    run = nets.train(tmp_path / "run", model, torch.optim.Adam(model.parameters(), 1e-3), steps=60)
    findings = check_run(run, [PoorWeightInitialization()])[0]
    assert [(one.tensor, one.step_first) for one in findings] == ([("2.weight", 0)] if constant else [])


def test_signal_that_dies_from_layer_to_layer_is_found(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nets.mlp(64, 6)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.mul_(0.05 if name.endswith("weight") else 0.0)
    run = nets.train(tmp_path / "run", model, torch.optim.SGD(model.parameters(), 0.01), steps=120)
    (finding,), _ = check_run(run, [PoorWeightInitialization()])
    assert "die on their way" in finding.message
    assert finding.tensor in {"activation/8", "activation/10", "activation/12"}


@pytest.mark.parametrize("forbidden", [True, False])
def test_transitions_that_a_crf_forbids_are_no_size_of_weights(tmp_path: Path, forbidden) -> None:
    rng = np.random.default_rng(0)
    scores = 10 * rng.standard_normal((6, 6))
    if forbidden:
        scores[4, :] = scores[:, 5] = -10_000
    made = Made(tmp_path / "run")
    weights = {"layer.weight": rng.standard_normal((6, 6)) / 3, "crf.weight": scores}
    made.step(0, {**weights, "activation/crf": np.full((8, 6), -10_000.0)})
    assert bool(made.check(PoorWeightInitialization())[0]) is not forbidden


@pytest.mark.parametrize(("std", "fires"), [(3.1, False), (3.2, True)])
def test_classic_compares_variances_of_activation_inputs(tmp_path: Path, std: float, fires) -> None:
    made = Made(tmp_path / "run")
    made.step(0, {"input/relu0": np.array([-1.0, 1.0]), "input/relu1": np.array([-std, std])})
    assert bool(made.check(PoorWeightInitialization(classic=True))[0]) is fires


@pytest.mark.parametrize(("spread", "fires"), [(0.0004, True), (0.1, False)])
def test_classic_wants_gradients_that_spread(tmp_path: Path, spread: float, fires) -> None:
    made = Made(tmp_path / "run").step(0, {"gradient/a.weight": np.linspace(-spread, spread, 50)})
    assert bool(made.check(PoorWeightInitialization(classic=True))[0]) is fires


def test_no_steps_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"poor_weight_initialization.steps is 0"):
        PoorWeightInitialization(steps=0)


@pytest.mark.parametrize(("factor", "what"), [(1e-3, "too small"), (25.0, "too large"), (1.0, "")])
def test_weights_of_the_wrong_size_are_found_at_the_first_step(
    tmp_path: Path, factor: float, what: str
) -> None:
    torch.manual_seed(0)
    model = nets.mlp()
    with torch.no_grad():
        for one in model.parameters():
            if one.ndim > 1:
                one.mul_(factor)
    run = nets.train(tmp_path / "run", model, torch.optim.Adam(model.parameters(), 1e-3), steps=20)
    findings = check_run(run, ["poor_weight_initialization", "unscaled_inputs"])[0]
    assert [what in one.message and one.step_first == 0 for one in findings] == [True] * bool(what)


def drawn(std: float) -> nn.Module:
    """Three layers whose weights have this spread, whatever their widths."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    for one in model.modules():
        if isinstance(one, nn.Linear):
            nn.init.normal_(one.weight, std=std)
    return model


@pytest.mark.parametrize(("std", "what"), [(1.0, ["too large"]), (0.1, [])])
def test_weights_too_large_for_numbers_are_found_by_the_first_predictions(
    tmp_path: Path, std: float, what: list[str]
) -> None:
    model = drawn(std)
    optimizer, loss = torch.optim.Adam(model.parameters(), 1e-3), nn.MSELoss()
    with tdbg.attach(model, optimizer=optimizer, loss=loss, store=tmp_path / "run", profiler=False):
        for _ in range(6):
            x = torch.randn(32, 64)
            optimizer.zero_grad()
            loss(model(x), x.mean(1, keepdim=True) * 8).backward()
            optimizer.step()
    findings = check_run(tmp_path / "run", ["poor_weight_initialization"])[0]
    assert [text in one.message for text, one in zip(what, findings, strict=True)] == [True] * len(what)


class Weighed(nn.Module):
    """A loss of the program's own, of which nothing is known."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return nn.functional.softplus(-told * wanted).mean()


@pytest.mark.parametrize(("std", "what"), [(1.0, ["too large"]), (0.1, [])])
def test_weights_too_large_for_a_loss_of_ones_own_are_found_by_the_first_outputs(
    tmp_path: Path, std: float, what: list[str]
) -> None:
    model = drawn(std)
    optimizer, loss = torch.optim.Adam(model.parameters(), 1e-3), Weighed()
    with tdbg.attach(model, optimizer=optimizer, loss=loss, store=tmp_path / "run", profiler=False):
        for _ in range(6):
            x = torch.randn(32, 64)
            optimizer.zero_grad()
            loss(model(x), x.mean(1, keepdim=True).sign()).backward()
            optimizer.step()
    findings = check_run(tmp_path / "run", ["poor_weight_initialization"])[0]
    assert [text in one.message for text, one in zip(what, findings, strict=True)] == [True] * len(what)


@pytest.mark.parametrize(("factor", "named"), [(40.0, ["4.weight"]), (4.0, [])])
def test_a_last_layer_that_begins_too_large_is_named(tmp_path: Path, factor: float, named: list[str]) -> None:
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
    with torch.no_grad():
        model[4].weight.mul_(factor)
    optimizer, loss = torch.optim.Adam(model.parameters(), 1e-3), nn.MSELoss()
    with tdbg.attach(model, optimizer=optimizer, loss=loss, store=tmp_path / "run", profiler=False):
        for _ in range(6):
            x = torch.randn(32, 64)
            optimizer.zero_grad()
            loss(model(x), x[:, :1] * 0.1).backward()
            optimizer.step()
    findings = check_run(tmp_path / "run", ["poor_weight_initialization"])[0]
    assert [one.tensor for one in findings] == named


class Words(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(20, 8), kind(8, 24, batch_first=True), nn.Linear(24, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(self.embed(x))[0][:, -1])


def last_word(path: Path, model: nn.Module, steps: int) -> Path:
    """Train to tell of which quarter the last of eight words is."""
    optimizer, loss = torch.optim.Adam(model.parameters(), 1e-2), nn.CrossEntropyLoss()
    with tdbg.attach(model, optimizer=optimizer, loss=loss, store=path, profiler=False):
        for _ in range(steps):
            x = torch.randint(0, 20, (32, 8))
            optimizer.zero_grad()
            loss(model(x), x[:, -1] // 5).backward()
            optimizer.step()
    return path


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize(("factor", "orthogonal"), [(1.0, False), (1.0, True), (12.0, False)])
def test_recurrent_weights_that_are_too_large_are_found_though_their_outputs_are_bounded(
    tmp_path: Path, kind, factor: float, orthogonal
) -> None:
    torch.manual_seed(0)
    model = Words(kind)
    with torch.no_grad():
        if orthogonal:
            nn.init.orthogonal_(model.rnn.weight_hh_l0)
        for one in (model.rnn.weight_hh_l0, model.rnn.weight_ih_l0):
            one.mul_(factor)
    findings = check_run(last_word(tmp_path / "run", model, 6), ["poor_weight_initialization"])[0]
    assert [one.tensor for one in findings] == ["rnn.weight_hh_l0"] * (factor > 1)


def test_large_recurrent_weights_of_a_trained_model_are_what_it_learnt(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Words(nn.GRU)
    last_word(tmp_path / "before", model, 150)
    with (
        torch.no_grad()
    ):  # reset gates that are sure, as long training makes them: words are told all the same
        model.rnn.weight_hh_l0[:24] += 2.5 * torch.randn(24, 24)
    findings = check_run(last_word(tmp_path / "after", model, 6), ["poor_weight_initialization"])[0]
    assert findings == []
