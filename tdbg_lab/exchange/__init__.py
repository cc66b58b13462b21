"""Runs out and in: other tools' formats, and other tools' tracking servers.

Stands above `tdbg_lab.run` and the views; whatever is read here comes from elsewhere and is
bounded and validated, never evaluated.
"""

from __future__ import annotations

from tdbg_lab.exchange.exports import EXPORTS, export
from tdbg_lab.exchange.imports import IMPORTS, import_run
from tdbg_lab.exchange.trackers import log_to_mlflow, log_to_wandb

__all__ = ["EXPORTS", "IMPORTS", "export", "import_run", "log_to_mlflow", "log_to_wandb"]
