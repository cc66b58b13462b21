"""A run that goes to an object store: its place there, its folder here, and its sender.

Asking the object store happens once, before training begins, and takes seconds at most. From then on
this process only writes files; a process of its own sends them. An object store that does not answer, or
gives no rights, keeps no training from its run: that is written here, and sent when it can be.
"""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tdbg_lab.capture.companions import environment
from tdbg_lab.capture.keeping import keep
from tdbg_lab.errors import ConflictError, NotFoundError, StoreError
from tdbg_lab.store import RunFolder
from tdbg_lab.store.info import RUN_FILE, read_info
from tdbg_lab.store.layout import read_bytes, write_json
from tdbg_lab.store.limits import MAX_JSON_BYTES
from tdbg_lab.store.remote import StoreUrl, parse_url
from tdbg_lab.store.remote.claim import claim, sibling
from tdbg_lab.store.remote.failures import RemoteError
from tdbg_lab.store.remote.objects import QUICK, Objects
from tdbg_lab.store.remote.options import storage_options
from tdbg_lab.store.remote.own_folders import make_folder
from tdbg_lab.store.remote.spool import SPOOL_VARIABLE, Spooled, spool_path, spool_root

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["RemoteStore"]

_log = logging.getLogger("tdbg_lab")

FLUSH: Final = "flush_s"
"""Our own storage option: seconds between two sendings."""
JOIN_S: Final = 60.0
JOIN_POLL_S: Final = 0.2
WATCH_S: Final = 2.0
MOST_NAMES: Final = 1000


@dataclass(slots=True)
class RemoteStore:
    """Where a run goes, and where it is written until then."""

    url: StoreUrl
    path: Path
    options: dict[str, Any] = field(repr=False)
    reached: bool = True
    """Whether the object store answered, and let us in."""
    told: str | None = None
    """What was said of it."""

    @classmethod
    def prepare(
        cls, store: str | Path, options: Mapping[str, Any] | None, *, chief: bool, if_exists: str
    ) -> RemoteStore:
        """Choose place and folder for a run; nothing is made yet.

        Raises
        ------
        ConfigError, MissingDependencyError
            If the address or an option is wrong, or obstore is not installed.
        ConflictError
            If there is a run and `if_exists` is ``error``.
        StoreError
            If nothing can be written in the spool.
        RemoteError
            If there is no such place. Where the object store does not answer, or gives no rights, that is
            logged.
        """
        make_folder(spool_root(), SPOOL_VARIABLE)
        url = parse_url(store)
        found = cls(url, spool_path(url), dict(options or {}))
        found._connect(url)
        if chief:
            found._choose(if_exists)
        return found

    def rename(self, name: str) -> None:
        """Go where the chief rank went: the name that was asked for may have been taken."""
        self.url = self.url.parent.child(name)
        self.path = spool_path(self.url)

    def join(self, rank: int) -> RunFolder:
        """The run the chief rank makes, on this machine or on another one.

        Raises
        ------
        NotFoundError
            If it does not appear in time.
        RemoteError
            If there is no such place.
        """
        deadline = time.monotonic() + JOIN_S
        while time.monotonic() < deadline:
            if self._is_made_here() or self._is_made_elsewhere():
                return RunFolder(self.path)
            time.sleep(JOIN_POLL_S)
        raise NotFoundError(f"Rank {rank} found no run at {self.url} within {JOIN_S:g} s.")

    def _is_made_here(self) -> bool:
        try:
            return Spooled(self.path).place()[1] and read_info(self.path).ended_ns is None
        except (OSError, ValueError):
            return False

    def _is_made_elsewhere(self) -> bool:
        """Whether the run is on the object store and going on; its description is copied here then."""
        try:
            data = self._connect(self.url).get(RUN_FILE, MAX_JSON_BYTES)
        except RemoteError as error:
            if not error.may_pass:
                raise
            return False
        try:
            value = json.loads(data or b"null")
        except ValueError:
            value = None
        if not isinstance(value, dict) or value.get("ended_ns") is not None:
            return False
        if not self.path.exists():  # else the chief is at it
            self.path.mkdir(parents=True)
            Spooled(self.path).set_place(self.url, chief=False)
        if not Spooled(self.path).is_guest():
            return False
        write_json(self.path / RUN_FILE, value)
        return True

    def enter(self, folder: RunFolder, rank: int, *, chief: bool) -> None:
        """Take the place for the run that was made, and say in the spool where it goes.

        Raises
        ------
        RemoteError
            If there is no such place; the folder is removed, nothing is in it yet.
        """
        spooled = Spooled(folder.path)
        if chief:
            try:
                if self.reached:
                    data = read_bytes(folder.path / RUN_FILE, MAX_JSON_BYTES)
                    self.url = claim(self.url, data, self._connect)[1]
            except RemoteError as error:
                if not error.may_pass:
                    shutil.rmtree(folder.path, ignore_errors=True)
                    raise
                self._say_unreached(error)
            spooled.set_place(self.url, chief=True)
        spooled.add_writer(rank)

    def start_sender(self) -> None:
        """Start the process that sends the run; it ends by itself, and one that is killed is started anew."""
        spooled = Spooled(self.path)
        keep(
            self._sender,
            "process that sends the run",
            goes_on=spooled.is_running,
            wait=_Listener(spooled, self.told).wait,
            otherwise=_kept(self.path),
        )

    def _sender(self) -> subprocess.Popen[bytes]:
        flush = ["--flush", str(float(self.options[FLUSH]))] if FLUSH in self.options else []
        process = subprocess.Popen(
            [sys.executable, "-m", "tdbg_lab.store.remote", str(self.path), *flush],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=environment(),
        )
        if process.stdin is not None:
            with process.stdin as pipe:
                pipe.write(json.dumps(self._given(), default=str).encode())
        return process

    def _given(self) -> dict[str, Any]:
        """The options that are the object store's."""
        return {key: value for key, value in self.options.items() if key != FLUSH}

    def _connect(self, url: StoreUrl) -> Objects:
        return Objects(url, storage_options(url, self._given()), QUICK)

    def _choose(self, if_exists: str) -> None:
        """Take the first name that is free here and there, or the run to go on with."""
        asked = self.url
        for number in range(1, MOST_NAMES):
            self.url = sibling(asked, number)
            self.path = spool_path(self.url)
            here, there = _is_run(self.path), self._is_there()
            if if_exists == "resume":
                if there and not here:
                    self._fetch()
                return
            if not here and not there:
                return
            if if_exists == "error":
                raise ConflictError(f"Run {self.url} exists. Choose another path or if_exists.")
        raise ConflictError(f"{asked} and its {MOST_NAMES} next names are taken; choose another.")

    def _is_there(self) -> bool:
        if not self.reached:
            return False
        try:
            return self._connect(self.url).get(RUN_FILE, MAX_JSON_BYTES) is not None
        except RemoteError as error:
            if not error.may_pass:
                raise
            self._say_unreached(error)
            return False

    def _fetch(self) -> None:
        """Bring a run here that was made elsewhere, to go on with it."""
        from tdbg_lab.store.remote.mirror import Mirror

        Mirror(self.url, path=self.path, objects=self._connect(self.url)).pull(force=True)

    def _say_unreached(self, error: StoreError) -> None:
        self.reached, self.told = False, str(error)
        _say_kept(error, self.path)


def _is_run(path: Path) -> bool:
    try:
        read_info(path)
    except (OSError, ValueError):
        return False
    return True


def _say_kept(problem: object, path: Path) -> None:
    _log.warning("tdbg-lab: %s%s", problem, _kept(path))


def _kept(path: Path) -> str:
    return f" The run is kept in {path} and sent later."


class _Listener:
    """Tells once what keeps a run from being sent, and once that it goes on.

    `told` is what was said of it already.
    """

    def __init__(self, spooled: Spooled, told: str | None) -> None:
        self._spooled = spooled
        self._told = told

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the end of a sender, and listen to it meanwhile."""
        began_ns = time.time_ns()
        ended = False
        while not ended:
            try:
                process.wait(WATCH_S)
                ended = True
            except subprocess.TimeoutExpired:
                pass
            state = self._spooled.state()
            if state.time_ns >= began_ns:  # else it has said nothing so far
                self._hear(state.problem)

    def _hear(self, problem: str | None) -> None:
        if problem is not None and self._told is None:
            _say_kept(problem, self._spooled.path)
        elif problem is None and self._told is not None:
            _log.warning("tdbg-lab: the run is being sent again.")
        self._told = problem
