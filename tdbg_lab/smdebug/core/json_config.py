"""A hook from a JSON file, in the predecessor's format: values may be texts, keys keep their case."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tdbg_lab.config.sagemaker import HookJson
from tdbg_lab.errors import ConfigError
from tdbg_lab.smdebug.core.config_constants import (
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_CONFIG_FILE_PATH,
    DEFAULT_SAGEMAKER_OUTDIR,
    TENSORBOARD_CONFIG_FILE_PATH_ENV_STR,
)
from tdbg_lab.smdebug.core.modes import ModeKeys
from tdbg_lab.smdebug.core.reduction_config import ReductionConfig
from tdbg_lab.smdebug.core.save_config import SaveConfig, SaveConfigMode
from tdbg_lab.smdebug.exceptions import SMDebugValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.config.sagemaker import CollectionJson
    from tdbg_lab.smdebug.core.hook import BaseHook

    _H = TypeVar("_H", bound=BaseHook)

__all__ = ["create_hook_from_json_config", "get_json_config_as_dict"]

_MAX_BYTES = 1_000_000
_SAVE_KEYS = ("save_interval", "save_steps", "start_step", "end_step")
_REDUCTION_KEYS = ("reductions", "save_raw_tensor", "save_shape")
_HOOK_KEYS = (
    "dry_run",
    "export_tensorboard",
    "include_regex",
    "include_workers",
    "save_all",
    "tensorboard_dir",
)


def get_json_config_as_dict(json_config_path: str | Path | None) -> dict[str, Any]:
    """The content of the file; None stands for that of ``SMDEBUG_CONFIG_FILE_PATH``.

    Raises
    ------
    FileNotFoundError
        If there is none.
    SMDebugValueError
        If it is too large, or is not an object in JSON.
    """
    path = Path(json_config_path or os.environ.get(CONFIG_FILE_PATH_ENV_STR, DEFAULT_CONFIG_FILE_PATH))
    if path.stat().st_size > _MAX_BYTES:
        raise SMDebugValueError(f"The hook configuration {path.name} is larger than {_MAX_BYTES} bytes.")
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise SMDebugValueError(f"The hook configuration {path.name} is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise SMDebugValueError(f"The hook configuration {path.name} is not an object in JSON.")
    return value


def create_hook_from_json_config(
    hook_cls: type[_H],
    json_config_path: str | Path | None = None,
    default_values: Mapping[str, Any] | None = None,
) -> _H:
    """The hook that a file describes.

    Parameters
    ----------
    default_values
        Of the hook's parameters, where the file does not say.

    Raises
    ------
    FileNotFoundError
        If there is no file.
    SMDebugValueError
        If something in it is wrong; the sentence says what.
    """
    try:
        config = HookJson.parse(get_json_config_as_dict(json_config_path))
    except ConfigError as error:
        raise SMDebugValueError(str(error)) from None
    defaults = dict(default_values or {})
    said = {**_tensorboard(), **defaults, **config.what}
    hook = hook_cls(
        out_dir=config.local_path or DEFAULT_SAGEMAKER_OUTDIR,
        include_collections=_included(config),
        save_config=_save_config(config, None, defaults),
        reduction_config=_reduction_config(config.what),
        **{name: _argument(said[name]) for name in _HOOK_KEYS if name in said},
    )
    for one in config.collections:
        _configure(hook, config, one, defaults)
    return hook


def _tensorboard() -> dict[str, str]:
    """Where event files go: ``LocalPath`` in the file that ``TENSORBOARD_CONFIG_FILE_PATH`` names."""
    path = os.environ.get(TENSORBOARD_CONFIG_FILE_PATH_ENV_STR)
    if not path or not Path(path).is_file():
        return {}
    found = get_json_config_as_dict(path).get("LocalPath")
    return {"tensorboard_dir": found} if isinstance(found, str) and found else {}


def _included(config: HookJson) -> list[str]:
    named = (*config.what.get("include_collections", ()), *(one.name for one in config.collections))
    return list(dict.fromkeys(named))


def _argument(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _configure(hook: BaseHook, config: HookJson, given: CollectionJson, defaults: Mapping[str, Any]) -> None:
    collection = hook.get_collection(given.name)
    if given.what.get("include_regex"):
        collection.include(list(given.what["include_regex"]))
    if "save_histogram" in given.what:
        collection.save_histogram = given.what["save_histogram"]
    collection.reduction_config = _reduction_config(given.what)
    collection.save_config = _save_config(config, given, defaults)


def _save_config(config: HookJson, given: CollectionJson | None, defaults: Mapping[str, Any]) -> SaveConfig:
    """When to save, in each mode."""
    known = {key: defaults[key] for key in _SAVE_KEYS if key in defaults}
    modes = {}
    for mode in ModeKeys:
        said = {**known, **config.schedule(mode.name.lower(), given)}
        modes[mode] = SaveConfigMode.from_dict({key: _argument(value) for key, value in said.items()})
    return SaveConfig(modes)


def _reduction_config(what: Mapping[str, Any]) -> ReductionConfig | None:
    """What to save; None when nothing is said about it."""
    said = {key: _argument(what[key]) for key in _REDUCTION_KEYS if key in what}
    return ReductionConfig.from_dict(said) if said else None
