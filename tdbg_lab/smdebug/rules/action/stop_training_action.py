"""Stop the training that a rule looks at."""

from __future__ import annotations

from pathlib import Path

from tdbg_lab.actions import ActionContext, StopTraining
from tdbg_lab.records import Finding, Severity
from tdbg_lab.smdebug.core.logger import get_logger
from tdbg_lab.store.smdebug import is_smdebug_store

__all__ = ["StopTrainingAction"]


class StopTrainingAction:
    """Asks the training process to stop; it does before its next step.

    The training that writes a store of the predecessor's does not know requests: there a warning
    is logged.
    """

    def __init__(self, rule_name: str, run_path: str) -> None:
        self.rule_name = rule_name
        self._run_path = Path(run_path)

    def invoke(self, message: str, *, step: int = -1) -> None:
        """Ask.

        Raises
        ------
        StoreError
            If the request cannot be written.
        """
        if is_smdebug_store(self._run_path):
            get_logger().warning(
                "Rule %s cannot stop this training: its hook takes no requests.", self.rule_name
            )
            return
        finding = Finding(self.rule_name, Severity.CRITICAL, step, step, message)
        StopTraining().perform(finding, ActionContext(self._run_path, self._run_path.name))
