"""Reading a JSON or YAML file of settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tdbg_lab.config.checking import article
from tdbg_lab.errors import ConfigError

__all__ = ["load_config"]

_MAX_FILE_BYTES = 1_000_000


def load_config(path: str | Path) -> dict[str, Any]:
    """The content of a JSON or YAML file.

    Raises
    ------
    ConfigError
        It cannot be read, is too large, or holds no mapping.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise ConfigError(f"The configuration file {path.name} is larger than {_MAX_FILE_BYTES} bytes.")
        text = path.read_text(encoding="utf-8-sig")  # editors of Windows put a mark in front
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration file {path.name} cannot be read: {error}.") from error
    data = _parsed(path, text)
    if not isinstance(data, dict):
        raise ConfigError(
            f"The configuration file {path.name} holds {article(data)}; expected a mapping of settings."
        )
    return data


def _parsed(path: Path, text: str) -> Any:
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise ConfigError(f"The configuration file {path.name} is not valid JSON: {error}.") from error
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        what = " ".join(str(error).split())
        raise ConfigError(f"The configuration file {path.name} is not valid YAML: {what}.") from error
