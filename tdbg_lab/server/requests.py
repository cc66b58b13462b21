"""What clients may ask for, read from request bodies and checked."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from tdbg_lab.errors import ConfigError, TdbgError
from tdbg_lab.profiler.window import ProfileWindow
from tdbg_lab.store import SettingChange

__all__ = [
    "BodyTooLargeError",
    "EditRequest",
    "FixRequest",
    "HostRequest",
    "RecheckRequest",
    "SettingRequest",
    "StopRequest",
    "ViewRequest",
    "WatchRequest",
    "parse_edit",
    "parse_fix",
    "parse_message",
    "parse_profile",
    "parse_recheck",
    "parse_setting",
    "parse_stop",
    "parse_view",
]

MAX_NAME_CHARS = 200
MAX_TAGS = 64
MAX_TAG_CHARS = 100
MAX_MUTED = 256
MAX_NOTES_CHARS = 20_000
MAX_REASON_CHARS = 1_000
MAX_PARAMS = 64
MAX_WATCH_IDS = 1_000
MAX_ID_CHARS = 64
PROFILE_FIELDS = {"steps", "seconds", "start", "operators", "shapes", "memory", "stacks", "python"}


class BodyTooLargeError(TdbgError, ValueError):
    """A request body is larger than its route allows."""

    http_status = 413


@dataclass(frozen=True, slots=True)
class EditRequest:
    """New values; None leaves the old one."""

    name: str | None
    tags: list[str] | None
    notes: str | None
    muted: list[str] | None = None
    """Names of the rules that are mute, all of them."""


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Ask the training process to stop."""

    reason: str


@dataclass(frozen=True, slots=True)
class FixRequest:
    """Ask the training process for the change that a finding proposes."""

    finding: str


@dataclass(frozen=True, slots=True)
class SettingRequest:
    """Ask the training process to change a setting."""

    change: SettingChange
    reason: str


@dataclass(frozen=True, slots=True)
class RecheckRequest:
    """Ask for a check with other thresholds."""

    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """Ask for a figure."""

    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class HostRequest:
    """Tell how busy the machine is from now on, or no more."""

    on: bool


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Watch exactly these runs; None when the message is a ping."""

    runs: tuple[str, ...] | None


def parse_edit(body: bytes) -> EditRequest:
    """Body of ``PATCH /tdbg/runs/{id}``.

    Raises
    ------
    ConfigError
        When it is not what the route expects.
    """
    fields = _object(body, allowed={"name", "tags", "notes", "muted"})
    if not fields:
        raise ConfigError("The body names nothing to change; expected name, tags, notes or muted.")
    name = _text(fields, "name", MAX_NAME_CHARS)
    if name is not None and not name.strip():
        raise ConfigError("name is empty; expected at least one character.")
    return EditRequest(
        name,
        _words(fields, "tags", MAX_TAGS),
        _text(fields, "notes", MAX_NOTES_CHARS),
        _words(fields, "muted", MAX_MUTED),
    )


def parse_stop(body: bytes) -> StopRequest:
    """Body of ``POST /tdbg/runs/{id}/stop``; an empty one will do.

    Raises
    ------
    ConfigError
        When it is not what the route expects.
    """
    fields = _object(body or b"{}", allowed={"reason"})
    return StopRequest(_text(fields, "reason", MAX_REASON_CHARS) or "")


def parse_fix(body: bytes) -> FixRequest:
    """Body of ``POST /tdbg/runs/{id}/fix``.

    Raises
    ------
    ConfigError
        When it does not name a finding.
    """
    finding = _text(_object(body or b"{}", allowed={"finding"}), "finding", MAX_REASON_CHARS)
    if not finding:
        raise ConfigError("finding is missing: expected the id of a finding that proposes a change.")
    return FixRequest(finding)


def parse_profile(body: bytes) -> dict[str, Any]:
    """Body of ``POST /tdbg/runs/{id}/profile``; an empty one asks for the next five steps.

    Returns arguments of `tdbg_lab.run.Run.request_profile`, checked.

    Raises
    ------
    ConfigError
        When it is not what the route expects.
    """
    fields = _object(body or b"{}", allowed=PROFILE_FIELDS)
    given = {name: value for name, value in fields.items() if value is not None}
    ProfileWindow.of(given)
    return given


def parse_recheck(body: bytes) -> RecheckRequest:
    """Body of ``POST /tdbg/runs/{id}/rules/{rule}/check``; an empty one asks for the defaults.

    Raises
    ------
    ConfigError
        When it is not what the route expects.
    """
    parameters = _entries(body, "parameters")
    for name, value in parameters.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{name[:100]} is {value}; expected a finite number.")
        if isinstance(value, (dict, list)) or (isinstance(value, str) and len(value) > MAX_REASON_CHARS):
            limit = f"a text of at most {MAX_REASON_CHARS} characters"
            raise ConfigError(f"{name[:100]} is not a number, a boolean, null or {limit}.")
    return RecheckRequest(parameters)


def parse_setting(body: bytes) -> SettingRequest:
    """Body of ``POST /tdbg/runs/{id}/settings``: the fields of a `SettingChange`, and a reason.

    Raises
    ------
    ConfigError
        When it is not what the route expects.
    """
    fields = _object(body, allowed={"setting", "value", "factor", "group", "optimizer", "reason"})
    reason = _text(fields, "reason", MAX_REASON_CHARS) or ""
    given = {name: value for name, value in fields.items() if name != "reason" and value is not None}
    return SettingRequest(SettingChange.of(given), reason)


def parse_view(body: bytes) -> ViewRequest:
    """Body of ``POST /tdbg/runs/{id}/views/{view}``; an empty one asks for the defaults.

    Raises
    ------
    ConfigError
        When it is not what the route expects.
    """
    return ViewRequest(_entries(body, "params"))


def parse_message(text: str | bytes) -> WatchRequest | HostRequest:
    """A message of a client on the socket.

    Raises
    ------
    ConfigError
        When it is none of ``watch``, ``host`` and ``ping``.
    """
    fields = _object(text.encode() if isinstance(text, str) else text, allowed={"type", "runs", "on"})
    kind = fields.get("type")
    if kind == "ping":
        return WatchRequest(None)
    on = fields.get("on")
    if kind == "host" and isinstance(on, bool):
        return HostRequest(on)
    runs = fields.get("runs")
    if kind != "watch" or not isinstance(runs, list) or len(runs) > MAX_WATCH_IDS:
        known = '{"type": "watch", "runs": [ids]}, {"type": "host", "on": true or false}, {"type": "ping"}'
        raise ConfigError(f"The message is none of {known}.")
    if not all(isinstance(run, str) and 0 < len(run) <= MAX_ID_CHARS for run in runs):
        raise ConfigError("runs holds something that is no run id.")
    return WatchRequest(tuple(runs))


def _object(body: bytes, *, allowed: set[str]) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise ConfigError("The body is not valid JSON.") from None
    if not isinstance(value, dict):
        raise ConfigError("The body is not a JSON object.")
    unknown = sorted(set(value) - allowed)
    if unknown:
        raise ConfigError(
            f"The body has an unknown field {unknown[0][:100]!r}; known: {', '.join(sorted(allowed))}."
        )
    return value


def _entries(body: bytes, name: str) -> dict[str, Any]:
    """The one field `name` of a body: an object, empty when it is not there."""
    value = _object(body or b"{}", allowed={name}).get(name, {})
    if not isinstance(value, dict) or len(value) > MAX_PARAMS:
        raise ConfigError(f"{name} is not an object with at most {MAX_PARAMS} entries.")
    return value


def _text(fields: dict[str, Any], name: str, limit: int) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ConfigError(f"{name} is not a text.")
    if len(value) > limit:
        raise ConfigError(f"{name} has {len(value)} characters; at most {limit} are allowed.")
    return value


def _words(fields: dict[str, Any], name: str, limit: int) -> list[str] | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > limit:
        raise ConfigError(f"{name} is not a list of at most {limit} texts.")
    for word in value:
        if not isinstance(word, str) or not 0 < len(word.strip()) <= MAX_TAG_CHARS:
            raise ConfigError(
                f"{name} holds something that is not a text of 1 to {MAX_TAG_CHARS} characters."
            )
    return list(dict.fromkeys(word.strip() for word in value))
