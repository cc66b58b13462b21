from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import RuleStatus
from tdbg_lab.rules import AttentionCollapse, check_run
from tests.rules import nets
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run")


class Attentive(nn.Module):
    """Rows of a digit attend to each other."""

    def __init__(self, *, causal: bool = False, fused: bool = False) -> None:
        super().__init__()
        self.embed, self.qkv, self.head = nn.Linear(8, 16), nn.Linear(16, 48), nn.Linear(16, 10)
        self.softmax = nn.Softmax(dim=-1)
        self.causal, self.fused = causal, fused

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x.view(-1, 8, 8))
        q, k, v = self.qkv(h).chunk(3, -1)
        if self.fused:
            found = scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            return self.head((h + found).mean(1))
        scores = (q @ k.transpose(1, 2)) / 4.0
        if self.causal:
            scores = scores.masked_fill(torch.ones(8, 8, dtype=torch.bool).triu(1), -1e9)
        return self.head((h + self.softmax(scores) @ v).mean(1))


def _train(path: Path, model: nn.Module, steps: int = 100) -> Path:
    trained = [one for one in model.parameters() if one.requires_grad]
    return nets.train(path, model, torch.optim.SGD(trained, 0.01), steps=steps)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("factor", "word"), [(0.0, "same weight"), (1.0, ""), (200.0, "one place")])
def test_attention_that_is_uniform_or_at_one_place_is_found(
    tmp_path: Path, causal, fused, factor, word
) -> None:
    torch.manual_seed(0)
    model = Attentive(causal=causal, fused=fused)
    with torch.no_grad():
        for one in model.qkv.parameters():
            one[:32] *= factor
    seen = "activation/attention_weights_0" if fused else "activation/softmax"
    findings = check_run(_train(tmp_path / "run", model), [AttentionCollapse()])[0]
    assert [one.tensor for one in findings] == ([seen] if word else [])
    assert all(word in one.message and one.step_first == 0 for one in findings)


@pytest.mark.parametrize(("begins", "fires"), [(0, True), (40, False)])
def test_one_place_from_the_first_step_on_was_not_learnt(made: Made, begins: int, fires) -> None:
    alike, sharp = np.full((4, 2, 8, 8), 0.125), np.zeros((4, 2, 8, 8))
    sharp[..., 3] = 1.0
    for step in range(80):
        tilt = 0.1 + 1e-4 * step
        values = sharp if step >= begins else alike + tilt * np.array([1, -1, 0, 0, 0, 0, 0, 0])
        made.step(step, {"activation/softmax": values, "loss/a": 0.2 + 0.8 * 0.9**step})
    assert len(made.check(AttentionCollapse())[0]) == fires


@pytest.mark.parametrize(
    ("queries", "inputs", "found"),
    [(0.0, 1.0, 1), (0.02, 1.0, 0), (0.0, 0.0, 0)],
    ids=["bias alone", "queries too", "always one batch"],
)
def test_weights_of_a_bias_alone_do_not_depend_on_inputs(
    made: Made, queries: float, inputs: float, found: int
) -> None:
    random = np.random.default_rng(0)
    apart = -0.5 * np.abs(np.arange(8)[:, None] - np.arange(8))
    for step in range(12):
        weights = np.exp(apart + queries * random.normal(size=(4, 2, 8, 8)))
        first = 1.0 + inputs * random.normal(size=(4, 8))
        attended = {"activation/softmax": weights / weights.sum(-1, keepdims=True)}
        made.step(step, {"activation/embed": first} | attended)
    made.end()
    findings = made.check(AttentionCollapse())[0]
    assert ["every input the same" in one.message for one in findings] == [True] * found


@pytest.mark.parametrize("last", [8, 3])
def test_uniform_behind_a_causal_mask_is_known_also_by_the_last_queries(made: Made, last: int) -> None:
    weights = (np.tril(np.ones((8, 8))) / np.arange(1, 9)[:, None])[-last:]
    for step in range(10):
        made.step(step, {"activation/softmax": np.broadcast_to(weights, (2, 2, last, 8)).copy()})
    made.end()
    assert len(made.check(AttentionCollapse())[0]) == 1


@pytest.mark.parametrize(("score", "fires"), [(0.009, True), (0.012, False)])
def test_scores_that_differ_by_a_hundredth_are_uniform(tmp_path: Path, score: float, fires) -> None:
    made = Made(tmp_path / "run")
    scores = np.zeros((4, 2, 8, 8))
    for step in range(10):
        now = score * (1 + 1e-3 * step)
        scores[..., ::2], scores[..., 1::2] = now, -now
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        made.step(step, {"activation/softmax": weights})
    made.end()
    assert bool(made.check(AttentionCollapse())[0]) is fires


def test_says_that_no_attention_was_seen(tmp_path: Path) -> None:
    made = Made(tmp_path / "run").step(0, {"activation/softmax": np.full((8, 2), 0.5)})
    made.end()
    state = made.check(AttentionCollapse())[1]["attention_collapse"]
    assert state.status is RuleStatus.NOT_APPLICABLE
    assert "No attention weights were recorded" in state.reason


def test_share_above_1_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"attention_collapse.one_hot is 1.5"):
        AttentionCollapse(one_hot=1.5)
