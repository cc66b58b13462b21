"""Requests to the training process: one JSON file each, answered in place."""

from __future__ import annotations

import contextlib
import json
import re
import time
import uuid
from collections.abc import Mapping  # noqa: TC003 - a field's type, read by tools
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tdbg_lab.errors import ConfigError, ConflictError, DeniedError, NotFoundError, StoreError
from tdbg_lab.store.layout import (
    CLOCK_GRAIN_NS,
    entries,
    make_subfolder,
    modified_ns,
    read_json,
    subfolder,
    write_json,
)
from tdbg_lab.store.limits import MAX_NAME_CHARS, MAX_REQUESTS, MAX_TEXT_CHARS
from tdbg_lab.store.source import is_foreign

if TYPE_CHECKING:
    from collections.abc import Container

CONTROL = "control"
"""The folder of requests in a run directory."""
_ID = re.compile(r"[0-9a-f]{32}")
_KIND = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MAX_FILE_BYTES = 1024 * 1024
_MAX_ARGUMENTS = 32


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asked of the training process."""

    id: str
    kind: str
    """``stop``, ``set``."""
    reason: str = ""
    by: str = ""
    created_ns: int = 0
    state: Literal["pending", "done", "refused"] = "pending"
    answer: str | None = None
    answered_ns: int | None = None
    arguments: Mapping[str, float | int | str | bool] = field(default_factory=dict)
    """What more there is to say: the setting and its value, the id of the finding."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """What came of it, as JSON."""


def request(
    run_path: str | Path,
    kind: str,
    *,
    reason: str = "",
    by: str = "",
    arguments: Mapping[str, float | int | str | bool] | None = None,
) -> str:
    """Ask the training process for something; returns the id of the request.

    Raises
    ------
    ConfigError
        If `kind` is not a short lower-case word.
    ConflictError
        If nobody reads requests: another library wrote the run.
    StoreError
        If it cannot be written.
    """
    if not _KIND.fullmatch(kind):
        raise ConfigError(f"{kind[:80]!r} is not a kind of request.")
    if is_foreign(Path(run_path)):
        raise ConflictError(
            f"{Path(run_path).name} was recorded by SageMaker Debugger, which takes no requests: "
            "stop the training where it runs."
        )
    identity = uuid.uuid4().hex
    value = {
        "id": identity,
        "kind": kind,
        "reason": reason[:MAX_TEXT_CHARS],
        "created_ns": time.time_ns(),
        "by": by[:MAX_NAME_CHARS],
        "arguments": _arguments(arguments),
        "state": "pending",
        "answer": None,
        "answered_ns": None,
    }
    try:
        directory = make_subfolder(Path(run_path), CONTROL)
        write_json(directory / f"{identity}.json", value, shared=True)
    except OSError as error:
        why = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise DeniedError.of(f"Cannot ask run {Path(run_path).name}", why) from error
    return identity


def requests(run_path: str | Path) -> list[Request]:
    """The latest `MAX_REQUESTS` requests, oldest first; what cannot be read is left out."""
    return _latest(Path(run_path))


def _latest(run_path: Path, *, without: Container[str] = ()) -> list[Request]:
    """The latest `MAX_REQUESTS` but those of the ids in `without`, oldest first."""
    directory = subfolder(run_path, CONTROL)
    found = []
    for entry in entries(directory) if directory is not None else ():
        identity, _, ending = entry.name.partition(".")
        if ending == "json" and _ID.fullmatch(identity) and identity not in without:
            found.append(Path(entry.path))
    if len(found) > MAX_REQUESTS:
        found = nlargest(MAX_REQUESTS, found, modified_ns)
    readable = [request for path in found if (request := _read(path)) is not None]
    return sorted(readable, key=lambda request: (request.created_ns, request.id))


def _read(path: Path) -> Request | None:
    """A request; None when it cannot be read."""
    try:
        return _parse(path.stem, read_json(path, _MAX_FILE_BYTES))
    except (OSError, ValueError):
        return None


def pending(run_path: str | Path) -> list[Request]:
    """Requests without an answer, oldest first. See `ControlPoll` for many calls."""
    return [request for request in requests(run_path) if request.state == "pending"]


def refuse_pending(run_path: str | Path, text: str) -> None:
    """Answer what nobody will follow any more; what cannot be answered stays."""
    for one in pending(run_path):
        with contextlib.suppress(StoreError, NotFoundError):
            answer(run_path, one.id, "refused", text)


class ControlPoll:
    """Pending requests for one `stat` a call while nothing changes.

    What was answered stays so: a run that is asked for something every minute reads what is new only.
    """

    def __init__(self, run_path: str | Path) -> None:
        self._path = Path(run_path)
        self._seen: int | None = None
        self._look_until_s = 0.0
        self._answered: set[str] = set()
        self._pending: list[Request] = []

    def __call__(self) -> list[Request]:
        """Requests without an answer, oldest first."""
        try:
            changed_ns = (self._path / CONTROL).lstat().st_mtime_ns
        except OSError:  # nobody asked anything yet
            return []
        now_s = time.monotonic()
        if changed_ns != self._seen:
            self._seen = changed_ns
            # A change within the clock's grain of this one would go unseen: look again for a while.
            self._look_until_s = now_s + CLOCK_GRAIN_NS / 1e9
        elif now_s > self._look_until_s:
            return self._pending
        self._pending = self._look()
        return self._pending

    def _look(self) -> list[Request]:
        found = _latest(self._path, without=self._answered)
        self._answered.update(one.id for one in found if one.state != "pending")
        return [one for one in found if one.state == "pending"]


def answer(
    run_path: str | Path,
    identity: str,
    state: Literal["done", "refused"],
    text: str = "",
    *,
    result: Mapping[str, Any] | None = None,
) -> None:
    """Answer a request; the training process does. `result` is JSON.

    Raises
    ------
    NotFoundError
        If there is no such request.
    StoreError
        If it cannot be written.
    """
    directory = subfolder(Path(run_path), CONTROL)
    if directory is None or not _ID.fullmatch(identity):
        raise NotFoundError("There is no such request.")
    path = directory / f"{identity}.json"
    try:
        value = read_json(path, _MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        raise NotFoundError("There is no such request.") from error
    value.update(state=state, answer=text[:MAX_TEXT_CHARS], answered_ns=time.time_ns())
    if result is not None:
        value["result"] = dict(result)
    write_json(path, value, shared=True)


def _parse(identity: str, value: dict[str, Any]) -> Request:
    kind, state, created = value.get("kind"), value.get("state"), value.get("created_ns")
    if not isinstance(kind, str) or not _KIND.fullmatch(kind) or state not in ("pending", "done", "refused"):
        raise ValueError("not a request")
    answered, text = value.get("answered_ns"), value.get("answer")
    return Request(
        id=identity,
        kind=kind,
        reason=str(value.get("reason", ""))[:MAX_TEXT_CHARS],
        by=str(value.get("by", ""))[:MAX_NAME_CHARS],
        created_ns=created if isinstance(created, int) else 0,
        state=state,
        answer=text[:MAX_TEXT_CHARS] if isinstance(text, str) else None,
        answered_ns=answered if isinstance(answered, int) else None,
        arguments=_arguments(value.get("arguments")),
        result=result if isinstance(result := value.get("result"), dict) else {},
    )


def _arguments(value: Any) -> dict[str, float | int | str | bool]:
    """Short words with numbers or short texts; the rest is left out."""
    pairs = list(value.items())[:_MAX_ARGUMENTS] if isinstance(value, dict) else ()
    return {
        name: one[:MAX_NAME_CHARS] if isinstance(one, str) else one
        for name, one in pairs
        if isinstance(name, str) and _KIND.fullmatch(name) and isinstance(one, str | int | float | bool)
    }


class RequestBoard:
    """What all processes of a training do after the same step: one file, written by one of them.

    It is there from the start and opened anew for each look, because network file systems promise
    only then that what was written elsewhere is seen.
    """

    def __init__(self, run_path: str | Path) -> None:
        self._path = Path(run_path) / CONTROL / "agreed.json"

    def clear(self) -> None:
        """Nothing is agreed on.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        try:
            make_subfolder(self._path.parent.parent, CONTROL)
        except OSError as error:
            raise StoreError(f"Cannot make {CONTROL}: {error.strerror}.") from error
        write_json(self._path, {})

    def write(self, step: int, request: Request) -> None:
        """All follow `request` when `step` steps are completed.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        told = {
            "step": step,
            "id": request.id,
            "kind": request.kind,
            "reason": request.reason[:MAX_NAME_CHARS],
            "by": request.by,
            "arguments": dict(request.arguments),
        }
        write_json(self._path, told)

    def read(self) -> tuple[int, Request] | None:
        """The number of completed steps to act at, and the request; None when nothing is agreed on."""
        try:
            with self._path.open("rb") as file:
                text = file.read(_MAX_FILE_BYTES)
            told = json.loads(text) if len(text) > len(b"{}\n") else {}
            step, identity = told.get("step"), told.get("id")
            if not isinstance(step, int) or not isinstance(identity, str) or not _ID.fullmatch(identity):
                return None
            return step, _parse(identity, {**told, "state": "pending"})
        except (OSError, ValueError, AttributeError):
            return None
