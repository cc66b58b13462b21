"""What rules found and where they stand, in ``findings/``. Belongs to the rule runner process."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import StoreError
from tdbg_lab.records import Finding, RuleState, RuleStatus, Severity, ViewRef
from tdbg_lab.store.attempts import first_rank_attempts
from tdbg_lab.store.jsonable import int_in, jsonable, number_in
from tdbg_lab.store.layout import (
    entries,
    make_subfolder,
    open_to_readers,
    read_bytes,
    read_json,
    subfolder,
    write_json,
)
from tdbg_lab.store.limits import (
    MAX_FACTS,
    MAX_FINDINGS,
    MAX_FINDINGS_BYTES,
    MAX_NAME_CHARS,
    MAX_TEXT_CHARS,
    RUNNER_SILENCE_NS,
)
from tdbg_lab.store.process import ProcessMark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FILE = re.compile(r"findings-(\d{6})\.jsonl")
_STATUS_FILE = "status.json"
_LEFT = (
    "The process of the rules was killed. `tdbg rules RUN` asks them anew, `tdbg rules watch` from now on."
)
_SIMPLE = (int, float, str, bool, type(None))


class FindingsWriter:
    """Appends findings, one JSON object a line; a new file with every writer.

    Raises
    ------
    StoreError
        If the file cannot be made.
    """

    def __init__(self, run_path: str | Path) -> None:
        try:
            directory = make_subfolder(Path(run_path), "findings")
            number = max([n for n, _ in _files(directory)], default=0) + 1
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._descriptor = os.open(directory / f"findings-{number:06d}.jsonl", flags, 0o644)
            open_to_readers(self._descriptor, directory)
        except OSError as error:
            raise StoreError(f"Cannot write findings: {error.strerror}.") from error
        self._lock = threading.Lock()
        self._torn = False
        """Whether the last line was cut off, on a full disk."""

    def append(self, finding: Finding) -> None:
        """Write one finding.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        value = asdict(finding)
        value["severity"] = str(finding.severity)
        data = json.dumps(jsonable(value), separators=(",", ":")).encode() + b"\n"
        with self._lock:
            if self._descriptor < 0:
                raise StoreError("Cannot write findings: the writer is closed.")
            data = b"\n" + data if self._torn else data
            try:
                self._torn = os.write(self._descriptor, data) < len(data)
            except OSError as error:
                raise StoreError(f"Cannot write findings: {error.strerror}.") from error
            if self._torn:
                raise StoreError("Cannot write findings: the disk is full.")

    def close(self) -> None:
        """Close the file. Idempotent."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
            self._descriptor = -1


def read_findings(run_path: str | Path) -> list[Finding]:
    """All findings, in the order they were first written; torn and broken lines are left out.

    A later line with the same id is the newer state of the same finding and takes its place. Those of steps
    that a later attempt makes anew (`tdbg_lab.store.attempts`) are left out.
    """
    found: dict[str, Finding] = {}
    directory = subfolder(Path(run_path), "findings")
    for _, path in sorted(_files(directory)) if directory is not None else ():
        try:
            data = read_bytes(path, MAX_FINDINGS_BYTES)
        except OSError:
            continue
        for line in data[: data.rfind(b"\n") + 1].splitlines():
            try:
                finding = _finding(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
                continue
            place = f"id {finding.id}" if finding.id else f"line {len(found)}"
            if place in found or len(found) < MAX_FINDINGS:
                found[place] = finding
    attempts = first_rank_attempts(Path(run_path))
    return [one for one in found.values() if not attempts.replaced(one.step_first, one.time_ns)]


def findings_stamp(run_path: str | Path) -> tuple[tuple[str, int, int], ...]:
    """Changes whenever something in ``findings/`` does."""
    stamp = []
    directory = subfolder(Path(run_path), "findings")
    for entry in entries(directory) if directory is not None else ():
        try:
            facts = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        stamp.append((entry.name, facts.st_size, facts.st_mtime_ns))
    return tuple(sorted(stamp))


def write_rule_states(run_path: str | Path, states: Sequence[RuleState], **facts: Any) -> None:
    """Say where the rules stand; `facts`, JSON-able, stand beside them.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    rules = [{**asdict(state), "status": str(state.status)} for state in states]
    _write_status(run_path, {**facts, "rules": rules, "pid": os.getpid()})


def announce_runner(run_path: str | Path) -> None:
    """Say that a rule runner is about to begin, so that nobody else starts one; it takes a second or two.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    known = read_rule_status(run_path).items()
    _write_status(run_path, {key: value for key, value in known if key not in {"ended", "pid", "runner"}})


def _write_status(run_path: str | Path, value: Mapping[str, Any]) -> None:
    try:
        directory = make_subfolder(Path(run_path), "findings")
    except OSError as error:
        raise StoreError(f"Cannot write rule states: {error.strerror}.") from error
    write_json(directory / _STATUS_FILE, jsonable({**value, "heartbeat_ns": time.time_ns()}), shared=True)


def read_rule_states(run_path: str | Path) -> list[RuleState]:
    """Where the rules stand; empty when none ran."""
    found = []
    for value in _list(read_rule_status(run_path).get("rules")):
        try:
            found.append(_state(value))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            continue
    return found


def as_left(states: Sequence[RuleState], run_path: Path, *, running: bool, local: bool) -> list[RuleState]:
    """Where the rules stand; where their process was killed, or its machine, they have stopped.

    Parameters
    ----------
    running
        Whether the run goes on.
    local
        Whether processes of the run can be looked for from here; of others that go on nothing is said, since
        their clock and what brings their files may be behind.
    """
    going_on = any(one.status is RuleStatus.IN_PROGRESS for one in states)
    if not going_on or not _is_left(read_rule_status(run_path), running=running, local=local):
        return list(states)
    stopped = RuleStatus.STOPPED
    return [
        replace(one, status=stopped, reason=_LEFT) if one.status is RuleStatus.IN_PROGRESS else one
        for one in states
    ]


def _is_left(status: Mapping[str, Any], *, running: bool, local: bool) -> bool:
    """Whether the process that wrote a status has ended without a word."""
    beat_ns, pid = status.get("heartbeat_ns"), status.get("pid")
    if status.get("ended") or not isinstance(beat_ns, int):
        return False
    if abs(time.time_ns() - beat_ns) <= RUNNER_SILENCE_NS or (running and not local):
        return False
    return not (local and isinstance(pid, int) and ProcessMark(pid).find() is not None)


def read_rule_status(run_path: str | Path) -> dict[str, Any]:
    """All that the runner wrote into its status file, as it is; empty when there is none."""
    directory = subfolder(Path(run_path), "findings")
    try:
        return {} if directory is None else read_json(directory / _STATUS_FILE)
    except (OSError, ValueError):
        return {}


def _files(directory: Path) -> list[tuple[int, Path]]:
    matches = ((_FILE.fullmatch(entry.name), entry.path) for entry in entries(directory))
    return [(int(match[1]), Path(path)) for match, path in matches if match]


def _finding(value: Mapping[str, Any]) -> Finding:
    view = value.get("view")
    rank = value.get("rank")
    return Finding(
        rule=_text(value, "rule"),
        severity=Severity(value["severity"]),
        step_first=int_in(value["step_first"]),
        step_last=int_in(value["step_last"]),
        message=_text(value, "message", MAX_TEXT_CHARS),
        tensor=_text(value, "tensor"),
        module=_text(value, "module"),
        evidence=_numbers(value.get("evidence")),
        advice=tuple(str(item)[:MAX_TEXT_CHARS] for item in _list(value.get("advice"))[:100]),
        view=ViewRef(_text(view, "name"), dict(view.get("params") or {})) if isinstance(view, dict) else None,
        rank=int_in(rank) if isinstance(rank, int) else None,
        time_ns=int_in(value.get("time_ns", 0)),
        id=_text(value, "id"),
        fix=_numbers(value["fix"]) or None if isinstance(value.get("fix"), dict) else None,
        cause=_text(value, "cause"),
    )


def _state(value: Mapping[str, Any]) -> RuleState:
    return RuleState(
        rule=_text(value, "rule"),
        status=RuleStatus(value["status"]),
        reason=_text(value, "reason", MAX_TEXT_CHARS),
        step_checked=int_in(value.get("step_checked", -1)),
        findings=int_in(value.get("findings", 0)),
        cost_ms=float(value.get("cost_ms", 0.0)),
        parameters=_numbers(value.get("parameters")),
    )


def _text(value: Mapping[str, Any], name: str, limit: int = MAX_NAME_CHARS) -> str:
    found = value.get(name, "")
    return found[:limit] if isinstance(found, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _numbers(value: Any) -> dict[str, Any]:
    pairs = islice(value.items(), MAX_FACTS) if isinstance(value, dict) else ()
    return {str(key)[:MAX_NAME_CHARS]: _fact(item) for key, item in pairs if isinstance(item, _SIMPLE)}


def _fact(value: Any) -> Any:
    return number_in(value[:MAX_TEXT_CHARS]) if isinstance(value, str) else value
