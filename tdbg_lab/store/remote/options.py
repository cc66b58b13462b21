"""Settings of an object store: credentials, region, endpoint. They are kept in no run and no log.

obstore itself reads the usual environment (``AWS_*``, ``GOOGLE_*``, ``AZURE_*``) and the metadata
service of the machine; on S3, the profile of the AWS command line counts where nothing else is said.
Beyond that, the later wins:

1. the file named by ``TDBG_STORAGE_CONFIG`` (else ``~/.config/tdbg-lab/storage.json``): a JSON object
   of options by address, ``{"s3://bucket": {"endpoint": ..., "region": ...}}``; the longest address
   that contains the run counts;
2. ``TDBG_STORAGE_OPTIONS``, a JSON object;
3. ``storage_options`` as given in Python.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConfigError
from tdbg_lab.store.layout import read_json
from tdbg_lab.store.remote.profiles import add_profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.store.remote.url import StoreUrl

__all__ = ["CONFIG_VARIABLE", "OPTIONS_VARIABLE", "storage_options"]

CONFIG_VARIABLE = "TDBG_STORAGE_CONFIG"
OPTIONS_VARIABLE = "TDBG_STORAGE_OPTIONS"
_DEFAULT_FILE = "~/.config/tdbg-lab/storage.json"


def storage_options(url: StoreUrl, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The options that hold for `url`, merged.

    Raises
    ------
    ConfigError
        If the file or the variable is not what is expected, or the profile cannot be used. The message
        repeats no value.
    MissingDependencyError
        If a profile is named, and what reads it is not installed.
    """
    merged = {**_from_file(url), **_from_environment()}
    if given is not None:
        if not hasattr(given, "items"):
            raise ConfigError(
                f"storage_options is of type {type(given).__name__}; expected a mapping of option names."
            )
        merged.update(given)
    if url.scheme == "s3":
        add_profile(merged)
    return merged


def _from_environment() -> dict[str, Any]:
    text = os.environ.get(OPTIONS_VARIABLE, "")
    if not text:
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ConfigError(f'{OPTIONS_VARIABLE} is not a JSON object such as {{"region": "eu-west-1"}}.')
    return value


def _from_file(url: StoreUrl) -> dict[str, Any]:
    named = os.environ.get(CONFIG_VARIABLE, "")
    path = Path(os.path.expanduser(named or _DEFAULT_FILE))  # noqa: PTH111 - raises nothing without a home
    try:
        value = read_json(path)
    except FileNotFoundError:
        if named:
            raise ConfigError(f"{CONFIG_VARIABLE} names {path.name}, which does not exist.") from None
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"The storage configuration {path.name} is not a JSON object.") from error
    text = str(url)
    fitting = [key for key in value if text == key or text.startswith(key.rstrip("/") + "/")]
    if not fitting:
        return {}
    options = value[max(fitting, key=len)]
    if not isinstance(options, dict):
        raise ConfigError(f"In {path.name}, {max(fitting, key=len)!r} is not an object of options.")
    return options
