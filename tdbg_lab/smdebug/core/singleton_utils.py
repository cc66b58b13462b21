"""The hook of this process: what code finds that is far from where the hook was made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tdbg_lab.smdebug.core.config_constants import (
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_CONFIG_FILE_PATH,
    USE_SMDEBUG_ENV_VAR,
)

if TYPE_CHECKING:
    from tdbg_lab.smdebug.core.hook import BaseHook

    _H = TypeVar("_H", bound=BaseHook)

__all__ = ["del_hook", "find_hook", "set_hook"]


class _Current:
    """The one piece of state, which the interface asks for: a hook made earlier is found again."""

    hook: BaseHook | None = None


def set_hook(custom_hook: BaseHook) -> None:
    """Make this the hook that `get_hook` gives; a new hook does so itself."""
    _Current.hook = custom_hook


def del_hook() -> None:
    """Forget it. It goes on saving; `close` ends that."""
    _Current.hook = None


def find_hook(hook_class: type[_H], json_config_path: str | None, *, create: bool) -> _H | None:
    """The hook of this process; when there is none, the one a JSON file describes.

    Parameters
    ----------
    json_config_path
        The file; None for that of ``SMDEBUG_CONFIG_FILE_PATH``.
    create
        Whether to make a hook when none is there. ``USE_SMDEBUG=0`` forbids it.
    """
    if isinstance(_Current.hook, hook_class):
        return _Current.hook
    path = json_config_path or os.environ.get(CONFIG_FILE_PATH_ENV_STR, DEFAULT_CONFIG_FILE_PATH)
    off = os.environ.get(USE_SMDEBUG_ENV_VAR, "").strip().lower() in {"0", "off", "false"}
    if not create or off or not Path(path).exists():
        return None
    return hook_class.create_from_json_file(path)
