"""For Keras on TensorFlow, JAX and PyTorch: ``import tdbg_lab.smdebug.tensorflow as smd``."""

from __future__ import annotations

from tdbg_lab.smdebug.core.collection import CollectionKeys
from tdbg_lab.smdebug.core.modes import ModeKeys as modes  # noqa: N813 - the name in user code
from tdbg_lab.smdebug.core.reduction_config import ReductionConfig
from tdbg_lab.smdebug.core.save_config import SaveConfig, SaveConfigMode
from tdbg_lab.smdebug.tensorflow.collection import Collection
from tdbg_lab.smdebug.tensorflow.keras import KerasHook
from tdbg_lab.smdebug.tensorflow.session import EstimatorHook, SessionHook
from tdbg_lab.smdebug.tensorflow.singleton_utils import del_hook, get_hook, set_hook
from tdbg_lab.smdebug.trials.utils import create_trial

__all__ = [
    "Collection",
    "CollectionKeys",
    "EstimatorHook",
    "KerasHook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "SessionHook",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]
