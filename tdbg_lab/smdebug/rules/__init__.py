"""Rules over trials: ``Rule`` and ``invoke_rule``."""

from __future__ import annotations

from tdbg_lab.smdebug.rules.builtin import builtin_rule, builtin_rules
from tdbg_lab.smdebug.rules.req_tensors import RequiredTensors, RequiredTensorsForTrial
from tdbg_lab.smdebug.rules.rule import Rule
from tdbg_lab.smdebug.rules.rule_invoker import invoke_rule

__all__ = [
    "RequiredTensors",
    "RequiredTensorsForTrial",
    "Rule",
    "builtin_rule",
    "builtin_rules",
    "invoke_rule",
]
