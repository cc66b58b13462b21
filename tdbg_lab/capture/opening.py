"""Opening a capture: the run directory, the writer, the handle and what runs beside training.

Every framework's way in ends here; a framework then hangs its hooks on the handle.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tdbg_lab.background import start_thread
from tdbg_lab.capture import companions
from tdbg_lab.capture.control import REQUESTS, ControlWatch, SharedControlWatch
from tdbg_lab.capture.engine import Engine
from tdbg_lab.capture.handle import Handle
from tdbg_lab.capture.inert import inert_handle
from tdbg_lab.capture.ranks import Meeting, Place, Ranks, Role, SilentWriter, default_place, role
from tdbg_lab.capture.registry import enter, open_handles
from tdbg_lab.capture.remote import RemoteStore
from tdbg_lab.capture.switch import is_off
from tdbg_lab.records import Mode
from tdbg_lab.store import RankWriter, RunFolder, create_run
from tdbg_lab.store.attempts import after_checkpoint, cut_other_ranks
from tdbg_lab.store.remote import is_url, parse_url
from tdbg_lab.store.remote.spool import spool_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tdbg_lab.capture.stopping import StopReason
    from tdbg_lab.config import CaptureConfig

__all__ = ["IfExists", "Place", "RunFacts", "accompany", "default_place", "open_handle"]

_log = logging.getLogger("tdbg_lab")

IfExists = Literal["new", "resume", "error"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFacts:
    """What is kept with a run."""

    name: str | None = None
    hyperparameters: Mapping[str, Any] | None = None
    tags: Sequence[str] = ()
    notes: str = ""
    framework: str = ""
    framework_version: str = ""
    capture: Mapping[str, Any] | None = None
    """Beside the settings, which are kept anyway."""


def open_handle(
    store: str | Path | None,
    settings: CaptureConfig,
    facts: RunFacts,
    *,
    place: Place | None = None,
    ranks: Ranks | None = None,
    if_exists: IfExists = "new",
    first_step: int = 0,
    phases: bool = True,
    strict: bool = False,
    checkpoint: Callable[[StopReason], object] | None = None,
    on_stop: Callable[[StopReason], object] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[Handle, Engine]:
    """Make the run directory (the chief rank does) and a handle with nothing hung on it yet.

    What is None here is as `settings` say. Where `store` is on an object store, the directory is in
    the spool and a process sends it.

    Call `accompany` when the hooks are in place; on failure leave the handle with the exception
    (``handle.__exit__``). Where the environment turns everything off, nothing is made and the
    handle is not ``attached``: hang no hooks on it.

    Raises
    ------
    StoreError, ConflictError
        The run directory cannot be made.
    ConfigError
        `ranks` names none that exists.
    CaptureError
        Another rank makes the run, and did not within a minute.
    """
    if is_off():
        return inert_handle(_requested(store)[1])
    place = default_place() if place is None else place
    store = settings.store if store is None else store
    duty = role(settings.ranks or "all" if ranks is None else ranks, place)
    request, path = _requested(store)
    _end_earlier(request, same_run=if_exists == "resume")
    meeting = Meeting(request, place)
    remote = None
    if store is not None and is_url(store) and duty.writes:
        remote = RemoteStore.prepare(store, storage_options, chief=duty.chief, if_exists=if_exists)
        path = remote.path
    if duty.chief:
        folder = _new_folder(path, settings, facts, place, if_exists)
        if if_exists == "resume":
            first_step = first_step or _first_step(folder.path)
    else:
        folder, first_step = _joined(path, meeting, remote, place)
    if remote is not None:
        remote.enter(folder, place.rank, chief=duty.chief)
    phases = phases and settings.profiler
    goes_on_at = after_checkpoint(first_step) if if_exists == "resume" and first_step > 0 else None
    if duty.chief and goes_on_at is not None:
        cut_other_ranks(folder.path, place.rank, goes_on_at)
    engine = _engine(
        folder,
        settings,
        place,
        duty,
        goes_on_at=goes_on_at,
        strict=strict,
        phases=phases,
        first_step=first_step,
    )
    if duty.chief:
        meeting.announce(folder.path, first_step)
    if remote is not None:
        engine.guard.run("sender", remote.start_sender)
    handle = Handle(engine, request=request, checkpoint=checkpoint, on_stop=on_stop)
    enter(handle)
    return handle, engine


def _joined(path: Path, meeting: Meeting, remote: RemoteStore | None, place: Place) -> tuple[RunFolder, int]:
    """The run that another rank makes, and its first step."""
    if remote is not None and not meeting.connected:
        return remote.join(place.rank), 0
    found, first_step = meeting.wait(path)
    if remote is not None:
        remote.rename(found.name)
        return remote.join(place.rank), first_step
    return RunFolder(found), first_step


def _engine(
    folder: RunFolder,
    settings: CaptureConfig,
    place: Place,
    duty: Role,
    *,
    goes_on_at: Mapping[Mode, int] | None,
    **how: Any,
) -> Engine:
    """The engine of a process that writes, or of one that only counts steps to stop with the others."""
    several = place.world_size > 1
    phases = how.pop("phases")
    return Engine(
        folder,
        RankWriter(folder.path, place.rank, goes_on_at=goes_on_at) if duty.writes else SilentWriter(),
        settings if duty.writes else settings.model_copy(update={"collections": ()}),
        phases=phases and duty.writes,
        chief=duty.chief,
        control=SharedControlWatch(folder.path, chief=duty.chief, kinds=REQUESTS)
        if several
        else ControlWatch(folder.path, kinds=REQUESTS),
        **how,
    )


def accompany(
    engine: Engine, rules: Any, *, profiler: bool, actions: Any = (), place: Place | None = None
) -> None:
    """Start what runs beside training; compile what the first saved step needs.

    Actions without a word on rules are for the findings of the default ones.
    """
    if not engine.open:
        return
    from tdbg_lab.stats import cpu

    place = default_place() if place is None else place
    start_thread(cpu.warm_up, "tdbg-lab warm-up")
    _warm_up_gpu()
    path = engine.folder.path
    if profiler and engine.plan.config.profiler and not isinstance(engine.writer, SilentWriter):
        engine.guard.run("sampler", _start_sampler, path, place.rank, engine.plan.config.sample_interval_s)
    if rules is None and actions:
        rules = "default"
    if engine.chief and rules is not None and rules != "none":
        engine.guard.run("rules", companions.start_rules, path, rules, actions)


def _warm_up_gpu() -> None:
    """Begin to compile the kernels for a GPU, where the program uses one already."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        from tdbg_lab.stats.triton_kernels import triton_kernels

        triton_kernels().warm_up()


def _requested(store: str | Path | None) -> tuple[str, Path]:
    """What identifies the request, and the directory."""
    if store is None:
        stamp = datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S")
        return "", Path("runs") / stamp
    if is_url(store):
        return str(parse_url(store)), spool_path(parse_url(store))
    path = Path(store).expanduser()
    return os.path.realpath(path), path  # raises nothing over links that go round in circles


def _end_earlier(request: str, *, same_run: bool) -> None:
    """Detach the handle of the same request: the cell was run again.

    Not that of another thread, which trains beside, into a run of its own.
    """
    here = threading.current_thread()
    for handle in open_handles():
        beside = not same_run and handle.thread is not here and handle.thread.is_alive()
        if request and handle.request == request and not beside:
            handle.detach()
            _log.warning(
                "tdbg-lab: the capture into %s was still attached; it is detached now.", handle.run_path
            )


def _new_folder(
    path: Path, settings: CaptureConfig, facts: RunFacts, place: Place, if_exists: IfExists
) -> RunFolder:
    return create_run(
        path,
        name=facts.name,
        hyperparameters=facts.hyperparameters,
        tags=facts.tags,
        notes=facts.notes,
        if_exists=if_exists,
        capture={**settings.dump(), **(facts.capture or {})},
        framework=facts.framework,
        framework_version=facts.framework_version,
        world_size=place.world_size,
    )


def _first_step(path: Path) -> int:
    """The step to go on with in a run that is resumed.

    An evaluation stands at the step that comes next, also the one after the last step.
    """
    from tdbg_lab.run import open_run

    return int(open_run(path).steps(mode=Mode.TRAIN).max(initial=-1)) + 1


def _start_sampler(path: Path, rank: int, interval_s: float) -> None:
    companions.start_sampler(path, rank=rank, interval_s=interval_s)
