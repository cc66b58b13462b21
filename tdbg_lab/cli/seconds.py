"""Seconds on the command line."""

from __future__ import annotations

import math
from typing import Any

import click

__all__ = ["SECONDS"]


class _Seconds(click.FloatRange):
    """A number of seconds, or ``inf`` for as long as it takes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):  # no comparison with it is true: the wait would never end
            self.fail(f"{value} is no number of seconds; expected 0 or more.", param, ctx)
        return seconds


SECONDS = _Seconds(0)
"""The type of an option that takes seconds to wait."""
