"""The terminal, or whatever the output of the command goes to."""

from __future__ import annotations

import io
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["any_characters"]


@contextmanager
def any_characters() -> Iterator[None]:
    r"""Within the block, characters that the output's encoding lacks are written as ``\u4e2d``.

    On Windows a pipe or a file has the code page of the country, and names of runs may be of any other. A
    program that the command launches runs behind the block: its output is its own.
    """
    output = sys.stdout
    if not isinstance(output, io.TextIOWrapper):  # taken over by somebody, or not there
        yield
        return
    before = output.errors
    output.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        output.reconfigure(errors=before)
