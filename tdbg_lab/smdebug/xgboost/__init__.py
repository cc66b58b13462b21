"""For XGBoost: ``import tdbg_lab.smdebug.xgboost as smd``."""

from __future__ import annotations

from tdbg_lab.smdebug.core.collection import Collection, CollectionKeys
from tdbg_lab.smdebug.core.modes import ModeKeys as modes  # noqa: N813 - the name in user code
from tdbg_lab.smdebug.core.reduction_config import ReductionConfig
from tdbg_lab.smdebug.core.save_config import SaveConfig, SaveConfigMode
from tdbg_lab.smdebug.trials.utils import create_trial
from tdbg_lab.smdebug.xgboost.hook import Hook
from tdbg_lab.smdebug.xgboost.singleton_utils import del_hook, get_hook, set_hook

__all__ = [
    "Collection",
    "CollectionKeys",
    "Hook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]
