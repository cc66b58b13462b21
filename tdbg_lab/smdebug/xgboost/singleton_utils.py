"""The XGBoost hook of this process."""

from __future__ import annotations

from tdbg_lab.smdebug.core.singleton_utils import del_hook, find_hook, set_hook
from tdbg_lab.smdebug.xgboost.hook import Hook

__all__ = ["del_hook", "get_hook", "set_hook"]


def get_hook(json_config_path: str | None = None, create_if_not_exists: bool = False) -> Hook | None:
    """The hook made last, or with `create_if_not_exists` the one a JSON file describes."""
    return find_hook(Hook, json_config_path, create=create_if_not_exists)
