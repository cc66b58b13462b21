"""What of a configuration of SageMaker Debugger is not done here, said in the log."""

from __future__ import annotations

import logging
from functools import lru_cache

__all__ = ["remark"]

_log = logging.getLogger("tdbg_lab")


@lru_cache(maxsize=1024)
def remark(text: str) -> None:
    """Say something once in this process: a configuration is read again for each training."""
    _log.warning("tdbg-lab: %s", text)
