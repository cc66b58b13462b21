"""Plain tables, and words for times."""

from __future__ import annotations

import datetime as dt
import math
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_LINE_CHARS", "clean", "moment", "number", "table"]

MAX_CELL_CHARS = 60
MAX_LINE_CHARS = 1000


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Left-aligned columns, two spaces apart. Long cells are cut, those of the last column hardly ever."""
    cells = [list(head), *[[*map(clean, row[:-1]), clean(row[-1], MAX_LINE_CHARS)] for row in rows]]
    widths = [max(len(row[place]) for row in cells) for place in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join(line.rstrip() for line in lines)


def clean(text: str, limit: int = MAX_CELL_CHARS) -> str:
    """One line without control characters: what a run directory says must not drive a terminal."""
    plain = "".join(" " if unicodedata.category(char)[0] == "C" else char for char in str(text))
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def moment(time_ns: int | None) -> str:
    """Local time to the second; ``-`` when there is none."""
    if not time_ns:
        return "-"
    try:
        return dt.datetime.fromtimestamp(time_ns / 1e9).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "?"


def number(value: float | None) -> str:
    """Four significant digits; ``-`` when there is none."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.4g}"
