"""The hook: collects what is to be saved of each step. What every framework shares."""

from __future__ import annotations

import os
import sys
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import finalize, ref

from tdbg_lab.capture.ending import Circumstances, outcome
from tdbg_lab.capture.guard import Guard
from tdbg_lab.capture.switch import is_off
from tdbg_lab.records import Kind, Mode, TensorKey
from tdbg_lab.smdebug.core.collection import Collection, CollectionKeys
from tdbg_lab.smdebug.core.collection_manager import CollectionManager
from tdbg_lab.smdebug.core.config_constants import DEFAULT_SAVED_COLLECTIONS
from tdbg_lab.smdebug.core.custom import Custom
from tdbg_lab.smdebug.core.hook_utils import get_tensorboard_dir, verify_and_get_out_dir
from tdbg_lab.smdebug.core.logger import get_logger
from tdbg_lab.smdebug.core.modes import ALLOWED_MODE_NAMES, ModeKeys
from tdbg_lab.smdebug.core.recording import Recording, rank, world_size
from tdbg_lab.smdebug.core.reduction_config import ReductionConfig
from tdbg_lab.smdebug.core.save_config import SaveConfig, SaveConfigMode
from tdbg_lab.smdebug.core.saving import Decision, SavePlan
from tdbg_lab.smdebug.core.singleton_utils import set_hook
from tdbg_lab.smdebug.core.state_store import StateStore
from tdbg_lab.smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from tdbg_lab.stats import summarize
from tdbg_lab.stats.block import scalar_block

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from tdbg_lab.records import RunStatus

__all__ = ["BaseHook"]

_WORKERS = ("one", "all")


class BaseHook:
    """Saves tensors while a model trains.

    Parameters
    ----------
    out_dir
        Run directory; it must hold no earlier run.
    export_tensorboard, tensorboard_dir
        Write TensorBoard event files as well, when the hook is closed: into this directory, by default
        ``<out_dir>/tensorboard``.
    dry_run
        Look at everything, save nothing.
    reduction_config
        What is saved of a tensor when its collection does not say: values, unless this says otherwise.
    save_config
        When, where a collection does not say: every 500 steps.
    include_regex
        Patterns of further tensors, saved in collection ``default``.
    include_collections
        Collections to save beside those that always are.
    save_all
        Save every tensor.
    include_workers
        ``one`` worker writes, or ``all`` of them do.

    Raises
    ------
    SMDebugRuntimeError
        If `out_dir` is missing or holds an earlier run.
    SMDebugTypeError, SMDebugValueError
        If a configuration is wrong.
    """

    framework: ClassVar[str] = ""
    ddof: ClassVar[int] = 0
    """Taken off in saved ``std`` and ``variance``, as the framework's own functions do."""
    default_collections: ClassVar[Mapping[str, Sequence[str]]] = {"all": [".*"], "default": []}
    """Collections that exist from the start, with their patterns."""
    always_saved: ClassVar[Sequence[str]] = DEFAULT_SAVED_COLLECTIONS
    collection_class: ClassVar[type[Collection]] = Collection
    default_interval: ClassVar[int] = 500

    def __init__(
        self,
        out_dir: str | Path | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | SaveConfigMode | Mapping[ModeKeys, SaveConfigMode] | None = None,
        include_regex: str | Sequence[str] | None = None,
        include_collections: str | Sequence[str] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
    ) -> None:
        self.logger = get_logger()
        self._state_store = StateStore()
        self.training_run = self._state_store.training_run
        self.out_dir = verify_and_get_out_dir(out_dir, resumed=self.training_run > 0)
        self.tensorboard_dir = get_tensorboard_dir(export_tensorboard, tensorboard_dir, self.out_dir)
        self.dry_run = dry_run
        self.save_all = save_all
        if include_workers not in _WORKERS:
            raise SMDebugValueError(f"include_workers is {include_workers!r}; expected 'one' or 'all'.")
        self.include_workers = include_workers
        if reduction_config is not None and not isinstance(reduction_config, ReductionConfig):
            raise SMDebugTypeError(f"reduction_config is {reduction_config!r}; expected a ReductionConfig.")
        self.reduction_config = reduction_config or ReductionConfig(save_raw_tensor=True)
        default = SaveConfig(save_interval=self.default_interval)
        self.save_config = default if save_config is None else SaveConfig.parse(save_config)
        self.save_config.merge_default_save_config(default)
        self.mode = ModeKeys.GLOBAL
        self.last_saved_step, self.mode_steps = self._state_store.start()
        self.step = self.init_step = self.mode_steps[ModeKeys.GLOBAL]
        self.worker = f"worker_{rank()}"
        self.collection_manager = CollectionManager(
            {name: self.collection_class(name, list(of)) for name, of in self.default_collections.items()},
            self.collection_class,
        )
        self._choose(include_regex, include_collections)
        self._plan: SavePlan | None = None
        self._recording: Recording | None = None
        self._guard = Guard()
        self._due: tuple[str, ...] = ()
        self._members: dict[str, tuple[str, ...]] = {}
        self._keys: dict[tuple[str, Kind, str, tuple[int, ...]], TensorKey] = {}
        self._at = Mode.TRAIN
        self._place = ModeKeys.GLOBAL, -1
        self._custom = Custom()
        self._hung: list[Any] = []
        self._closed = False
        self._finalizer = finalize(self, _left_behind, ref(self), Circumstances.now())
        set_hook(self)

    def _choose(
        self, include_regex: str | Sequence[str] | None, include_collections: str | Sequence[str] | None
    ) -> None:
        given = [include_collections] if isinstance(include_collections, str) else include_collections
        self.include_collections = list(dict.fromkeys((*self.always_saved, *(given or ()))))
        if include_regex:
            patterns = [include_regex] if isinstance(include_regex, str) else list(include_regex)
            self.get_collection(CollectionKeys.DEFAULT).include(patterns)
            self.include_collections.append(CollectionKeys.DEFAULT)
        if self.save_all:
            self.get_collection(CollectionKeys.ALL).include(".*")
            self.include_collections.append(CollectionKeys.ALL)

    @classmethod
    def create_from_json_file(cls, json_file_path: str | None = None) -> Self:
        """The hook that a JSON file describes: this one, or that of ``SMDEBUG_CONFIG_FILE_PATH``."""
        from tdbg_lab.smdebug.core.json_config import create_hook_from_json_config

        return create_hook_from_json_config(cls, json_file_path)

    def __repr__(self) -> str:
        saved = ", ".join(self.include_collections)
        return (
            f"<{type(self).__name__} into {self.out_dir}: step {self.step}, "
            f"mode {self.mode.name}, saves {saved}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {}  # a model that is pickled or copied takes no hook along

    # -- collections and modes ---------------------------------------------------------------------

    def get_collection(self, name: str, create: bool = True) -> Collection:
        """The collection called `name`, made when it is missing.

        Raises
        ------
        SMDebugError
            If it is missing and `create` is False.
        """
        return self.collection_manager.get(name, create)

    def get_collections(self) -> dict[str, Collection]:
        """All collections by name."""
        return self.collection_manager.get_collections()

    def add_collection(self, collection: Collection) -> None:
        """Add a collection of one's own; name it in `include_collections` to have it saved.

        Raises
        ------
        SMDebugTypeError
            If it is none.
        """
        if not isinstance(collection, Collection):
            raise SMDebugTypeError(f"add_collection takes a Collection, not {collection!r}.")
        self.collection_manager.add(collection)

    def set_mode(self, mode: ModeKeys) -> None:
        """Say what the following steps are.

        Raises
        ------
        SMDebugValueError
            If it is no mode.
        """
        if not isinstance(mode, ModeKeys):
            raise SMDebugValueError(f"Invalid mode {mode!r}; expected modes.{', '.join(ALLOWED_MODE_NAMES)}.")
        self.mode = mode
        self.mode_steps.setdefault(mode, -1)

    def has_default_hook_configuration(
        self, default_saved_collections: Sequence[str] = tuple(DEFAULT_SAVED_COLLECTIONS)
    ) -> bool:
        """Whether only what is always saved is saved."""
        return not self.save_all and set(self.include_collections) <= set(default_saved_collections)

    def has_default_configuration(self) -> bool:
        """As `has_default_hook_configuration`."""
        return self.has_default_hook_configuration()

    def should_save_tensor_or_collection(self, tensor_name: str, collection_name: str) -> bool:
        """Whether the current step saves a collection, or a tensor by its name."""
        if self._plan is None:
            return False
        return collection_name in self._due or bool(self._decision(tensor_name))

    def export_collections(self) -> None:
        """Nothing is left to do: ``run.json`` has had the collections since the first saved step."""

    def log_outstanding_timeline_metrics(self) -> None:
        """Nothing is outstanding: spans are written as they end."""

    def record_trace_events(
        self,
        timestamp: float,
        training_phase: str = "",
        op_name: str = "",
        phase: str = "X",
        duration: float = 1,
        **_kwargs: Any,
    ) -> None:
        """Put an interval on the timeline of the run.

        Parameters
        ----------
        timestamp
            When it began, s since the epoch.
        duration
            How long it took, s.
        """
        if self._recording is not None and phase == "X" and isfinite(timestamp) and isfinite(duration):
            span = (op_name or training_phase, training_phase, int(timestamp * 1e9), int(duration * 1e9))
            self._guard.run("spans", self._recording.add_span, span, self.step)

    # -- what the user hands over ------------------------------------------------------------------

    def save_scalar(
        self, name: str, value: Any, sm_metric: bool = False, timestamp: float | None = None
    ) -> None:
        """Save a number as ``scalar/<name>``, with the next step that is saved.

        Raises
        ------
        SMDebugTypeError
            If it is not one number.
        """
        del sm_metric, timestamp  # the metrics service of the predecessor's host is not ours
        self._custom.add_scalar(name, value)

    def save_tensor(
        self,
        tensor_name: str,
        tensor_value: Any,
        collections_to_write: str | Sequence[str] = CollectionKeys.DEFAULT,
    ) -> None:
        """Save a tensor of one's own, with the step that is current or else the next that is saved.

        What is no numbers is passed over with a warning.
        """
        names = (collections_to_write,) if isinstance(collections_to_write, str) else collections_to_write
        if self._custom.add_tensor(tensor_name, tensor_value, tuple(names)):
            for name in names:
                self.get_collection(name).add_tensor_name(tensor_name)

    # -- steps -------------------------------------------------------------------------------------

    def _begin_step(self, at: Mode = Mode.TRAIN) -> None:
        """A step begins.

        Parameters
        ----------
        at
            Where it goes in the run when nobody has set a mode.

        Raises
        ------
        InvalidCollectionConfiguration
            At the first step, if a collection chooses nothing.
        """
        self._due = ()
        if self._plan is None:
            self._plan = self._prepare()
        self._guard.run("steps", self._enter_step, self._plan, at)

    def _enter_step(self, plan: SavePlan, at: Mode) -> None:
        if self._state_store.watching and not (self.dry_run or is_off() or rank()):
            self._guard.run(
                "checkpoints", self._state_store.note, self.step, self.last_saved_step, self.mode_steps
            )
        self.step += 1
        self.mode_steps[self.mode] += 1
        self.mode_steps[ModeKeys.GLOBAL] = self.step
        self._at = at
        self._place = self.mode, self.mode_steps[self.mode]
        due = plan.due(*self._place)
        if due and self._recording is None:
            self._guard.run("store.open", self._open)
        self._due = due if self._recording is not None and self._recording.mine else ()

    def _prepare(self) -> SavePlan:
        self._name_collections()
        plan = SavePlan.prepare(
            {
                name: self.get_collection(name)
                for name in (*self.get_collections(), *self.include_collections)
            },
            self.include_collections,
            self.save_config,
            self.reduction_config,
            self.default_collections,
        )
        self.collection_manager.set_num_workers(self._num_workers())
        return plan

    def _name_collections(self) -> None:
        """For frameworks: turn what collections were given into patterns."""

    def _num_workers(self) -> int:
        return world_size() if self.include_workers == "all" else 1

    def _open(self) -> None:
        if self.dry_run or self._closed or is_off() or (self.include_workers == "one" and rank()):
            return
        described = {} if self._plan is None else self._plan.to_json_dict()
        self._recording = Recording(
            Path(self.out_dir),
            described,
            self._guard,
            framework=self.framework,
            ddof=self.ddof,
            num_workers=self._num_workers(),
            goes_on_at=self.init_step + 1,
        )

    def _end_step(self) -> None:
        """The step is over: what was kept of it is written."""
        recording = self._recording
        if recording is None or self.step == self.init_step or not self._due:
            return
        self._guard.run("custom", self._hold_custom, recording)
        recording.end_step(self.step, *self._place, at=self._at)
        self.last_saved_step = self.step
        self._due = ()

    def _hold_custom(self, recording: Recording) -> None:
        scalars, tensors = self._custom.take()
        for name, value in scalars.items():
            key = self._key(name, Kind.SCALAR, str(value.dtype), value.shape)
            recording.hold(key, scalar_block([float(value.item())]), 0, value, _RAW)
        for name, (values, names) in tensors.items():
            if values.size:
                decision = _RAW if self._plan is None else self._plan.decide_custom(names)
                key = TensorKey(name, Kind.CUSTOM, "", str(values.dtype), values.shape, names)
                recording.hold(key, summarize([values]), 0, values, decision)

    # -- tensors -----------------------------------------------------------------------------------

    def _decision(self, name: str) -> Decision:
        """What the current step saves of a tensor."""
        if self._plan is None or not self._due:
            return _NOTHING
        return self._plan.decide(self._members_of(name), self._due)

    def _members_of(self, name: str) -> tuple[str, ...]:
        members = self._members.get(name)
        if members is None:
            members = self._members[name] = () if self._plan is None else self._plan.members(name)
            for one in members:
                self.get_collection(one).add_tensor_name(name)
        return members

    def _key(self, name: str, kind: Kind, dtype: str, shape: tuple[int, ...], module: str = "") -> TensorKey:
        """The key of a tensor: the same object for the same tensor."""
        identity = (name, kind, dtype, shape)
        found = self._keys.get(identity)
        if found is None:
            found = TensorKey(name, kind, module, dtype, shape, self._members_of(name))
            if len(self._keys) < _MAX_KEYS:
                self._keys[identity] = found
        return found

    # -- the end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Write what is left, take the hook off and end the run. Idempotent."""
        self._finish(*outcome(None))

    def _finish(self, status: RunStatus, error: str | None = None) -> None:
        if self._closed:
            return
        if self._custom.scalars and not self._due and self._recording is not None and self._recording.mine:
            self._due = ("scalars",)  # numbers are saved beside the schedule, tensors are not
            self._custom.tensors = {}
        self._end_step()
        if self._recording is None and self.step > self.init_step:
            self._guard.run("store.open", self._open)
        self._closed = True
        self._due = ()
        while self._hung:
            self._guard.run("detach", self._hung.pop().remove)
        if self._recording is not None:
            self._recording.finish(status, error, last_step=self.step)
            if self.tensorboard_dir and self._recording.chief:
                self._guard.run("tensorboard", _export, self.out_dir, self.tensorboard_dir)
        self._finalizer.detach()

    _cleanup = close


_MAX_KEYS = 20_000
_RAW = Decision(raw=True)
_NOTHING = Decision()


def _left_behind(hook: ref[BaseHook], circumstances: Circumstances) -> None:
    """The process ends and nobody has closed the hook."""
    found = hook()
    if found is not None and os.getpid() == circumstances.pid:
        error = None if circumstances.interactive else getattr(sys, "last_value", None)
        found._finish(*outcome(error))  # noqa: SLF001


def _export(out_dir: str, tensorboard_dir: str) -> None:
    """Write what was recorded as event files of TensorBoard."""
    from tdbg_lab.exchange import export

    export(out_dir, to="tensorboard", path=tensorboard_dir, force=True)
