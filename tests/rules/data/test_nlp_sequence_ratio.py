from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import RuleStatus, Severity
from tdbg_lab.rules import NLPSequenceRatio, check_run
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path


def train(path: Path, length: int, pad: int = 0, **more: Any) -> Path:
    """Sequences of 100 tokens of which `length` are words."""
    torch.manual_seed(0)
    model = nn.Sequential()
    model.add_module("embedding", nn.Embedding(50, 4, padding_idx=pad))
    model.add_module("flat", nn.Flatten())
    model.add_module("head", nn.Linear(400, 2))
    optimizer, criterion = torch.optim.SGD(model.parameters(), 0.1), nn.CrossEntropyLoss()
    settings = {"collections": ["inputs", "losses"], "save_every": 1, "profiler": False} | more
    with tdbg.attach(model, optimizer=optimizer, loss=criterion, store=path, **settings) as handle:
        for _ in range(20):
            ids = torch.full((8, 100), pad)
            ids[:, :length] = torch.randint(1, 50, (8, length))
            optimizer.zero_grad()
            criterion(model(ids), ids[:, 0] % 2).backward()
            optimizer.step()
        return handle.run_path


@pytest.mark.parametrize(
    ("length", "severities"), [(2, [Severity.WARNING]), (30, [Severity.NOTICE]), (80, [])]
)
def test_padding_is_measured(tmp_path: Path, length: int, severities) -> None:
    findings = check_run(train(tmp_path / "run", length), [NLPSequenceRatio()])[0]
    assert [one.severity for one in findings] == severities


@pytest.mark.parametrize(
    ("length", "pad", "severities"),
    [
        (5, 0, [Severity.WARNING]),
        (30, 0, [Severity.NOTICE]),
        (80, 0, []),
        (5, 49, [Severity.WARNING]),
        (30, 49, []),
    ],
)
def test_padding_is_known_without_recording_inputs(
    tmp_path: Path, length: int, pad: int, severities: list[Severity]
) -> None:
    path = train(tmp_path / "run", length, pad, collections={"inputs": False})
    findings = check_run(path, [NLPSequenceRatio()])[0]
    assert [(one.severity, one.evidence["token"]) for one in findings] == [(one, pad) for one in severities]


def test_counts_that_are_mostly_zero_are_no_tokens(tmp_path: Path) -> None:
    model, criterion = nn.Linear(100, 2), nn.CrossEntropyLoss()

    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = model

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            return self.head(words.float())

    whole = Counted()
    optimizer = torch.optim.SGD(whole.parameters(), 0.1)
    settings = {"save_every": 1, "profiler": False}
    with tdbg.attach(
        whole, optimizer=optimizer, loss=criterion, store=tmp_path / "run", **settings
    ) as handle:
        for _ in range(12):
            words = torch.zeros(8, 100, dtype=torch.long)
            words[:, :3] = 2
            criterion(whole(words), torch.randint(0, 2, (8,))).backward()
            optimizer.step()
            optimizer.zero_grad()
    state = check_run(handle.run_path, [NLPSequenceRatio()])[1][0]
    assert state.status is RuleStatus.NOT_APPLICABLE


@pytest.mark.parametrize(("unknown", "fires"), [(30, False), (31, True)])
def test_classic_thresholds_belong_to_their_tokens(tmp_path: Path, unknown: int, fires) -> None:
    ids = np.r_[np.zeros(40), np.ones(unknown), np.full(60 - unknown, 9)]
    made = Made(tmp_path / "run").step(0, {"input/embedding": ids})
    rule = NLPSequenceRatio(classic=True, token_values="0,1", token_thresholds_percent="50,30")
    assert bool(made.check(rule)[0]) is fires


def test_run_without_tokens_says_how_to_record_them(tmp_path: Path) -> None:
    made = Made(tmp_path / "run").step(0, {"loss/x": 1.0})
    assert "handle.record('tokens', ids)" in made.check(NLPSequenceRatio())[1]["nlp_sequence_ratio"].reason


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"token_values": "0,1"}, r"has 1 numbers; expected 2"),
        ({"token_values": "x"}, r"token_values is 'x'"),
    ],
)
def test_lists_that_do_not_fit_are_refused(given, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        NLPSequenceRatio(**given)


@pytest.mark.parametrize(
    ("held", "row", "severity"),
    [(0.3, 20.0, Severity.WARNING), (0.7, 20.0, Severity.NOTICE), (0.3, 8.0, Severity.NOTICE)],
    ids=["cut short in training", "as in training", "shorter rows in evaluations"],
)
def test_padding_that_evaluations_do_not_have_is_a_warning(tmp_path: Path, held, row, severity) -> None:
    made = Made(tmp_path / "run")
    for step in range(14):
        made.step(step, {"check/token": 0.0, "check/token_share": 0.85, "check/token_row": 20.0})
        if step % 4 == 3:
            there = {"check/token": 0.0, "check/token_share": held, "check/token_row": row}
            made.step(step, there, mode="eval")
    made.end()
    (finding,), _ = made.check(NLPSequenceRatio())
    assert finding.severity is severity


@pytest.mark.parametrize(("cut", "severities"), [(3, [Severity.WARNING]), (20, [])])
def test_rows_cut_short_in_training_are_found(tmp_path: Path, cut: int, severities) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.EmbeddingBag(30, 8), nn.Linear(8, 2))
    optimizer, criterion = torch.optim.Adam(model.parameters(), 1e-2), nn.CrossEntropyLoss()
    words = torch.randint(1, 30, (400, 20))
    words[:, 15:] = 0
    labels = (words == 7).any(1).long()
    with tdbg.attach(
        model, optimizer=optimizer, loss=criterion, store=tmp_path / "run", save_every=2, profiler=False
    ) as handle:
        for step in range(40):
            rows = torch.randint(0, 300, (32,))
            taught = words[rows].clone()
            taught[:, cut:] = 0
            optimizer.zero_grad()
            criterion(model(taught), labels[rows]).backward()
            optimizer.step()
            if step % 8 == 7:
                model.eval()
                with torch.no_grad():
                    criterion(model(words[300:]), labels[300:])
                model.train()
    found = check_run(handle.run_path, [NLPSequenceRatio()])[0]
    assert [one.severity for one in found] == severities
