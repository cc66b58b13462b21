"""See what happens inside a model while it trains.

The public names load on first use, so ``import tdbg_lab`` stays light: no torch, no tornado, no
IPython, no plotly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.lazy import on_demand

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_PUBLIC = {
    "Finding": "tdbg_lab.records",
    "Handle": "tdbg_lab.capture",
    "IgniteHandler": "tdbg_lab.capture.adapters.ignite",
    "KerasCallback": "tdbg_lab.capture.keras",
    "LightningCallback": "tdbg_lab.capture.adapters.lightning",
    "LightGBMCallback": "tdbg_lab.capture.boosting.lightgbm",
    "Param": "tdbg_lab.views",
    "Rule": "tdbg_lab.rules",
    "Run": "tdbg_lab.run",
    "Severity": "tdbg_lab.records",
    "TdbgError": "tdbg_lab.errors",
    "TrainingStopped": "tdbg_lab.errors",
    "TransformersCallback": "tdbg_lab.capture.adapters.transformers",
    "XGBoostCallback": "tdbg_lab.capture.boosting.xgboost",
    "attach": "tdbg_lab.capture",
    "export": "tdbg_lab.exchange",
    "import_run": "tdbg_lab.exchange",
    "invoke_rule": "tdbg_lab.rules",
    "list_runs": "tdbg_lab.run",
    "log_to_mlflow": "tdbg_lab.exchange",
    "log_to_wandb": "tdbg_lab.exchange",
    "open_run": "tdbg_lab.run",
    "report": "tdbg_lab.views.report:write_report",
    "run_rules": "tdbg_lab.rules",
    "view": "tdbg_lab.views",
    "wrap_tape": "tdbg_lab.capture.keras",
}

_public = on_demand(__name__, _PUBLIC)

__all__ = ["__version__", *sorted(_PUBLIC)]  # noqa: PLE0604 - the names above


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from tdbg_lab.version import installed_version

        return installed_version()
    return _public(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext tdbg_lab``."""
    from tdbg_lab.notebook import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """``%unload_ext tdbg_lab``."""
    from tdbg_lab.notebook import unload_ipython_extension as unload

    unload(shell)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "tdbg-lab"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from tdbg_lab.server.app import TdbgApp

    return [{"module": "tdbg_lab.server.app", "app": TdbgApp}]
