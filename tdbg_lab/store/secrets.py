"""Masking what looks like a secret before it is written into a run, which many people may read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MASK", "mask_values", "mask_words"]

MASK = "***"

_NAMES = r"pass(?:word|wd|phrase)|pwd|secret|credentials?|(?:api|access|secret|private|account)[-_]?key"
_NAME = re.compile(f"(?:{_NAMES})$", re.IGNORECASE)
"""How the name of an argument ends that is a secret whatever its value."""
_TOKEN = re.compile("token$", re.IGNORECASE)
"""The same of one that may be a token of a text, too."""
_TOKEN_VALUE = re.compile(r"(?=.*[a-z])[\w.~+/=-]{8,}", re.IGNORECASE)
"""Such as a service gives out, not ``<pad>``, ``[MASK]`` or ``50256``."""
_WITHIN = (
    (re.compile(r"(://[^/\s:@]*:)[^/\s@]+(?=@)"), rf"\1{MASK}"),
    (re.compile(rf"([?&][\w.-]*(?:{_NAMES}|token|sig|signature)=)[^&#\s]+", re.IGNORECASE), rf"\1{MASK}"),
    (re.compile(r"\b(hf_|sk-|gh[opsur]_|github_pat_|glpat-|xox[abprs]-|AKIA|AIza)[\w-]{12,}"), rf"\1{MASK}"),
)
"""Passwords and signatures in addresses, and what well-known services give out."""


def mask_words(words: Sequence[str]) -> list[str]:
    """The words of a command line: ``--api-key=***``, ``--password ***``, ``hub.token=***``."""
    masked, option = [], ""
    for word in words:
        name, sign, value = word.partition("=")
        is_option = word.startswith("-")
        if option and not is_option:
            masked.append(_masked(option, word))
        elif sign and "/" not in name:  # else an address with parameters, or a file of such a name
            masked.append(f"{name}={_masked(name, value)}")
        else:
            masked.append(_masked("", word))
        option = word if is_option and not sign else ""
    return masked


def mask_values(value: Any, name: str = "") -> Any:
    """The same of hyper-parameters, which may be nested."""
    if isinstance(value, dict):
        return {key: mask_values(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [mask_values(item, name) for item in value]
    return _masked(name, value) if isinstance(value, str) else value


def _masked(name: str, value: str) -> str:
    if value and (_NAME.search(name) or (_TOKEN.search(name) and _TOKEN_VALUE.fullmatch(value))):
        return MASK
    for pattern, instead in _WITHIN:
        value = pattern.sub(instead, value)
    return value
