"""In what runs differ: hyper-parameters that were given, and options on the command line."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from tdbg_lab.views.labels import cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.run import Run

__all__ = ["Setting", "brief", "differing_settings", "options_in", "run_differences"]

Setting = str | float
"""A number where it is one, however it was given."""

_MOST = 3
"""Settings that are told of each run."""
_MOST_CHARS = 16
_MOST_NUMBER = 2.0**53
"""Further from zero whole numbers are no longer told apart: those stay as they were written."""
_MOST_WHOLE = 10**7
"""Whole numbers from here on are shortened."""
_OPTION = re.compile(r"-{1,2}([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
_PLACE = re.compile(r"(^|[_.])(dir|file|folder|name|out|output|path|store)$", re.IGNORECASE)
"""Ends of names of options that tell runs apart anyway."""
_PATH = re.compile(r"[/\\]")
_SETTING = re.compile(r"\+{0,2}([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
"""As Hydra takes them: ``optimizer.lr=0.1``."""


def differing_settings(runs: Sequence[Run]) -> dict[str, list[Setting | None]]:
    """The settings in which the runs differ, each with its value in every run; None where a run has none."""
    settings = [_settings(run) for run in runs]
    keys = dict.fromkeys(key for one in settings for key in one)
    values = {key: [one.get(key) for one in settings] for key in keys}
    return {key: each for key, each in values.items() if len(set(each)) > 1}


def run_differences(runs: Sequence[Run]) -> list[str]:
    """The first settings in which the runs differ, of each: ``lr=0.1, batch_size=32``."""
    told: list[list[str]] = [[] for _ in runs]
    for key, values in list(differing_settings(runs).items())[:_MOST]:
        for words, value in zip(told, values, strict=True):
            if value is not None:
                words.append(f"{key}={brief(value)}")
    return list(map(", ".join, told))


def options_in(command: str) -> dict[str, str]:
    """Names and values of the options in a command line as `shlex.join` writes it.

    ``--lr 0.1``, ``--lr=0.1`` and ``lr=0.1`` are the same; an option without a value is ``yes``.
    """
    try:
        words = shlex.split(command)[1:]
    except ValueError:  # it was cut off within quotes
        return {}
    found: dict[str, str] = {}
    waiting = ""
    for word in words:
        option = None if _number(word) is not None else _OPTION.fullmatch(word)
        setting = option or (None if waiting else _SETTING.fullmatch(word))
        if setting is not None:
            name, value = setting[1].replace("-", "_"), setting[2]
            found[name] = "yes" if value is None else value
            waiting = name if value is None else ""
        elif waiting:
            found[waiting], waiting = word, ""
    return found


def _settings(run: Run) -> dict[str, Setting]:
    """All that is known, those that were given first; without what can be told of a run by its place."""
    given = {
        key: value for key, value in run.info.hyperparameters.items() if isinstance(value, (str, int, float))
    }
    known = {**given, **options_in(run.info.command), **given}  # these stand first, and win
    return {
        key: _setting(value)
        for key, value in known.items()
        if not (_PLACE.search(key) or _PATH.search(str(value)))
    }


def _setting(value: str | float) -> Setting:
    if isinstance(value, bool):
        return "yes" if value else "no"
    number = _number(str(value))
    return str(value) if number is None or not abs(number) < _MOST_NUMBER else number


def brief(value: Setting) -> str:
    """A setting as it stands in a name or at an axis."""
    if isinstance(value, str):
        return cut(value, _MOST_CHARS)
    return str(int(value)) if value.is_integer() and abs(value) < _MOST_WHOLE else f"{value:.4g}"


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
