"""The configuration files that the environment of a training job names, as SageMaker Debugger knew them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.config.file import load_config
from tdbg_lab.config.sagemaker.hook import is_sagemaker
from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["sagemaker_files"]

_VARIABLES = ("SMDEBUG_CONFIG_FILE_PATH", "SMPROFILER_CONFIG_PATH")


def sagemaker_files(environment: Mapping[str, str]) -> dict[str, Any] | None:
    """The content of the files named, together; None when none is.

    Raises
    ------
    ConfigError
        A file cannot be read, or is not one of SageMaker Debugger's.
    """
    found: dict[str, Any] = {}
    for variable in _VARIABLES:
        path = environment.get(variable)
        if not path:
            continue
        content = load_config(path)
        if content and not is_sagemaker(content):
            raise ConfigError(
                f"{variable} names {path}, which is not a configuration of SageMaker Debugger; "
                "give our own settings with --config."
            )
        found.update(content)
    return found or None
