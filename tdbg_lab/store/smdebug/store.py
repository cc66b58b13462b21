"""A store that smdebug wrote: its tensors, values, reductions and shapes, by global step."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import NotFoundError, StepNotFoundError, StoreError
from tdbg_lab.store.layout import read_bytes
from tdbg_lab.store.limits import MAX_PROBLEMS
from tdbg_lab.store.smdebug.bounds import MAX_ENTRIES, MAX_INDEX_BYTES, MAX_WORKERS
from tdbg_lab.store.smdebug.collection import SmdebugCollection, matches, read_collections
from tdbg_lab.store.smdebug.event_files import EventFiles
from tdbg_lab.store.smdebug.folder import (
    CLAIM,
    END,
    IndexListing,
    ListedFile,
    is_smdebug_store,
    list_collections,
    modified_ns,
)
from tdbg_lab.store.smdebug.index_file import MODES, IndexFile, Layout, Layouts, Reduction
from tdbg_lab.store.smdebug.profile import is_profile_folder
from tdbg_lab.store.smdebug.record import Content, Decoder, wall_time_ns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["SmdebugStore"]

GLOBAL = "GLOBAL"
_HEAD_BYTES = 8192
"""Enough of a record for its type and shape, mostly."""


class SmdebugStore:
    """What smdebug 1.0 wrote into a folder, also while it writes. Thread-safe.

    A *step* is a global step everywhere: it counts the steps of all modes, and files are named by
    it. `mode_step` and `global_step` translate. Nothing here waits: `refresh` reads what is new.

    Parameters
    ----------
    path
        The folder that was smdebug's ``out_dir``.

    Raises
    ------
    NotFoundError
        If no store is there.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser().absolute()
        if not is_smdebug_store(self.path) and not is_profile_folder(self.path):
            raise NotFoundError(
                f"There is no store of SageMaker Debugger in {self.path.name!r}: expected the folders "
                "collections, index and events; give the folder that was out_dir."
            )
        self.version = 0
        """Grows with each change."""
        self.lock = threading.RLock()
        self._decoder = Decoder()
        self._forget()
        self.refresh()

    def __repr__(self) -> str:
        return f"<SmdebugStore {self.path.name}: {len(self._layouts_of)} tensors, {len(self._by_step)} steps>"

    def _forget(self) -> None:
        self.files: list[IndexFile] = []
        """Index files in the order they were met; a list that is replaced when the store is."""
        self.times_ns: list[int] = []
        """When each was written."""
        self.ended = False
        """Whether smdebug said that the job has ended."""
        self.claimed = False
        """Whether a process says it is writing."""
        self.collections: dict[str, SmdebugCollection] = {}
        self.num_workers = 0
        """As the collections tell; 0 while there are none."""
        self.collection_workers: list[str] = []
        """Workers that wrote their collections, by name."""
        self.last_complete_step = -1
        """Last step that all workers wrote; when the job has ended, the last one."""
        self._listing = IndexListing(self.path)
        self._layouts = Layouts()
        self._events = EventFiles(self.path)
        self._by_step: dict[int, dict[str, IndexFile]] = {}
        self._by_layout: dict[int, tuple[Layout, list[IndexFile]]] = {}
        self._layouts_of: dict[str, list[Layout]] = {}
        self._mode_steps: dict[str, dict[int, int]] = {}
        self._refused: dict[ListedFile, int] = {}
        self._problems: dict[str, str] = {}
        self._members: dict[str, tuple[str, ...]] | None = None
        self._collections_ns: dict[Path, int] = {}
        self._entries = 0

    @property
    def problems(self) -> list[str]:
        """What could not be read, and why: one sentence each."""
        return list(self._problems.values())

    def refresh(self) -> bool:
        """Read what is new; True when anything changed."""
        with self.lock:
            changed = self._listing.replaced()
            if changed:  # the folder was emptied and written again
                self._forget()
            changed = self._refresh_collections() or changed
            markers = (self.path / END).is_file(), (self.path / CLAIM).is_file()
            listed = self._listing.new()  # after the look at the marker: what came before it is seen
            before = self.last_complete_step
            again = [file for file, stamp in self._refused.items() if modified_ns(file.path) != stamp]
            added = [self._read_index(file) for file in [*again, *listed]]
            changed = any(added) or changed or markers != (self.ended, self.claimed)
            self.ended, self.claimed = markers
            if self.ended:
                self.last_complete_step = max(self._by_step, default=-1)
            changed = changed or before != self.last_complete_step
            self.version += changed
            return changed

    @property
    def workers(self) -> list[str]:
        """Workers that saved something, by name."""
        with self.lock:
            return sorted({worker for files in self._by_step.values() for worker in files})

    def modes(self) -> list[str]:
        """Modes of the steps there are, ``GLOBAL`` left out."""
        with self.lock:
            return [mode for mode in MODES if mode != GLOBAL and mode in self._mode_steps]

    def steps(self, mode: str = GLOBAL) -> list[int]:
        """Steps, ascending, also those that some workers still have to write.

        Parameters
        ----------
        mode
            ``GLOBAL`` gives global steps of all modes; another mode gives its mode steps.
        """
        with self.lock:
            return sorted(self._by_step if mode == GLOBAL else self._mode_steps.get(mode, ()))

    def mode_step(self, step: int) -> tuple[str, int] | None:
        """Mode and mode step of a step; None when nothing was saved at it."""
        with self.lock:
            files = self._by_step.get(step)
            first = None if files is None else next(iter(files.values()))
        return None if first is None else (first.mode, first.mode_step)

    def global_step(self, mode: str, mode_step: int) -> int | None:
        """The step of a mode step; None when nothing was saved at it."""
        if mode == GLOBAL:
            return mode_step
        with self.lock:
            return self._mode_steps.get(mode, {}).get(mode_step)

    def step_workers(self, step: int) -> tuple[str, ...]:
        """Workers that saved something at a step, by name."""
        with self.lock:
            return tuple(sorted(self._by_step.get(step, ())))

    def names(self, mode: str = GLOBAL, step: int | None = None) -> list[str]:
        """Tensors with a value, a reduction or a shape, by name; at one step when it is given."""
        with self.lock:
            if step is not None:
                files: Iterable[IndexFile] = self._by_step.get(step, {}).values()
                layouts = [file.layout for file in files if mode in {GLOBAL, file.mode}]
            elif mode == GLOBAL:
                return sorted(self._layouts_of)
            else:
                groups = self._by_layout.values()
                layouts = [layout for layout, files in groups if any(file.mode == mode for file in files)]
            return sorted({name for layout in layouts for name in layout.tensors})

    def __contains__(self, name: object) -> bool:
        return name in self._layouts_of

    def tensor_steps(self, name: str, mode: str = GLOBAL) -> list[int]:
        """Steps of a tensor, as `steps`.

        Raises
        ------
        NotFoundError
            If there is no such tensor.
        """
        with self.lock:
            files = self.tensor_files(name)
            return sorted(
                {
                    file.step if mode == GLOBAL else file.mode_step
                    for file in files
                    if mode in {GLOBAL, file.mode}
                }
            )

    def tensor_workers(self, name: str, step: int) -> list[str]:
        """Workers that saved something of a tensor at a step, by name; raises as `value`."""
        with self.lock:
            return sorted(file.worker for file in self._at(name, step).values())

    def tensor_files(self, name: str) -> list[IndexFile]:
        """Index files that hold something of a tensor, by step and worker; raises as `tensor_steps`."""
        with self.lock:
            files = [file for layout in self._layouts_named(name) for file in self._by_layout[id(layout)][1]]
        return sorted(files, key=_by_step_and_worker)

    def original_name(self, name: str) -> str | None:
        """What a tensor was called before smdebug named it, where its shape was saved; else None."""
        with self.lock:
            shapes = (file.shapes.get(name) for file in self.tensor_files(name))
            return next((shape[1] for shape in shapes if shape is not None), None)

    def has_value(self, name: str, step: int, worker: str | None = None) -> bool:
        """Whether the value of a tensor was saved at a step; raises as `tensor_steps`."""
        with self.lock:
            self._layouts_named(name)
            files = self._by_step.get(step, {})
            return any(name in file.layout.values and worker in {None, of} for of, file in files.items())

    def value(self, name: str, step: int, worker: str | None = None) -> NDArray[Any]:
        """The value of a tensor at a step, in the type it was saved in; an array of the caller's own.

        Parameters
        ----------
        worker
            Whose; None means the first by name that saved it.

        Raises
        ------
        NotFoundError
            If there is no such tensor, or the worker saved nothing at that step.
        StepNotFoundError
            If the value was not saved there.
        StoreError
            If the event file cannot be read.
        """
        with self.lock:
            for _, file in sorted(self._at(name, step, worker).items()):
                if name in file.layout.values:
                    return self.read(file, file.layout.values[name])
        raise StepNotFoundError(f"The value of {name[:200]} was not saved at step {step}.")

    def values(
        self, name: str, steps: Iterable[int] | None = None, worker: str | None = None
    ) -> dict[int, NDArray[Any]]:
        """Values of a tensor by step, where they were saved; raises as `value`."""
        wanted = None if steps is None else set(steps)
        found: dict[int, NDArray[Any]] = {}
        with self.lock:
            for file in self.tensor_files(name):
                position = file.layout.values.get(name)
                if position is None or file.step in found or worker not in {None, file.worker}:
                    continue
                if wanted is None or file.step in wanted:
                    found[file.step] = self.read(file, position)
        return found

    def reductions(self, name: str, step: int, worker: str | None = None) -> list[Reduction]:
        """Reductions of a tensor saved at a step: name, and whether of the absolute values."""
        with self.lock:
            files = sorted(self._at(name, step, worker).items())
            return next((list(found) for _, f in files if (found := f.layout.reductions.get(name))), [])

    def reduction(
        self,
        name: str,
        step: int,
        reduction: str,
        *,
        abs: bool = False,  # noqa: A002 - smdebug's word
        worker: str | None = None,
    ) -> Any:
        """A saved reduction (``mean``, ``l2``, ...), a numpy scalar; raises as `value`."""
        with self.lock:
            for _, file in sorted(self._at(name, step, worker).items()):
                position = file.layout.reductions.get(name, {}).get((reduction, abs))
                if position is not None:
                    return self.read(file, position)[()]
        what = f"{'absolute ' if abs else ''}{reduction[:40]}"
        raise StepNotFoundError(f"The {what} of {name[:200]} was not saved at step {step}.")

    def shape(self, name: str, step: int, worker: str | None = None) -> tuple[int, ...] | None:
        """Shape at a step, as saved or of the value; None when neither was saved. Raises as `value`."""
        with self.lock:
            for _, file in sorted(self._at(name, step, worker).items()):
                if name in file.shapes:
                    return file.shapes[name][0]
                if name in file.layout.values:
                    return self.content(file, file.layout.values[name]).shape
        return None

    def collections_of(self, name: str) -> tuple[str, ...]:
        """Collections a tensor belongs to: those that list it or have a regular expression found in it."""
        with self.lock:
            if self._members is None:
                self._members = self._find_members()
            return self._members.get(name, ())

    def read(self, file: IndexFile, position: int) -> NDArray[Any]:
        """The value of one record.

        Raises
        ------
        StoreError
            If it cannot be read.
        """
        try:
            with self.lock:
                record = self._events.record(file, position)
                return self._decoder.array(record, file.layout.records[position])
        except (OSError, ValueError) as error:
            raise StoreError(self._said(file, error)) from error

    def peek(self, file: IndexFile, positions: list[int]) -> list[NDArray[Any]]:
        """Values of several records of one file; read-only views where possible. Raises as `read`."""
        try:
            with self.lock:
                records = self._events.records(file, positions)
                names = (file.layout.records[position] for position in positions)
                pairs = zip(records, names, strict=True)
                return [self._decoder.array(record, name, copy=False) for record, name in pairs]
        except (OSError, ValueError) as error:
            raise StoreError(self._said(file, error)) from error

    def content(self, file: IndexFile, position: int) -> Content:
        """Type and shape of one record, mostly without reading its values. Raises as `read`."""
        name, length = file.layout.records[position], int(file.lengths[position])
        try:
            with self.lock:
                try:
                    head = self._events.record(file, position, _HEAD_BYTES)
                    return self._decoder.locate(head, name, length)
                except ValueError:  # long names take more
                    return self._decoder.locate(self._events.record(file, position), name)
        except (OSError, ValueError) as error:
            raise StoreError(self._said(file, error)) from error

    def note(self, place: str, text: str) -> None:
        """Keep a problem; one for each place."""
        if len(self._problems) < MAX_PROBLEMS:
            self._problems[place] = text

    def _layouts_named(self, name: str) -> list[Layout]:
        found = self._layouts_of.get(name)
        if found is None:
            raise NotFoundError(f"There is no tensor {name[:200]!r} in this store.")
        return found

    def _at(self, name: str, step: int, worker: str | None = None) -> dict[str, IndexFile]:
        """Files with something of a tensor at a step."""
        self._layouts_named(name)
        files = {w: file for w, file in self._by_step.get(step, {}).items() if name in file.layout.members}
        if not files:
            raise StepNotFoundError(f"Nothing of {name[:200]} was saved at step {step}.")
        if worker is None:
            return files
        if worker not in files:
            raise NotFoundError(f"The worker {worker[:80]!r} saved nothing of {name[:200]} at step {step}.")
        return {worker: files[worker]}

    def _refresh_collections(self) -> bool:
        files = list_collections(self.path)
        stamps = {path: modified_ns(path) for path in files.values()}
        if stamps == self._collections_ns:
            return False
        self._collections_ns, self._members = stamps, None
        self.collection_workers = sorted(files)
        for path in list(files.values())[:1]:  # every worker writes the same
            try:
                self.collections, self.num_workers = read_collections(path)
                self._problems.pop(path.name, None)
            except (OSError, ValueError) as error:
                self.note(path.name, f"The collections in {path.name} cannot be read: {_reason(error)}.")
        for step, workers in self._by_step.items():
            self._complete(step, workers)
        return True

    def _read_index(self, listed: ListedFile) -> bool:
        """Take in one index file; True when it could be read."""
        stamp = modified_ns(listed.path)
        try:
            file = self._layouts.parse(read_bytes(listed.path, MAX_INDEX_BYTES), listed.step, listed.worker)
        except (OSError, ValueError) as error:
            self._refused[listed] = stamp
            self.note(listed.path.name, f"The index {listed.path.name} cannot be read: {_reason(error)}.")
            return False
        self._refused.pop(listed, None)
        self._problems.pop(listed.path.name, None)
        workers = self._by_step.setdefault(file.step, {})
        self._entries += len(file.layout.tensors)
        if self._entries > MAX_ENTRIES or len(workers) >= MAX_WORKERS:
            self.note("entries", f"The store has more than {MAX_ENTRIES} values; later ones are left out.")
            return False
        workers[file.worker] = file
        self._add(file, stamp)
        self._complete(file.step, workers)
        return True

    def _add(self, file: IndexFile, stamp: int) -> None:
        self._events.add(file)
        written_ns = wall_time_ns(self._events.head(file)) if file.event_file is not None else 0
        self.files.append(file)
        self.times_ns.append(written_ns or stamp)
        if file.mode != GLOBAL:
            self._mode_steps.setdefault(file.mode, {}).setdefault(file.mode_step, file.step)
        group = self._by_layout.get(id(file.layout))
        if group is None:
            group = self._by_layout[id(file.layout)] = (file.layout, [])
            for name in file.layout.tensors:
                self._layouts_of.setdefault(name, []).append(file.layout)
            self._members = None
        group[1].append(file)

    def _complete(self, step: int, workers: dict[str, IndexFile]) -> None:
        if len(workers) == self.num_workers:
            self.last_complete_step = max(self.last_complete_step, step)

    def _find_members(self) -> dict[str, tuple[str, ...]]:
        names = list(self._layouts_of)
        found: dict[str, list[str]] = {name: [] for name in names}
        for collection in self.collections.values():
            members = {name for name in collection.tensor_names if name in found}
            for pattern in collection.include_regex:
                hits = matches(pattern, names)
                if hits is None:
                    self.note(
                        f"{collection.name} {pattern}",
                        f"The collection {collection.name[:80]!r} has the expression {pattern[:80]!r}, which "
                        "is not valid or could take for ever; its tensors are shown without it.",
                    )
                else:
                    members |= hits
            for name in members:
                found[name].append(collection.name)
        return {name: tuple(sorted(collections)) for name, collections in found.items()}

    def _said(self, file: IndexFile, error: Exception) -> str:
        name = "/".join(file.event_file) if file.event_file else f"step {file.step}"
        return f"The event file {name} cannot be read: {_reason(error)}."


def _by_step_and_worker(file: IndexFile) -> tuple[int, str]:
    return file.step, file.worker


def _reason(error: Exception) -> str:
    """What went wrong, without a path: problems may reach a browser."""
    return (error.strerror or "it is not readable") if isinstance(error, OSError) else str(error)
