from __future__ import annotations

import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import RuleStatus
from tdbg_lab.rules import check_run
from tdbg_lab.rules.setup import OptimizerSettings
from tests.rules.made import Made

OPTIM = torch.optim
FAULTY = {
    "betas": (lambda p: OPTIM.Adam(p, 1e-3, betas=(0.999, 0.9)), "betas (0.999, 0.9)"),
    "penalty": (lambda p: OPTIM.Adam(p, 1e-3, weight_decay=0.1), "adds 0.1 of the weights"),
    "root mean square": (lambda p: OPTIM.RMSprop(p, 1e-3, weight_decay=1.0), "RMSprop adds 1"),
    "decay": (lambda p: OPTIM.AdamW(p, 1e-2, weight_decay=2.0), "takes 2 % off"),
    "sgd": (lambda p: OPTIM.SGD(p, 0.1, weight_decay=0.5), "takes 5 % off"),
    "one group": (
        lambda p: OPTIM.Adam([{"params": p[:2]}, {"params": p[2:], "weight_decay": 0.5}], 1e-3),
        "adds 0.5",
    ),
    "momentum": (lambda p: OPTIM.SGD(p, 1e-4, momentum=1.0), "momentum of 1"),
}
HEALTHY = {
    "adam": lambda p: OPTIM.Adam(p, 1e-3, betas=(0.5, 0.9), weight_decay=1e-2),
    "adamw": lambda p: OPTIM.AdamW(p, 1e-2, weight_decay=0.3),
    "decoupled": lambda p: OPTIM.NAdam(p, 1e-3, weight_decay=0.3, decoupled_weight_decay=True),
    "sgd": lambda p: OPTIM.SGD(p, 0.1, momentum=0.99, weight_decay=5e-3),
    "a large rate": lambda p: OPTIM.AdamW(p, 1.0, weight_decay=0.05),
    "no first mean": lambda p: OPTIM.Adam(p, 1e-3, betas=(0.0, 0.99)),
    "lbfgs": lambda p: OPTIM.LBFGS(p, 0.1),
    "three betas": lambda p: Plain(p, betas=(0.98, 0.92, 0.99)),
    "betas of its own": lambda p: Plain(p, lr=1e-4),
}


class Plain(OPTIM.Optimizer):
    """An optimizer of somebody else, whose betas are not those of Adam."""

    def __init__(self, params, lr=1e-3, betas=(0.99, 0.95)):
        super().__init__(params, {"lr": lr, "betas": betas})

    def step(self, closure):
        loss = closure()
        for one in self.param_groups[0]["params"]:
            one.data.sub_(one.grad, alpha=self.param_groups[0]["lr"])
        return loss


def trained(path, make):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    loss, optimizer = nn.CrossEntropyLoss(), make(list(model.parameters()))
    x, y = torch.randn(32, 4), torch.randint(2, (32,))

    def closure():
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        return value

    options = {"profiler": False, "rules": "none"}
    with tdbg.attach(model, optimizer=optimizer, loss=loss, store=path, **options) as handle:
        for _ in range(3):
            optimizer.step(closure)
    return check_run(handle.run_path, [OptimizerSettings()])[0]


@pytest.mark.parametrize("case", FAULTY)
def test_settings_that_nobody_trains_with_are_found_at_the_first_step(tmp_path, case):
    make, words = FAULTY[case]
    (finding,) = trained(tmp_path / "run", make)
    assert words in finding.message
    assert finding.step_first == 0
    assert finding.advice


@pytest.mark.parametrize("case", HEALTHY)
def test_settings_in_use_are_left_alone(tmp_path, case):
    assert trained(tmp_path / "run", HEALTHY[case]) == []


def test_says_that_no_settings_were_recorded(tmp_path):
    made = Made(tmp_path / "run").step(0, {"loss/a": 1.0, "check/stale_gradients": 0.0})
    made.end()
    state = made.check("optimizer_settings")[1]["optimizer_settings"]
    assert state.status is RuleStatus.NOT_APPLICABLE
    assert "attach() and KerasCallback note them" in state.reason


def test_share_of_zero_is_refused():
    with pytest.raises(ConfigError, match=r"optimizer_settings.penalty is 0"):
        OptimizerSettings(penalty=0.0)
