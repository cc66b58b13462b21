"""What a loss was given at earlier steps."""

from __future__ import annotations

import pytest

from tdbg_lab.records import Kind, Mode, TensorKey
from tdbg_lab.rules.setup.given import LossRule
from tdbg_lab.rules.view import RunView
from tdbg_lab.stats.block import scalar_block


@pytest.mark.parametrize("keep", [1, 64])
def test_facts_are_those_of_their_step_also_where_frames_are_kept_no_more(keep):
    run = RunView(keep=keep)
    names = ["Own/hits", "Own/prediction_max", "Owner/hits", "Owner/prediction_max"]
    keys = tuple(TensorKey(f"check/loss/{name}", Kind.CHECK) for name in names)
    for step in range(3):
        run.put(Mode.TRAIN, step, 0, [(keys, scalar_block([step, 10.0 + step, 20.0 + step, 30.0 + step]))])
    run.put(Mode.TRAIN, 3, 0, [(keys[1:], scalar_block([13.0, 23.0, 33.0]))])
    run.step = 3
    given = LossRule(patience=2).given(run)
    assert [(one.step, dict(one.facts)) for one in given["Own"]] == [
        (2, {"hits": 2.0, "prediction_max": 12.0}),
        (3, {"prediction_max": 13.0}),
    ]
    assert [one.number("hits") for one in given["Owner"]] == [22.0, 23.0]
