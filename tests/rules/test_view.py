"""What a rule reads of a run."""

from __future__ import annotations

import math

from tdbg_lab.records import Kind, Mode, TensorKey
from tdbg_lab.rules.view import RunView
from tdbg_lab.stats.block import scalar_block


def test_value_is_of_the_step_asked_for_or_none():
    run = RunView()
    keys = (TensorKey("optimizer/grad_norm", Kind.OPTIMIZER),)
    for step, value in enumerate([1.5, math.inf]):
        run.put(Mode.TRAIN, step, 0, [(keys, scalar_block([value]))])
    run.step = 1
    assert run.value("optimizer/grad_norm") == math.inf
    assert run.value("optimizer/grad_norm", 0) == 1.5
    assert run.value("optimizer/grad_norm", 7) is None
    assert run.value("accuracy", 0) is None


def test_an_earlier_step_is_there_while_it_is_kept_and_a_later_one_is_not():
    run = RunView(keep=2)
    keys = (TensorKey("optimizer/grad_norm", Kind.OPTIMIZER),)
    for step in range(4):
        run.put(Mode.TRAIN, step, 0, [(keys, scalar_block([float(step)]))])
    run.step = 2
    assert run.at(2) is run.frame()
    assert run.at(2).scalar_values.tolist() == [2.0]
    assert run.at(0) is None
    assert run.at(3) is None
    assert run.at(2, Mode.EVAL) is None
