"""A hook from a JSON file, in the predecessor's format: values may be texts, keys keep their case."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tdbg_lab.smdebug.core.config_constants import (
    CONFIG_COLLECTION_CONFIG_KEY,
    CONFIG_COLLECTION_NAME_KEY,
    CONFIG_COLLECTION_PARAMS_KEY,
    CONFIG_FILE_PATH_ENV_STR,
    CONFIG_HOOK_PARAMS_KEY,
    CONFIG_OUTDIR_KEY,
    DEFAULT_CONFIG_FILE_PATH,
    DEFAULT_SAGEMAKER_OUTDIR,
)
from tdbg_lab.smdebug.core.modes import ModeKeys
from tdbg_lab.smdebug.core.reduction_config import ReductionConfig
from tdbg_lab.smdebug.core.save_config import SaveConfig, SaveConfigMode
from tdbg_lab.smdebug.exceptions import SMDebugValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.smdebug.core.hook import BaseHook

    _H = TypeVar("_H", bound=BaseHook)

__all__ = ["create_hook_from_json_config", "get_json_config_as_dict"]

_MAX_BYTES = 1_000_000
_SAVE_KEYS = ("save_interval", "save_steps", "start_step", "end_step")
_SWITCHES = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
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
        value = json.loads(path.read_text(encoding="utf-8"))
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
    config = get_json_config_as_dict(json_config_path)
    params = {**(default_values or {}), **_object(config, CONFIG_HOOK_PARAMS_KEY)}
    entries = config.get(CONFIG_COLLECTION_CONFIG_KEY) or []
    if not isinstance(entries, list):
        raise SMDebugValueError(f"{CONFIG_COLLECTION_CONFIG_KEY} is no list of collections.")
    hook = hook_cls(
        out_dir=str(config.get(CONFIG_OUTDIR_KEY) or DEFAULT_SAGEMAKER_OUTDIR),
        include_collections=[_name_of(entry) for entry in entries],
        save_config=_save_config(params, {}),
        reduction_config=_reduction_config(params),
        **_hook_arguments(params),
    )
    for entry in entries:
        _configure(hook, _name_of(entry), _object(entry, CONFIG_COLLECTION_PARAMS_KEY), params)
    return hook


def _configure(hook: BaseHook, name: str, params: Mapping[str, Any], of_hook: Mapping[str, Any]) -> None:
    collection = hook.get_collection(name)
    if params.get("include_regex"):
        collection.include(_texts(params["include_regex"]))
    if "save_histogram" in params:
        collection.save_histogram = _switch("save_histogram", params["save_histogram"])
    collection.reduction_config = _reduction_config(params)
    collection.save_config = _save_config(of_hook, params)


def _hook_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of the hook that need no more than the right type."""
    known = {name: params[name] for name in _HOOK_KEYS if params.get(name) not in {None, ""}}
    for name in ("dry_run", "export_tensorboard", "save_all"):
        if name in known:
            known[name] = _switch(name, known[name])
    if "include_regex" in known:
        known["include_regex"] = _texts(known["include_regex"])
    return known


def _save_config(of_hook: Mapping[str, Any], of_collection: Mapping[str, Any]) -> SaveConfig:
    """When to save: what a collection says wins over what the hook says, a mode over all modes."""
    modes = {}
    for mode in ModeKeys:
        found: dict[str, Any] = {}
        for params in (of_hook, of_collection):
            for prefix in ("", f"{mode.name.lower()}."):
                found.update({key: params[prefix + key] for key in _SAVE_KEYS if prefix + key in params})
        if "save_steps" in found:
            found["save_steps"] = _steps(found["save_steps"])
        modes[mode] = SaveConfigMode.from_dict(found)
    return SaveConfig(modes)


def _reduction_config(params: Mapping[str, Any]) -> ReductionConfig | None:
    """What to save; None when nothing is said about it."""
    said = {key: params[key] for key in _REDUCTION_KEYS if key in params}
    return ReductionConfig.from_dict(said) if said else None


def _object(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key) or {}
    if not isinstance(found, dict):
        raise SMDebugValueError(f"{key} is {found!r:.80}; expected an object.")
    return found


def _name_of(entry: Any) -> str:
    name = entry.get(CONFIG_COLLECTION_NAME_KEY) if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        raise SMDebugValueError(
            f"An entry of {CONFIG_COLLECTION_CONFIG_KEY} has no {CONFIG_COLLECTION_NAME_KEY}: {entry!r:.80}."
        )
    return name


def _texts(value: Any) -> list[str]:
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list):
        raise SMDebugValueError(f"include_regex is {value!r:.80}; expected patterns, with commas between.")
    return [str(one).strip() for one in listed if str(one).strip()]


def _steps(value: Any) -> list[int]:
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    try:
        return [int(one) for one in listed if str(one).strip()]
    except (TypeError, ValueError):
        raise SMDebugValueError(
            f"save_steps is {value!r:.80}; expected steps, with commas between."
        ) from None


def _switch(name: str, value: Any) -> bool:
    known = value if isinstance(value, bool) else _SWITCHES.get(str(value).strip().lower())
    if known is None:
        raise SMDebugValueError(f"{name} is {value!r}; expected true or false.")
    return bool(known)
