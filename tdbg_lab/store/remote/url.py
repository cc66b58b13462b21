"""Addresses on object stores."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["StoreUrl", "is_url", "parse_url"]

_SCHEMES = ("s3", "gs", "az")
_EXPECTED = "s3://bucket/path, gs://bucket/path or az://container/path"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_PART = re.compile(r"[^\x00-\x1f\x7f/\\:*?\"<>|]{1,200}")
_MAX_CHARS = 1000


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A place on an object store."""

    scheme: str
    bucket: str
    """Of Azure: the container."""
    path: str
    """Without slashes at its ends; empty for the bucket itself."""

    def __str__(self) -> str:
        return f"{self.root}/{self.path}" if self.path else self.root

    @property
    def root(self) -> str:
        """The bucket."""
        return f"{self.scheme}://{self.bucket}"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> StoreUrl:
        """The folder above."""
        return StoreUrl(self.scheme, self.bucket, self.path.rpartition("/")[0])

    def child(self, relative: str) -> StoreUrl:
        """A place below, `relative` being a POSIX path."""
        return StoreUrl(self.scheme, self.bucket, f"{self.path}/{relative}".strip("/"))


def is_url(place: str | Path) -> bool:
    """Whether `place` is meant as an address; also one that went through `pathlib.Path`."""
    return _split(place) is not None


def parse_url(place: str | Path) -> StoreUrl:
    """The address that `place` is.

    Raises
    ------
    ConfigError
        If it is none of an object store we know.
    """
    text = os.fspath(place)
    found = _split(place)
    scheme, rest = found or ("", "")
    bucket, _, path = rest.partition("/")
    if "@" in bucket:  # the text holds a secret: it is not repeated
        raise ConfigError(
            f"An address on an object store holds no credentials; expected {_EXPECTED}, "
            "with the credentials in the environment or in storage_options."
        )
    if scheme not in _SCHEMES or not _HOST.fullmatch(bucket) or len(text) > _MAX_CHARS:
        raise ConfigError(f"{text[:200]!r} is not a place for runs; expected a folder, {_EXPECTED}.")
    parts = [part for part in path.split("/") if part]
    for part in parts:
        if not _PART.fullmatch(part) or part in {".", ".."}:
            raise ConfigError(
                f"{part[:80]!r} in {text[:200]!r} cannot be the name of a folder; choose another."
            )
    return StoreUrl(scheme, bucket, "/".join(parts))


def _split(place: str | Path) -> tuple[str, str] | None:
    """Scheme and the rest, or None for a path of the file system."""
    text = os.fspath(place)
    match = _URL.fullmatch(text)
    if match is None:
        return None
    scheme = match[1].lower()
    whole = "://" in text[: len(match[1]) + 3]
    return (scheme, match[2]) if whole or scheme in _SCHEMES else None
