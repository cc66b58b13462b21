"""Rules: what goes wrong in a run, found while it happens.

A rule is a frozen dataclass of thresholds that looks at one recorded step after the other, in a
process beside the training. See `Rule` for how to write one.
"""

from __future__ import annotations

from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.checking import check_run, invoke_rule, run_rules
from tdbg_lab.rules.frame import Frame, Row
from tdbg_lab.rules.launcher import launch
from tdbg_lab.rules.losses.loss_not_decreasing import LossNotDecreasing
from tdbg_lab.rules.registry import find_rule, list_rules, resolve_rules, rule
from tdbg_lab.rules.tensors.dead_relu import DeadRelu
from tdbg_lab.rules.tensors.exploding_tensor import ExplodingTensor
from tdbg_lab.rules.tensors.vanishing_gradient import VanishingGradient
from tdbg_lab.rules.view import RunView

__all__ = [
    "DeadRelu",
    "ExplodingTensor",
    "Frame",
    "LossNotDecreasing",
    "Needs",
    "Row",
    "Rule",
    "RunView",
    "VanishingGradient",
    "check_run",
    "find_rule",
    "invoke_rule",
    "launch",
    "list_rules",
    "resolve_rules",
    "rule",
    "run_rules",
]
