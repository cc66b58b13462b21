"""Watches a program from its start to its end, and attaches to what it trains."""

from __future__ import annotations

import logging
import os
import time
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from itertools import count
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Protocol, Self
from weakref import ref

from tdbg_lab.capture.adapters.settings import checked_settings
from tdbg_lab.capture.auto.imports import ImportWatch
from tdbg_lab.capture.registry import latest_ns, open_handles
from tdbg_lab.config import CaptureConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType, TracebackType

    from tdbg_lab.capture.handle import Handle

__all__ = ["FINDERS", "AutoWatch", "Finder"]

_log = logging.getLogger("tdbg_lab")

FINDERS: Mapping[str, Sequence[str]] = {
    "torch": ["pytorch:TorchFinder"],
    "torch.multiprocessing.spawn": ["processes:SpawnFinder"],
    "multiprocessing.process": ["processes:ProcessFinder"],
    "keras": ["fitting:KerasFinder", "keras_loops:KerasLoopFinder"],
    "tf_keras": ["old_keras:OldKerasFinder"],
    "xgboost": ["fitting:BoostingFinder", "boosting_loops:BoostingLoopFinder"],
    "lightgbm": ["fitting:BoostingFinder", "boosting_loops:BoostingLoopFinder"],
    "transformers.trainer": ["trainers:TransformersFinder"],
    "lightning.pytorch.trainer.trainer": ["trainers:LightningFinder"],
    "pytorch_lightning.trainer.trainer": ["trainers:LightningFinder"],
    "lightning.fabric.strategies.launchers.subprocess_script": ["scripts:ScriptFinder"],
    "lightning.pytorch.strategies.launchers.subprocess_script": ["scripts:ScriptFinder"],
    "lightning_fabric.strategies.launchers.subprocess_script": ["scripts:ScriptFinder"],
    "pytorch_lightning.strategies.launchers.subprocess_script": ["scripts:ScriptFinder"],
    "optuna.study.study": ["studies:StudyFinder"],
    "keras_tuner.src.engine.base_tuner": ["studies:TunerFinder"],
}
"""What finds trainings, in modules of this package, by the module whose import calls for it."""

_TRAIN_NOTHING = frozenset({"multiprocessing", "optuna", "keras_tuner"})
"""What is listened to for the sake of others."""

MAX_TRAININGS = 20


class Finder(Protocol):
    """Finds what one framework trains."""

    def start(self) -> None:
        """Look from now on."""

    def stop(self) -> None:
        """Look no longer; leave the framework as it was. Idempotent."""


class AutoWatch:
    """Attaches to each training of a program, from `start` to `stop`.

    What goes wrong in here is logged once and ends that finder; the program goes on.

    Parameters
    ----------
    settings
        Those of `tdbg_lab.attach`, but model, optimizer and loss. The first training goes to `store`,
        a second one to ``<store>-2``. A relative one is below the directory that is current now,
        wherever the program goes.
    most
        Trainings to attach to; later ones are only counted. A search over hyper-parameters would
        start a process of rules for each of its hundreds.

    Raises
    ------
    ConfigError
        A setting is wrong.
    """

    def __init__(
        self, settings: Mapping[str, Any], *, owner: str = "tdbg run", most: int = MAX_TRAININGS
    ) -> None:
        self._settings = checked_settings(owner, settings)
        configured = CaptureConfig.build(self._settings.get("config")).store
        self._store = _placed(self._settings.pop("store", None) or configured or _default_store())
        self._most = most
        self.left_alone = False
        """A training has begun beyond the most that are captured: no other is looked for."""
        self.has_processes = False
        """Processes of the program are watched by themselves: `stop` looks for their runs."""
        self._failed = False
        self._imports = ImportWatch(dict.fromkeys(FINDERS, self._framework_imported))
        self._finders: list[Finder] = []
        self._handles: list[ref[Handle]] = []
        self._threads: dict[Path, int] = {}
        """The thread that has begun a training, by the directory of its run."""
        self._choosing = Lock()
        self._begun: dict[int, Path] = {}
        """Directories of the trainings that were attached to, by their numbers from 1 on."""
        self._expected: dict[int, int] = {}
        """The number of the training that a thread is about to begin, by the thread."""
        self._searched: dict[int, Callable[[], Mapping[str, Any]]] = {}
        """Gives the hyper-parameters of the trial that a search makes in a thread, by the thread."""
        self._pid = os.getpid()
        self._began_ns = 0
        self._steps_before: dict[Path, int] = {}
        """Steps of what was captured already when the watch began."""
        self.run_paths: list[Path] = []
        """Run directories, in the order of their trainings."""
        self.seen: list[str] = []
        """Frameworks that the program has imported."""
        self.missed = ""
        """What was trained and could not be attached to, and what to do instead."""

    def start(self) -> None:
        """Watch from now on."""
        self._began_ns = time.time_ns()
        self._steps_before = {one.run_path: one.step for one in open_handles()}
        self._imports.start()

    def stop(self, error: BaseException | None = None) -> None:
        """Detach from everything; `error` is what ended the program. Idempotent."""
        self._imports.stop()
        finders, self._finders = self._finders, []  # which may keep a training alive until it is told the end
        for finder in reversed(finders):
            self.guarded(finder.stop)
        handles, self._handles = self._handles, []
        for known in handles:
            handle = known()
            if handle is not None:
                handle.__exit__(type(error) if error is not None else None, error, None)
        if self.has_processes and "://" not in self._store:
            from tdbg_lab.capture.ranks import made_since  # loads the store, which a program may not need

            made = made_since(Path(self._store), self._began_ns)
            self.run_paths += [one for one in made if one not in self.run_paths]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.stop(error)

    @property
    def active(self) -> bool:
        """Whether this is the process that was to be watched: not a forked child of it."""
        return os.getpid() == self._pid

    def summary(self) -> str:
        """One sentence on what was captured; call it after `stop`."""
        if self.run_paths:
            return self._captured()
        if self._failed:
            return "nothing was captured, for the reason above."
        if not self.seen:
            return (
                "nothing to attach to: the program imported no framework that tdbg-lab knows. "
                "Of a loop of its own, tdbg_lab.attach() records what it is told."
            )
        if latest_ns() > self._began_ns:
            return "left to the program, which attaches by itself."
        if self.missed:
            return f"nothing to attach to: {self.missed}."
        for one in open_handles():
            if one.step > self._steps_before.get(one.run_path, one.step):
                return f"what trained here is captured already, in {one.run_path}."
        names = " and ".join(dict.fromkeys(self.seen))
        where = "this process, nor in those that it started" if self.has_processes else "this process"
        return f"nothing to attach to: the program imported {names}, but no training was seen in {where}."

    def _captured(self) -> str:
        first, *more = map(str, self.run_paths)
        if len(more) > 1:
            first = f"{len(self.run_paths)} trainings: {first} to {more[-1]}"
        elif more:
            first = f"{first} and {more[0]}"
        if self.left_alone:
            return f"captured {first}; that is the most to capture, later trainings were left alone."
        return f"captured {first}."

    # -- for the finders --------------------------------------------------------------------------

    def takes_another(self) -> bool:
        """Whether the training that begins now is to be captured; `summary` tells when one is not."""
        self.left_alone = self.left_alone or len(self._taken()) >= self._most
        return not self.left_alone

    def next_settings(self) -> dict[str, Any]:
        """Settings of the training that this thread begins now; it gets a directory of its own."""
        with self._choosing:
            taken = self._taken()
            number = next(one for one in count(1) if one not in taken)
            self._expected[get_ident()] = number
        settings = {**self._settings, "store": self._store if number == 1 else f"{self._store}-{number}"}
        searched = self._searched.get(get_ident())
        if searched is not None:
            settings["hyperparameters"] = {**searched(), **(settings.get("hyperparameters") or {})}
        return settings

    @contextmanager
    def trial(self, parameters: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
        """Trainings that this thread begins within have these hyper-parameters, as far as chosen by then."""
        here = get_ident()
        around = self._searched.get(here)  # the trial of another study
        self._searched[here] = parameters
        try:
            yield
        finally:
            if around is None:
                del self._searched[here]
            else:
                self._searched[here] = around

    def _taken(self) -> set[int]:
        """Numbers of trainings that have begun, or that other threads are about to begin."""
        here = get_ident()
        return {*self._begun, *(number for thread, number in list(self._expected.items()) if thread != here)}

    def settings_of_processes(self) -> tuple[dict[str, Any], int]:
        """Settings of a watch in a process that the program starts, and the trainings to attach to there."""
        return {**self._settings, "store": self._store}, self._most

    def begun(self, handle: Handle) -> None:
        """A training is captured by `handle` from now on."""
        if all(known() is not handle for known in self._handles):
            self._handles.append(ref(handle))
            self._threads[handle.run_path] = get_ident()
            with self._choosing:
                number = self._expected.pop(get_ident(), 0) or max(self._taken(), default=0) + 1
                self._begun[number] = handle.run_path
                self.run_paths = [path for _, path in sorted(self._begun.items())]
            _log.info("tdbg-lab: capturing into %s.", handle.run_path)

    def handles(self, *, of_this_thread: bool = False) -> list[Handle]:
        """Handles of trainings that may go on, the newest last; all, or those that this thread has begun."""
        found = [handle for known in self._handles if (handle := known()) is not None and handle.attached]
        return [one for one in found if not of_this_thread or self._threads.get(one.run_path) == get_ident()]

    def guarded(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call `function`; when it fails, say so and look no further."""
        try:
            return function(*args)
        except Exception as error:
            if self._settings.get("strict"):
                raise
            self._failed = True
            _log.warning("tdbg-lab: no further training is looked for; the program goes on. Cause: %s", error)
            _log.debug("tdbg-lab: traceback", exc_info=True)
            self._imports.stop()
            finders, self._finders = self._finders, []
            for finder in finders:
                finder.stop()
            return None

    # -- frameworks -------------------------------------------------------------------------------

    def _framework_imported(self, module: ModuleType) -> None:
        framework = module.__name__.partition(".")[0]
        if framework not in _TRAIN_NOTHING:
            self.seen.append(framework)
        self.guarded(self._add_finder, module.__name__)

    def _add_finder(self, name: str) -> None:
        for known in FINDERS[name]:
            where, _, kind = known.partition(":")
            finder: Finder = getattr(import_module(f"tdbg_lab.capture.auto.{where}"), kind)(self, name)
            self._finders.append(finder)
            finder.start()


def _placed(store: str | Path) -> str:
    """Where the runs go, whatever directory the program changes to."""
    is_address = "://" in str(store)  # the store, which knows better, imports what the program may configure
    return str(store) if is_address else str(Path(store).expanduser().absolute())


def _default_store() -> Path:
    """``runs/<date and time>``: of this process, or of the one that launched all ranks."""
    moment = datetime.now().astimezone()
    if int(os.environ.get("WORLD_SIZE", "1") or 1) > 1:
        import psutil

        moment = datetime.fromtimestamp(psutil.Process(os.getppid()).create_time()).astimezone()
    return Path("runs") / moment.strftime("%Y-%m-%d_%H-%M-%S")
