"""The function that a model ends in, by the graph of its gradients."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tdbg_lab.capture.pytorch.checks.output_end import end_of
from tdbg_lab.records import OutputEnd

X = torch.randn(6, 4)
ENDS = {
    "sigmoid": (lambda h: h.sigmoid(), OutputEnd.SIGMOID),
    "squeezed": (lambda h: torch.sigmoid(h).squeeze(-1), OutputEnd.SIGMOID),
    "tanh": (lambda h: nn.Tanh()(h).view(2, 3, -1).permute(0, 2, 1), OutputEnd.TANH),
    "relu": (lambda h: nn.functional.relu(h, inplace=True)[:, 0], OutputEnd.RELU),
    "softmax": (lambda h: h.softmax(-1), OutputEnd.SOFTMAX),
    "double": (lambda h: h.sigmoid().double(), OutputEnd.SIGMOID),
    "linear": (lambda h: h, OutputEnd.OTHER),
    "scaled": (lambda h: 10 * h.tanh(), OutputEnd.OTHER),
    "log_softmax": (lambda h: h.log_softmax(-1), OutputEnd.OTHER),
    "cat": (lambda h: torch.cat([h.sigmoid(), h], 1), OutputEnd.OTHER),
    "detached": (lambda h: h.sigmoid().detach(), OutputEnd.OTHER),
}


@pytest.mark.parametrize("case", ENDS)
def test_it_is_known_behind_changes_of_shape_and_nothing_else(case):
    function, end = ENDS[case]
    assert end_of(function(nn.Linear(4, 1 if case == "squeezed" else 3)(X))) is end
