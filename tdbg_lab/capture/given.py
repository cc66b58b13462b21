"""What a user says about a run - place, name, tags, actions - checked before anything is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from tdbg_lab.errors import ConfigError

__all__ = ["check_given"]

_IF_EXISTS = ("new", "resume", "error")


def check_given(given: Mapping[str, Any]) -> None:
    """Check those of the arguments of `tdbg_lab.attach` that describe the run; others are passed over.

    Raises
    ------
    ConfigError
        With one sentence for the first that is wrong.
    """
    for name, (right, expected) in _EXPECTED.items():
        if name in given and not right(given[name]):
            value = given[name]
            raise ConfigError(f"{name} is {value!r:.80} ({type(value).__name__}); expected {expected}.")
    if given.get("actions"):
        from tdbg_lab.rules.launcher import check_actions

        check_actions(given["actions"])


def _a_place(store: Any) -> bool:
    if not isinstance(store, str | os.PathLike):
        return store is None
    text = str(store)
    return bool(text.strip()) and "\0" not in text


def _texts(tags: Any) -> bool:
    return (
        not isinstance(tags, str) and hasattr(tags, "__iter__") and all(isinstance(tag, str) for tag in tags)
    )


_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "store": (_a_place, "the folder of a run, or s3://bucket/path, gs://bucket/path, az://container/path"),
    "name": (lambda name: name is None or isinstance(name, str), "a text"),
    "hyperparameters": (
        lambda given: given is None or isinstance(given, Mapping),
        "a mapping, such as {'lr': 0.1} or vars(arguments)",
    ),
    "tags": (_texts, "a list of texts, such as ['baseline']"),
    "notes": (lambda notes: isinstance(notes, str), "a text"),
    "if_exists": (lambda what: what in _IF_EXISTS, "'new', 'resume' or 'error'"),
    "first_step": (
        lambda step: isinstance(step, int) and not isinstance(step, bool) and step >= 0,
        "the number of a step, 0 or more",
    ),
}
