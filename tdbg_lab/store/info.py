"""What ``run.json`` and ``edits.json`` say about a run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import RunStatus
from tdbg_lab.store.failures import first_failure
from tdbg_lab.store.layout import read_json, write_json
from tdbg_lab.store.limits import FORMAT, MAX_NAME_CHARS, MAX_TAGS, MAX_TEXT_CHARS
from tdbg_lab.store.process import ProcessMark, number_space

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

RUN_FILE = "run.json"
EDITS_FILE = "edits.json"


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run as its training process described it, with what people edited afterwards."""

    id: str
    name: str
    created_ns: int
    ended_ns: int | None = None
    status: RunStatus = RunStatus.RUNNING
    """As written; see `tdbg_lab.run.Run.status` for the inferred one."""
    error: str | None = None
    framework: str = ""
    framework_version: str = ""
    python: str = ""
    host: str = ""
    pid: int = -1
    process_created_s: float = 0.0
    """Creation time of the process, s since the epoch: tells a reused pid."""
    process_since_boot_s: float = 0.0
    """The same, s since the machine was started: stays when the clock is set."""
    process_space: str = ""
    """Among whom `pid` counts: containers of one machine may share its name, but not its numbers."""
    command: str = ""
    world_size: int = 1
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    notes: str = ""
    muted: tuple[str, ...] = ()
    """Rules that somebody muted: they go on checking, and nobody is told what they find."""
    git: Mapping[str, Any] | None = None
    capture: Mapping[str, Any] = field(default_factory=dict)
    last_step: int = -1
    """Last step at the end of the run; -1 while it runs or when not told."""

    @property
    def is_local(self) -> bool:
        """Whether the process can be looked for from here: by machine, and by container."""
        import platform

        here = number_space()
        return self.host == platform.node() and (
            not (self.process_space and here) or self.process_space == here
        )

    @property
    def process(self) -> ProcessMark:
        """The process that writes the run."""
        return ProcessMark(self.pid, self.process_created_s, self.process_since_boot_s)


def read_info(run_path: Path) -> RunInfo:
    """The run's description, edits applied.

    Raises
    ------
    OSError
        If ``run.json`` cannot be read.
    ValueError
        If it is not a run of ours.
    """
    info = _parse(read_json(run_path / RUN_FILE), run_path.name)
    return with_edits(run_path, info if info.world_size == 1 else _with_failure(run_path, info))


def run_id(run_path: Path) -> str:
    """The id of the run that is there; empty where there is none, or one that `create_run` did not make."""
    try:
        return read_info(run_path).id
    except (OSError, ValueError):
        return ""


def _with_failure(run_path: Path, info: RunInfo) -> RunInfo:
    """A description with the error of the process that failed before the one that describes the run."""
    failure = None if info.status is RunStatus.STOPPED else first_failure(run_path)
    if failure is None or (info.status is RunStatus.FAILED and failure.time_ns > (info.ended_ns or 0)):
        return info
    status = RunStatus.RUNNING if info.ended_ns is None else RunStatus.FAILED
    return replace(info, status=status, error=f"rank {failure.rank}: {failure.error}")


def with_edits(run_path: Path, info: RunInfo) -> RunInfo:
    """A description with what people edited."""
    try:
        edits = read_json(run_path / EDITS_FILE)
    except (OSError, ValueError):  # nobody edited, or not readable: the run's own words stand
        return info
    changes: dict[str, Any] = {}
    if isinstance(edits.get("name"), str) and edits["name"]:
        changes["name"] = edits["name"][:MAX_NAME_CHARS]
    if isinstance(edits.get("notes"), str):
        changes["notes"] = edits["notes"][:MAX_TEXT_CHARS]
    if isinstance(edits.get("tags"), list):
        changes["tags"] = _tags(edits["tags"])
    if isinstance(edits.get("muted"), list):
        changes["muted"] = _tags(edits["muted"])
    return replace(info, **changes)


def write_edits(
    run_path: Path,
    *,
    name: str | None = None,
    tags: Sequence[str] | None = None,
    notes: str | None = None,
    muted: Sequence[str] | None = None,
) -> None:
    """Change name, tags, notes or the muted rules; None leaves a field as it is.

    Raises
    ------
    ConfigError
        If a value is too long or of the wrong type.
    StoreError
        If it cannot be written.
    """
    try:
        edits = read_json(run_path / EDITS_FILE)
    except (OSError, ValueError):
        edits = {}
    if name is not None:
        edits["name"] = _checked("name", name, MAX_NAME_CHARS)
    if notes is not None:
        edits["notes"] = _checked("notes", notes, MAX_TEXT_CHARS)
    if tags is not None:
        edits["tags"] = _words("tag", tags)
    if muted is not None:
        edits["muted"] = list(dict.fromkeys(_words("muted rule", muted)))
    write_json(run_path / EDITS_FILE, edits, shared=True)


def _words(what: str, words: Sequence[str]) -> list[str]:
    if isinstance(words, str) or len(words) > MAX_TAGS:
        raise ConfigError(f"{what.capitalize()}s must be a list of at most {MAX_TAGS} words.")
    return [_checked(what, word, MAX_NAME_CHARS) for word in words]


def _checked(what: str, text: str, limit: int) -> str:
    if not isinstance(text, str):
        raise ConfigError(f"The {what} must be text, not {type(text).__name__}.")
    if len(text) > limit:
        raise ConfigError(f"The {what} has {len(text)} characters; at most {limit} are allowed.")
    return text


def _parse(value: dict[str, Any], folder: str) -> RunInfo:
    if value.get("format") != FORMAT:
        raise ValueError(f"{RUN_FILE} has format {value.get('format')!r}, expected {FORMAT}")
    identity = value.get("id")
    if not isinstance(identity, str) or not 1 <= len(identity) <= 64:
        raise ValueError(f"{RUN_FILE} has no id")
    try:
        status = RunStatus(str(value.get("status")))
    except ValueError:
        status = RunStatus.RUNNING
    return RunInfo(
        id=identity,
        name=_text(value, "name", MAX_NAME_CHARS) or folder,
        created_ns=_int(value, "created_ns", 0) or 0,
        ended_ns=_int(value, "ended_ns", None),
        status=status,
        error=_text(value, "error", MAX_TEXT_CHARS) or None,
        framework=_text(value, "framework"),
        framework_version=_text(value, "framework_version"),
        python=_text(value, "python"),
        host=_text(value, "host"),
        pid=_int(value, "pid", -1) or -1,
        process_created_s=_float(value, "process_created_s"),
        process_since_boot_s=_float(value, "process_since_boot_s"),
        process_space=_text(value, "process_space"),
        command=_text(value, "command", MAX_TEXT_CHARS),
        world_size=max(1, _int(value, "world_size", 1) or 1),
        hyperparameters=_object(value, "hyperparameters") or {},
        tags=_tags(value.get("tags")),
        notes=_text(value, "notes", MAX_TEXT_CHARS),
        git=_object(value, "git"),
        capture=_object(value, "capture") or {},
        last_step=-1 if (last := _int(value, "last_step", -1)) is None else last,
    )


def _text(value: dict[str, Any], name: str, limit: int = MAX_NAME_CHARS) -> str:
    found = value.get(name)
    return found[:limit] if isinstance(found, str) else ""


def _int(value: dict[str, Any], name: str, default: int | None) -> int | None:
    found = value.get(name)
    is_int = isinstance(found, int) and not isinstance(found, bool) and abs(found) < 2**63
    return found if is_int else default


def _float(value: dict[str, Any], name: str) -> float:
    found = value.get(name)
    return float(found) if isinstance(found, (int, float)) and abs(found) < 2**63 else 0.0


def _object(value: dict[str, Any], name: str) -> dict[str, Any] | None:
    found = value.get(name)
    return found if isinstance(found, dict) else None


def _tags(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(tag[:MAX_NAME_CHARS] for tag in value[:MAX_TAGS] if isinstance(tag, str))
