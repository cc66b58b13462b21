"""The Keras hook of this process."""

from __future__ import annotations

from tdbg_lab.smdebug.core.singleton_utils import del_hook, find_hook, set_hook
from tdbg_lab.smdebug.exceptions import SMDebugValueError
from tdbg_lab.smdebug.tensorflow.keras import KerasHook
from tdbg_lab.smdebug.tensorflow.session import EstimatorHook, SessionHook

__all__ = ["del_hook", "get_hook", "set_hook"]

_OF_SESSIONS = {"session": SessionHook, "estimator": EstimatorHook}


def get_hook(
    hook_type: str | None = None, json_config_path: str | None = None, create_if_not_exists: bool = False
) -> KerasHook | None:
    """The hook made last, or with `create_if_not_exists` the one a JSON file describes.

    Raises
    ------
    SMDebugValueError
        If `hook_type` is none of ``keras``, ``session``, ``estimator``.
    SMDebugNotImplementedError
        If a hook for sessions is to be made.
    """
    if hook_type not in {None, "keras", *_OF_SESSIONS}:
        raise SMDebugValueError(f"hook_type is {hook_type!r}; expected 'keras', 'session' or 'estimator'.")
    if hook_type in _OF_SESSIONS:
        if create_if_not_exists:
            _OF_SESSIONS[hook_type]()  # says what to use instead
        return None
    return find_hook(KerasHook, json_config_path, create=create_if_not_exists)
