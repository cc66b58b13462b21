"""Tracking servers of others: what was found and what it looks like, on a run that is active there."""

from __future__ import annotations

from tdbg_lab.exchange.trackers.mlflow import log_to_mlflow
from tdbg_lab.exchange.trackers.wandb import log_to_wandb

__all__ = ["log_to_mlflow", "log_to_wandb"]
