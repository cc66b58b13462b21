"""No default rule alarms on a healthy training, however odd it looks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import torch

import tdbg_lab as tdbg
from tdbg_lab.records import Severity
from tests.rules.healthy_acting import ACTING
from tests.rules.healthy_classes import CLASSES
from tests.rules.healthy_drawn import DRAWN
from tests.rules.healthy_equations import EQUATIONS
from tests.rules.healthy_likenesses import LIKENESSES
from tests.rules.healthy_makers import MAKERS
from tests.rules.healthy_numbers import NUMBERS
from tests.rules.healthy_parts import PARTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


ALL = CLASSES + PARTS + LIKENESSES + NUMBERS + MAKERS + ACTING + DRAWN + EQUATIONS


@pytest.mark.parametrize("way", ALL, ids=[way.__name__ for way in ALL])
def test_no_alarm(way: Callable[..., None], tmp_path: Path) -> None:
    torch.manual_seed(0)
    store = tmp_path / "run"
    way(partial(tdbg.attach, store=store, save_every=2, profiler=False, rules="none"))
    alarms = [
        (one.rule, one.step_first, one.message)
        for one in tdbg.run_rules(store)
        if one.severity is not Severity.NOTICE
    ]
    assert alarms == []
