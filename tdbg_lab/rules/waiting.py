"""Waiting for news of a run."""

from __future__ import annotations

import logging
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["wakes"]

log = logging.getLogger(__name__)

_POLL_S = 0.1
_LOOK_MS = 250


def wakes(path: Path, stop: threading.Event) -> Iterator[None]:
    """Wake when statistics or the state of a run change, and every quarter of a second anyway.

    Where the file system tells nothing of changes, or there are no more watches to be had, it wakes
    every tenth of a second. Ends when `stop` is set; deleting the directory does not end it.
    """
    try:
        yield from _watch(path, stop)
    except (ImportError, OSError, RuntimeError) as error:
        log.debug("Polling, for lack of file events: %s", error)
    while not stop.is_set():
        yield
        stop.wait(_POLL_S)


def _watch(path: Path, stop: threading.Event) -> Iterator[None]:
    from watchfiles import watch

    yield
    for _ in watch(
        path,
        watch_filter=lambda _, changed: _is_news(path, changed),
        debounce=100,
        step=20,
        stop_event=stop,
        rust_timeout=_LOOK_MS,
        yield_on_timeout=True,
        raise_interrupt=False,
        ignore_permission_denied=True,
    ):
        yield


def _is_news(path: Path, changed: str) -> bool:
    """Whether a file that has changed below `path` is none of those that rules and samplers write."""
    *folders, name = PurePath(changed.removeprefix(str(path))).parts or ("",)
    return "findings" not in folders and not name.startswith("system-")
