"""Requests that readers put on the object store, brought to the run directory."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from typing import TYPE_CHECKING

from tdbg_lab.errors import StoreError
from tdbg_lab.store.control import CONTROL
from tdbg_lab.store.layout import make_subfolder, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.store.remote.objects import Objects

__all__ = ["Inbox"]

log = logging.getLogger("tdbg_lab")

_FILE = re.compile(r"[0-9a-f]{32}\.json")
_MAX_BYTES = 64 * 1024
_MOST = 1000


class Inbox:
    """Fetches each request once. What the training process answers is sent like any other file."""

    def __init__(self, run_path: Path, objects: Objects) -> None:
        self._run_path = run_path
        self._objects = objects
        self._refused: set[str] = set()

    def fetch(self) -> int:
        """Write new requests into ``control/``; how many.

        Raises
        ------
        RemoteError
            If the object store cannot be asked.
        """
        fetched = 0
        _, found = self._objects.folder(CONTROL)
        for info in found[:_MOST]:
            name = info.key.rpartition("/")[2]
            target = self._run_path / CONTROL / name
            if not _FILE.fullmatch(name) or name in self._refused or target.exists():
                continue
            value = self._read(info.key, info.size)
            if value is None:
                self._refused.add(name)
                continue
            with contextlib.suppress(StoreError, OSError):  # the directory is gone: nobody would answer
                write_json(make_subfolder(self._run_path, CONTROL) / name, value)
                fetched += 1
        return fetched

    def _read(self, key: str, size: int) -> dict[str, object] | None:
        """A request; None for what is none. `tdbg_lab.store.control` checks the rest."""
        data = self._objects.get(key) if size <= _MAX_BYTES else None
        try:
            value = json.loads(data or b"null")
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            log.debug("Request %s is none; it is left alone.", key)
            return None
        return value
