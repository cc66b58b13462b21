"""In what runs differ: hyper-parameters that were given, and options on the command line."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from tdbg_lab.views.labels import cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.run import Run

__all__ = ["options_in", "run_differences"]

_MOST = 3
"""Settings that are told of each run."""
_MOST_CHARS = 16
_OPTION = re.compile(r"-{1,2}([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
_PLACE = re.compile(r"(^|[_.])(dir|file|folder|name|out|output|path|store)$", re.IGNORECASE)
"""Ends of names of options that tell runs apart anyway."""
_PATH = re.compile(r"[/\\]")
_SETTING = re.compile(r"\+{0,2}([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
"""As Hydra takes them: ``optimizer.lr=0.1``."""


def run_differences(runs: Sequence[Run]) -> list[str]:
    """The first settings in which the runs differ, of each: ``lr=0.1, batch_size=32``."""
    settings = [_settings(run) for run in runs]
    keys = dict.fromkeys(key for one in settings for key in one)
    differing = [key for key in keys if len({str(one.get(key)) for one in settings}) > 1][:_MOST]
    return [", ".join(f"{key}={_brief(one[key])}" for key in differing if key in one) for one in settings]


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
        option = None if _is_number(word) else _OPTION.fullmatch(word)
        setting = option or (None if waiting else _SETTING.fullmatch(word))
        if setting is not None:
            name, value = setting[1].replace("-", "_"), setting[2]
            found[name] = "yes" if value is None else value
            waiting = name if value is None else ""
        elif waiting:
            found[waiting], waiting = word, ""
    return found


def _settings(run: Run) -> dict[str, str | float]:
    """All that is known, those that were given first; without what can be told of a run by its place."""
    given = {
        key: value for key, value in run.info.hyperparameters.items() if isinstance(value, (str, int, float))
    }
    known = {**given, **options_in(run.info.command), **given}  # these stand first, and win
    return {
        key: value for key, value in known.items() if not (_PLACE.search(key) or _PATH.search(str(value)))
    }


def _brief(value: str | float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else cut(str(value), _MOST_CHARS)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
