"""A progress bar on the terminal, where there is one."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["shown"]

_PARTS = 1000


@contextmanager
def shown(label: str) -> Iterator[Callable[[float], None]]:
    """A function to call with the share that is done, 0 to 1; nothing is shown but on a terminal."""
    with click.progressbar(
        length=_PARTS, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        done = 0

        def progress(share: float) -> None:
            nonlocal done
            now = int(min(max(share, 0.0), 1.0) * _PARTS)
            if now > done:
                bar.update(now - done)
                done = now

        yield progress
