"""Which tensors a store has at which steps: its index files, by step and by the tensors they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.errors import ConfigError, NotFoundError, StepNotFoundError
from tdbg_lab.nearest import did_you_mean
from tdbg_lab.store.smdebug.bounds import MAX_ENTRIES, MAX_WORKERS
from tdbg_lab.store.smdebug.index_file import MODES, IndexFile, Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["GLOBAL", "Catalog", "require_mode"]

GLOBAL = "GLOBAL"
"""The mode of steps that count over all modes."""


def require_mode(mode: str) -> str:
    """The mode itself.

    Raises
    ------
    ConfigError
        It is none of smdebug's.
    """
    if mode not in MODES:
        raise ConfigError(f"mode is {mode!r}; expected {', '.join(MODES[:-1])} or {MODES[-1]}.")
    return mode


class Catalog:
    """The index files of one store. Not thread-safe; methods are as those of `SmdebugStore`."""

    def __init__(self) -> None:
        self._by_step: dict[int, dict[str, IndexFile]] = {}
        self._by_layout: dict[int, tuple[Layout, list[IndexFile]]] = {}
        self._layouts_of: dict[str, list[Layout]] = {}
        self._mode_steps: dict[str, dict[int, int]] = {}
        self._entries = 0

    def add(self, file: IndexFile) -> bool:
        """Take in a file; False when there are too many."""
        self._entries += len(file.layout.tensors)
        if self._entries > MAX_ENTRIES or len(self.at(file.step)) >= MAX_WORKERS:
            return False
        self._by_step.setdefault(file.step, {})[file.worker] = file
        if file.mode != GLOBAL:
            self._mode_steps.setdefault(file.mode, {}).setdefault(file.mode_step, file.step)
        group = self._by_layout.get(id(file.layout))
        if group is None:
            group = self._by_layout[id(file.layout)] = (file.layout, [])
            for name in file.layout.tensors:
                self._layouts_of.setdefault(name, []).append(file.layout)
        group[1].append(file)
        return True

    def __contains__(self, name: object) -> bool:
        return name in self._layouts_of

    @property
    def tensors(self) -> list[str]:
        """All tensors, in the order they were met."""
        return list(self._layouts_of)

    @property
    def n_layouts(self) -> int:
        """Sets of tensors that were saved together."""
        return len(self._by_layout)

    @property
    def last_step(self) -> int:
        """The last step; -1 when there is none."""
        return max(self._by_step, default=-1)

    def workers(self) -> list[str]:
        """Workers that saved something, by name."""
        return sorted({worker for files in self._by_step.values() for worker in files})

    def by_step(self) -> Iterator[tuple[int, dict[str, IndexFile]]]:
        """Each step with its files by worker."""
        yield from self._by_step.items()

    def at(self, step: int) -> dict[str, IndexFile]:
        """Files of a step by worker; none when nothing was saved at it."""
        return self._by_step.get(step, {})

    def modes(self) -> list[str]:
        """Modes of the steps there are, ``GLOBAL`` left out."""
        return [mode for mode in MODES if mode != GLOBAL and mode in self._mode_steps]

    def steps(self, mode: str) -> list[int]:
        """Steps of a mode, ascending."""
        return sorted(self._by_step if mode == GLOBAL else self._mode_steps.get(mode, ()))

    def global_step(self, mode: str, mode_step: int) -> int | None:
        """The step of a mode step."""
        return mode_step if mode == GLOBAL else self._mode_steps.get(mode, {}).get(mode_step)

    def names(self, mode: str, step: int | None) -> list[str]:
        """Tensors by name; at one step when it is given."""
        if step is not None:
            files: Iterable[IndexFile] = self.at(step).values()
            layouts = [file.layout for file in files if mode in {GLOBAL, file.mode}]
        elif mode == GLOBAL:
            return sorted(self._layouts_of)
        else:
            groups = self._by_layout.values()
            layouts = [layout for layout, files in groups if any(file.mode == mode for file in files)]
        return sorted({name for layout in layouts for name in layout.tensors})

    def require(self, name: str) -> list[Layout]:
        """Sets of tensors that hold this one.

        Raises
        ------
        NotFoundError
            If there is no such tensor.
        """
        found = self._layouts_of.get(name)
        if found is None:
            hint = did_you_mean(name, self._layouts_of, most=3)
            raise NotFoundError(f"There is no tensor {name[:200]!r} in this store.{hint}")
        return found

    def files_of(self, name: str) -> list[IndexFile]:
        """Files that hold something of a tensor, by step and worker; raises as `require`."""
        files = [file for layout in self.require(name) for file in self._by_layout[id(layout)][1]]
        return sorted(files, key=_by_step_and_worker)

    def tensor_at(self, name: str, step: int, worker: str | None = None) -> dict[str, IndexFile]:
        """Files with something of a tensor at a step, by worker, in the order of their names.

        Raises
        ------
        NotFoundError
            If there is no such tensor, or the worker saved nothing of it there.
        StepNotFoundError
            If nobody did.
        """
        self.require(name)
        files = {w: file for w, file in sorted(self.at(step).items()) if name in file.layout.members}
        if not files:
            raise StepNotFoundError(f"Nothing of {name[:200]} was saved at step {step}.")
        if worker is None:
            return files
        if worker not in files:
            raise NotFoundError(f"The worker {worker[:80]!r} saved nothing of {name[:200]} at step {step}.")
        return {worker: files[worker]}


def _by_step_and_worker(file: IndexFile) -> tuple[int, str]:
    return file.step, file.worker
