"""The server that an object store's requests go to, where it is not the provider's own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["endpoint"]

_OPTIONS: Final = ("endpoint", "endpoint_url", "aws_endpoint", "aws_endpoint_url", "azure_storage_endpoint")
_VARIABLES: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def endpoint(options: Mapping[str, Any]) -> str:
    """The endpoint that was set, among the options or in the environment; empty where none was."""
    for name in _OPTIONS:
        if isinstance(options.get(name), str):
            return str(options[name])
    return next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), "")
