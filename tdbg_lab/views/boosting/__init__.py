"""The report on boosted trees: what SageMaker Debugger's XGBoost report showed, of any boosted run."""

from __future__ import annotations

from tdbg_lab.views.boosting.report import write_xgboost_report

__all__ = ["write_xgboost_report"]
