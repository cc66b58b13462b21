"""`invoke_rule`: check a rule at one step after the other."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from tdbg_lab.smdebug.core.logger import get_logger
from tdbg_lab.smdebug.exceptions import (
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)

if TYPE_CHECKING:
    from tdbg_lab.smdebug.rules.rule import Rule

__all__ = ["invoke_rule"]


def invoke_rule(
    rule_obj: Rule, start_step: int = 0, end_step: int | None = None, raise_eval_cond: bool = False
) -> None:
    """Check a rule at each global step from `start_step` on and before `end_step`, as they come.

    Steps that were not saved, or lack what the rule needs, are passed over.

    Parameters
    ----------
    end_step
        None goes on until training ends.
    raise_eval_cond
        Raise what the rule finds, instead of logging it and going on.

    Raises
    ------
    RuleEvaluationConditionMet
        If the rule has found something and that is wanted, or it says that it is done.
    NoMoreData
        When training has ended and all was checked.
    """
    log = get_logger()
    for step in count(start_step) if end_step is None else range(start_step, end_step):
        try:
            rule_obj.invoke(step)
        except RuleEvaluationConditionMet as found:
            if raise_eval_cond or found.end_of_rule:
                raise
            log.info("%s", found)
        except StepUnavailable:
            log.debug("Step %d was not saved.", step)
        except (TensorUnavailable, TensorUnavailableForStep) as missing:
            log.debug("Rule %s passes over step %d: %s", rule_obj.rule_name, step, missing)
        except NoMoreProfilerData:
            return
