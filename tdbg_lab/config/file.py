"""Reading a JSON or YAML file of settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tdbg_lab.config.checking import article
from tdbg_lab.errors import ConfigError

__all__ = ["load_config", "parse_yaml"]

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
    except (OSError, ValueError) as error:  # no text, or a name that no file can have
        raise ConfigError(f"The configuration file {path.name} cannot be read: {error}.") from error
    data = _parsed(path, text)
    if not isinstance(data, dict):
        raise ConfigError(
            f"The configuration file {path.name} holds {article(data)}; expected a mapping of settings."
        )
    return data


def parse_yaml(text: str | bytes) -> Any:
    """The value of a YAML text.

    Raises
    ------
    ValueError
        With one line that says what is wrong.
    """
    import yaml

    try:
        return yaml.safe_load(text)
    except Exception as error:
        # A date that is none, a number of too many digits, a tag that its text does not fit, lists within
        # lists: PyYAML raises what the conversion does, whatever that is.
        said = " ".join(str(error).split())[:300].rstrip(".")
        raise ValueError(said or type(error).__name__) from error


def _parsed(path: Path, text: str) -> Any:
    kind = "JSON" if path.suffix == ".json" else "YAML"
    try:
        return json.loads(text) if kind == "JSON" else parse_yaml(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"The configuration file {path.name} is not valid {kind}: {error}.") from error
