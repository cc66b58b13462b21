"""Advice is given in the words of the framework that trains."""

from __future__ import annotations

from pathlib import Path

import pytest

import tdbg_lab
from tdbg_lab.records import Finding, Severity
from tdbg_lab.rules.wording import KERAS, worded

RULES = Path(tdbg_lab.__file__).parent / "rules"
CLIP = "Clip the gradients (torch.nn.utils.clip_grad_norm_) or lower the learning rate."


def finding(*advice: str) -> Finding:
    return Finding("exploding_tensor", Severity.WARNING, 1, 1, "It grows.", advice=advice)


def test_advice_of_a_keras_run_names_what_keras_has() -> None:
    told = worded(finding(CLIP, "Look at it."), "keras").advice
    assert told == (
        "Clip the gradients (clipnorm or global_clipnorm of the optimizer) or lower the learning rate.",
        "Look at it.",
    )


def test_advice_of_other_runs_is_left_as_it_is() -> None:
    assert worded(finding(CLIP), "pytorch").advice == (CLIP,)


@pytest.mark.parametrize("words", KERAS)
def test_what_is_replaced_is_what_rules_say(words: str) -> None:
    files = [one for one in RULES.rglob("*.py") if one.name != "wording.py"]
    assert any(words in one.read_text(encoding="utf-8") for one in files)
