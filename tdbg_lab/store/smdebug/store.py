"""A store that smdebug wrote: its tensors, values, reductions and shapes, by global step."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import NotFoundError, StepNotFoundError
from tdbg_lab.store.layout import read_bytes
from tdbg_lab.store.limits import MAX_PROBLEMS
from tdbg_lab.store.smdebug.bounds import MAX_ENTRIES, MAX_INDEX_BYTES
from tdbg_lab.store.smdebug.catalog import GLOBAL, Catalog, require_mode
from tdbg_lab.store.smdebug.collection import SmdebugCollection, members, read_collections
from tdbg_lab.store.smdebug.folder import (
    CLAIM,
    END,
    EVENTS,
    FileListing,
    ListedFile,
    is_smdebug_store,
    list_collections,
    modified_ns,
    shelf_of,
)
from tdbg_lab.store.smdebug.index_file import IndexFile, Layouts, Reduction
from tdbg_lab.store.smdebug.profile import is_profile_folder
from tdbg_lab.store.smdebug.rebuilding import index_of
from tdbg_lab.store.smdebug.values import Values, reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.store.smdebug.record import Content

__all__ = ["SmdebugStore"]


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
        self._forget()
        self.refresh()

    def __repr__(self) -> str:
        n_tensors, n_steps = len(self._catalog.tensors), len(self._catalog.steps(GLOBAL))
        return f"<SmdebugStore {self.path.name}: {n_tensors} tensors, {n_steps} steps>"

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
        self._listing = FileListing(self.path, shelf_of(self.path))
        self._layouts = Layouts()
        self._catalog = Catalog()
        self._values = Values(self.path)
        self._refused: dict[ListedFile, int] = {}
        self._problems: dict[str, str] = {}
        self._members: dict[str, tuple[str, ...]] | None = None
        self._collections_ns: dict[Path, int] = {}

    @property
    def problems(self) -> list[str]:
        """What could not be read, and why: one sentence each."""
        return list(self._problems.values())

    def refresh(self) -> bool:
        """Read what is new; True when anything changed."""
        with self.lock:
            changed = self._listing.replaced()
            if changed:  # the folder was emptied and written again, or its index came at last
                self._forget()
            changed = self._refresh_collections() or changed
            markers = (self.path / END).is_file(), (self.path / CLAIM).is_file()
            listed = self._listing.new()  # after the look at the marker: what came before it is seen
            before = self.last_complete_step
            again = [file for file, stamp in self._refused.items() if modified_ns(file.path) != stamp]
            added = [self._take(file) for file in [*again, *listed]]
            changed = any(added) or changed or markers != (self.ended, self.claimed)
            self.ended, self.claimed = markers
            if self.ended:
                self.last_complete_step = self._catalog.last_step
            changed = changed or before != self.last_complete_step
            self._say_what_is_missing()
            self.version += changed
            return changed

    @property
    def workers(self) -> list[str]:
        """Workers that saved something, by name."""
        with self.lock:
            return self._catalog.workers()

    def modes(self) -> list[str]:
        """Modes of the steps there are, ``GLOBAL`` left out."""
        with self.lock:
            return self._catalog.modes()

    def steps(self, mode: str = GLOBAL) -> list[int]:
        """Steps, ascending, also those that some workers still have to write.

        Parameters
        ----------
        mode
            ``GLOBAL`` gives global steps of all modes; ``TRAIN``, ``EVAL`` and ``PREDICT`` their mode steps.

        Raises
        ------
        ConfigError
            If there is no such mode, here and in the other methods that take one.
        """
        with self.lock:
            return self._catalog.steps(require_mode(mode))

    def mode_step(self, step: int) -> tuple[str, int] | None:
        """Mode and mode step of a step; None when nothing was saved at it."""
        with self.lock:
            first = next(iter(self._catalog.at(step).values()), None)
        return None if first is None else (first.mode, first.mode_step)

    def global_step(self, mode: str, mode_step: int) -> int | None:
        """The step of a mode step; None when nothing was saved at it."""
        with self.lock:
            return self._catalog.global_step(require_mode(mode), mode_step)

    def step_workers(self, step: int) -> tuple[str, ...]:
        """Workers that saved something at a step, by name."""
        with self.lock:
            return tuple(sorted(self._catalog.at(step)))

    def names(self, mode: str = GLOBAL, step: int | None = None) -> list[str]:
        """Tensors with a value, a reduction or a shape, by name; at one step when it is given."""
        with self.lock:
            return self._catalog.names(require_mode(mode), step)

    def __contains__(self, name: object) -> bool:
        return name in self._catalog

    def tensor_steps(self, name: str, mode: str = GLOBAL) -> list[int]:
        """Steps of a tensor, as `steps`.

        Raises
        ------
        NotFoundError
            If there is no such tensor.
        """
        require_mode(mode)
        files = self.tensor_files(name)
        return sorted(
            {file.step if mode == GLOBAL else file.mode_step for file in files if mode in {GLOBAL, file.mode}}
        )

    def tensor_workers(self, name: str, step: int) -> list[str]:
        """Workers that saved something of a tensor at a step, by name; raises as `value`."""
        with self.lock:
            return sorted(file.worker for file in self._catalog.tensor_at(name, step).values())

    def tensor_files(self, name: str) -> list[IndexFile]:
        """Index files that hold something of a tensor, by step and worker; raises as `tensor_steps`."""
        with self.lock:
            return self._catalog.files_of(name)

    def original_name(self, name: str) -> str | None:
        """What a tensor was called before smdebug named it, where its shape was saved; else None."""
        with self.lock:
            shapes = (file.shapes.get(name) for file in self._catalog.files_of(name))
            return next((shape[1] for shape in shapes if shape is not None), None)

    def has_value(self, name: str, step: int, worker: str | None = None) -> bool:
        """Whether the value of a tensor was saved at a step; raises as `tensor_steps`."""
        with self.lock:
            self._catalog.require(name)
            files = self._catalog.at(step)
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
            for file in self._catalog.tensor_at(name, step, worker).values():
                if name in file.layout.values:
                    return self.read(file, file.layout.values[name])
        raise StepNotFoundError(f"The value of {name[:200]} was not saved at step {step}.")

    def values(
        self, name: str, steps: Iterable[int] | None = None, worker: str | None = None
    ) -> dict[int, NDArray[Any]]:
        """Values of a tensor by step, where they were saved; raises as `value`."""
        wanted = None if steps is None else set(steps)
        files: dict[int, IndexFile] = {}
        with self.lock:
            for file in self._catalog.files_of(name):
                if name not in file.layout.values or worker not in {None, file.worker}:
                    continue
                if wanted is None or file.step in wanted:
                    files.setdefault(file.step, file)
            read = zip(files.items(), self._values.column([*files.values()], name), strict=True)
            return {
                step: self._values.read(file, file.layout.values[name]) if value is None else value
                for (step, file), value in read
            }

    def reductions(self, name: str, step: int, worker: str | None = None) -> list[Reduction]:
        """Reductions of a tensor saved at a step: name, and whether of the absolute values."""
        with self.lock:
            files = self._catalog.tensor_at(name, step, worker).values()
            return next((list(found) for file in files if (found := file.layout.reductions.get(name))), [])

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
            for file in self._catalog.tensor_at(name, step, worker).values():
                position = file.layout.reductions.get(name, {}).get((reduction, abs))
                if position is not None:
                    found = self._values.read(file, position)  # TensorFlow 1 writes shape (1,)
                    return found.reshape(())[()] if found.size == 1 else found
        what = f"{'absolute ' if abs else ''}{reduction[:40]}"
        raise StepNotFoundError(f"The {what} of {name[:200]} was not saved at step {step}.")

    def shape(self, name: str, step: int, worker: str | None = None) -> tuple[int, ...] | None:
        """Shape at a step, as saved or of the value; None when neither was saved. Raises as `value`."""
        with self.lock:
            for file in self._catalog.tensor_at(name, step, worker).values():
                if name in file.shapes:
                    return file.shapes[name][0]
                if name in file.layout.values:
                    return self.content(file, file.layout.values[name]).shape
        return None

    def collections_of(self, name: str) -> tuple[str, ...]:
        """Collections a tensor belongs to: those that list it or have a regular expression found in it."""
        with self.lock:
            if self._members is None:
                tensors = self._catalog.tensors
                self._members = members(self.collections.values(), tensors, self._refuse)
            return self._members.get(name, ())

    def read(self, file: IndexFile, position: int) -> NDArray[Any]:
        """The value of one record.

        Raises
        ------
        StoreError
            If it cannot be read.
        """
        with self.lock:
            return self._values.read(file, position)

    def column(self, files: Sequence[IndexFile], name: str) -> list[NDArray[Any] | None]:
        """The value of a tensor in each of some files that hold it; None where it cannot be read.

        Reading one tensor after the other this way opens each file once for several of them.
        """
        with self.lock:
            return self._values.column(files, name)

    def peek(self, file: IndexFile, positions: list[int]) -> list[NDArray[Any]]:
        """Values of several records of one file; read-only views where possible. Raises as `read`."""
        with self.lock:
            return self._values.peek(file, positions)

    def content(self, file: IndexFile, position: int) -> Content:
        """Type and shape of one record, mostly without reading its values. Raises as `read`."""
        with self.lock:
            return self._values.content(file, position)

    def note(self, place: str, text: str) -> None:
        """Keep a problem; one for each place."""
        if len(self._problems) < MAX_PROBLEMS:
            self._problems[place] = text

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
                self.note(path.name, f"The collections in {path.name} cannot be read: {reason(error)}.")
        for step, workers in self._catalog.by_step():
            self._complete(step, workers)
        return True

    def _say_what_is_missing(self) -> None:
        if self._listing.shelf is not EVENTS:
            return
        if self.files:
            self.note(
                "index",
                "The folder index is missing or empty, so the tensors were looked up in the event files: "
                "copy index, too, to see shapes that were saved without values.",
            )
        elif self.ended and not is_profile_folder(self.path):
            self.note(
                "index",
                "The folders index and events are missing, so there are no tensors: copy both from where the "
                "job wrote them.",
            )

    def _take(self, listed: ListedFile) -> bool:
        """Take in one file of the index, or an event file without one; True when it could be read."""
        stamp = modified_ns(listed.path)
        try:
            file = self._index_file(listed)
        except (OSError, ValueError) as error:
            self._refused[listed] = stamp
            what = "event file" if self._listing.shelf is EVENTS else "index"
            self.note(listed.path.name, f"The {what} {listed.path.name} cannot be read: {reason(error)}.")
            return False
        self._refused.pop(listed, None)
        self._problems.pop(listed.path.name, None)
        known = self._catalog.n_layouts
        if not self._catalog.add(file):
            self.note("entries", f"The store has more than {MAX_ENTRIES} values; later ones are left out.")
            return False
        if known != self._catalog.n_layouts:
            self._members = None
        self.files.append(file)
        self.times_ns.append(self._values.add(file) or stamp)
        self._complete(file.step, self._catalog.at(file.step))
        return True

    def _index_file(self, listed: ListedFile) -> IndexFile:
        if self._listing.shelf is EVENTS:
            return self._layouts.take(index_of(listed.path), listed.step, listed.worker)
        return self._layouts.parse(read_bytes(listed.path, MAX_INDEX_BYTES), listed.step, listed.worker)

    def _complete(self, step: int, workers: dict[str, IndexFile]) -> None:
        if len(workers) == self.num_workers:
            self.last_complete_step = max(self.last_complete_step, step)

    def _refuse(self, collection: str, pattern: str) -> None:
        self.note(
            f"{collection} {pattern}",
            f"The collection {collection[:80]!r} has the expression {pattern[:80]!r}, which is not valid or "
            "could take for ever; its tensors are shown without it.",
        )
