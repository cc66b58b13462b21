"""A run of tdbg-lab, as trials ask about it.

Runs of a hook say in rows of their own which steps are complete (see `core.recording`). Other runs
have none: there a step of train mode is global step ``s + k``, ``k`` being the eval and predict
passes saved up to then, so that passes have their place between the steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.errors import StepNotFoundError
from tdbg_lab.records import Kind, Mode, RunStatus
from tdbg_lab.run import Run
from tdbg_lab.smdebug.core.modes import ModeKeys
from tdbg_lab.smdebug.core.recording import MARK, RAW_COUNT, SHAPE, follows_from_row
from tdbg_lab.smdebug.core.reductions import get_reduction_tensor_name
from tdbg_lab.smdebug.core.saving import Decision, SavePlan
from tdbg_lab.smdebug.trials.rows import SCALAR_DTYPES, RowReader, in_dtype, reduced
from tdbg_lab.store.raw_index import RawIndex
from tdbg_lab.store.smdebug.collection import SmdebugCollection

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from tdbg_lab.records import TensorKey
    from tdbg_lab.store.raw import RawFile

__all__ = ["RunRecord"]

_OWN = ("smdebug/", "tdbg/")


class RunRecord:
    """Answers a trial's questions from a run directory.

    Raises
    ------
    NotFoundError
        If there is no run.
    """

    def __init__(self, path: str | Path) -> None:
        self.run = Run(path)
        self.num_workers = 0
        self.last_complete_step = -1
        self._plan: SavePlan | None = None
        self._ddof = 0
        self._hooked = False
        self._places: dict[int, tuple[str, int, Mode, int]] = {}
        """Mode, number in it, mode and step in the run; by global step."""
        self._globals: dict[tuple[str, int], int] = {}
        self._of_run: dict[tuple[Mode, int], int] = {}
        self._written: dict[int, set[int]] = {}
        self._keys: dict[str, TensorKey] = {}
        self._rows = RowReader(self.run)
        self._raw_index = RawIndex(self.run.path)
        self._version = -1
        self._look()

    # -- refreshing --------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether the run has ended, or its process is gone."""
        return self.run.status != RunStatus.RUNNING

    def refresh(self) -> bool:
        """Read what is new; True when anything changed."""
        changed = self.run.refresh()
        incomplete = self.last_complete_step < max(self._places, default=-1)
        if changed or incomplete or not self.num_workers:
            self._look()
        return changed

    def _look(self) -> None:
        if self._plan is None:
            self._read_plan()
        if self._version != self.run.version:
            self._version = self.run.version
            self._rows.forget()
            self._keys = {key.name: key for key in self.run.tensors() if not key.name.startswith(_OWN)}
        self._raw_index.refresh()
        if self._hooked:
            self._look_for_marks()
        else:
            self._number_steps()
        self._of_run = {(mode, step): at for at, (_, _, mode, step) in self._places.items()}
        self._globals = {place[:2]: at for at, place in self._places.items()}
        self._complete()

    def _read_plan(self) -> None:
        described = self.run.info.capture.get("smdebug")
        if not isinstance(described, dict):
            self.num_workers = max(self.run.info.world_size, 1)
            return
        self._hooked = True
        try:
            self._plan = SavePlan.from_json_dict(described)
            self.num_workers = max(int(described.get("num_workers", 1)), 1)
            self._ddof = int(described.get("ddof", 0))
        except (AttributeError, KeyError, TypeError, ValueError):  # written by another version, or by nobody
            self._plan = SavePlan({}, ())
            self.num_workers = 1

    def _look_for_marks(self) -> None:
        """Which steps say that they are complete."""
        marks = [key.name for key in self.run.tensors(regex=f"^{MARK}")]
        for rank in self.run.ranks():
            for mode in self.run.modes():
                for name in marks:
                    found = self._rows.values(name, mode, rank)
                    raw = self._rows.values(RAW_COUNT, mode, rank) if found else {}
                    for step, mode_step in found.items():
                        self._places[step] = name.removeprefix(MARK), int(mode_step), mode, step
                        if rank not in self._written.setdefault(step, set()) and self._has_raw(
                            rank, mode, step, raw.get(step, 0.0)
                        ):
                            self._written[step].add(rank)

    def _has_raw(self, rank: int, mode: Mode, step: int, count: float) -> bool:
        """Whether the raw values of a step have reached the disk; they are written in the background.

        They are written step after step: where a later one is there, those of this step were left out.
        """
        if not count or self.ended:
            return True
        return self._raw_file(rank, mode, step) is not None or self._raw_index.last_step(rank) > step

    def _number_steps(self) -> None:
        """Number the steps of a run that no hook wrote."""
        passes = [(int(step), mode) for mode in self.run.modes() for step in self.run.steps(mode=mode)]
        order = {Mode.EVAL: 0, Mode.PREDICT: 1, Mode.TRAIN: 2}
        before = 0
        for step, mode in sorted(passes, key=lambda one: (one[0], order[one[1]])):
            self._places[step + before] = mode.name, step, mode, step
            self._written[step + before] = set(self.run.ranks())
            before += mode is not Mode.TRAIN

    def _complete(self) -> None:
        for step in sorted(self._places):
            if step <= self.last_complete_step:
                continue
            if not self.ended and len(self._written.get(step, ())) < self.num_workers:
                break
            self.last_complete_step = step

    # -- steps and names ---------------------------------------------------------------------------

    @property
    def workers(self) -> list[str]:
        """Workers that saved something, by name."""
        return sorted(f"worker_{rank}" for rank in self.run.ranks())

    @property
    def collections(self) -> dict[str, SmdebugCollection]:
        """Collections by name; those of a run that no hook wrote are what its tensors say."""
        listed: dict[str, list[str]] = {}
        for key in self._keys.values():
            for name in key.collections:
                listed.setdefault(name, []).append(key.name)
        known = {} if self._plan is None else self._plan.collections
        found = {}
        for name in dict.fromkeys((*known, *listed)):
            described = known[name].to_json_dict() if name in known else {"name": name}
            names = {*described.pop("tensor_names", ()), *listed.get(name, ())}
            patterns = tuple(described.pop("include_regex", ()))
            found[name] = SmdebugCollection(
                **described, include_regex=patterns, tensor_names=tuple(sorted(names))
            )
        return found

    def modes(self) -> list[str]:
        """Modes with steps, without GLOBAL."""
        seen = {mode for mode, *_ in self._places.values()}
        return [mode.name for mode in ModeKeys if mode is not ModeKeys.GLOBAL and mode.name in seen]

    def steps(self, mode: str = "GLOBAL") -> list[int]:
        """Steps in order: global ones, or those counted in `mode`."""
        return self._counted(self._places, mode)

    def _counted(self, steps: Iterable[int], mode: str) -> list[int]:
        if mode == "GLOBAL":
            return sorted(steps)
        return sorted(self._places[step][1] for step in steps if self._places[step][0] == mode)

    def mode_step(self, step: int) -> tuple[str, int] | None:
        """Mode of a step and its number in it."""
        place = self._places.get(step)
        return None if place is None else place[:2]

    def global_step(self, mode: str, mode_step: int) -> int | None:
        """The step that a mode counts so."""
        return self._globals.get((mode, mode_step))

    def step_workers(self, step: int) -> tuple[str, ...]:
        """Workers that have written a step."""
        return tuple(f"worker_{rank}" for rank in sorted(self._written.get(step, ())))

    def names(self, mode: str = "GLOBAL", step: int | None = None) -> list[str]:
        """Tensors in a mode, at a step, by name."""
        if step is not None:
            place = self._places.get(step)
            if place is None or mode not in {"GLOBAL", place[0]}:
                return []
            found = self.run.tensor_names(mode=place[2], step=place[3])
            return sorted(name for name in found if name in self._keys)
        if mode == "GLOBAL":
            return sorted(self._keys)
        return sorted(name for name in self._keys if self.tensor_steps(name, mode))

    def tensor_steps(self, name: str, mode: str = "GLOBAL") -> list[int]:
        """Steps of a tensor, as `steps`."""
        found = [
            at
            for of in self.run.modes()
            for step in self._rows.steps(name, of)
            if (at := self._of_run.get((of, step))) is not None
        ]
        return self._counted(found, mode)

    def tensor_workers(self, name: str, step: int) -> list[str]:
        """Workers that saved a tensor at a step."""
        _, _, mode, at = self._places[step]
        ranks = [rank for rank in self.run.ranks() if at in self._rows.steps(name, mode, rank)]
        return sorted(f"worker_{rank}" for rank in ranks)

    def original_name(self, _name: str) -> str | None:
        """Names are the framework's own here."""
        return None

    def collections_of(self, name: str) -> tuple[str, ...]:
        """Collections a tensor belongs to."""
        listed = self._keys[name].collections if name in self._keys else ()
        return tuple(dict.fromkeys((*listed, *(self._plan.members(name) if self._plan else ()))))

    # -- values ------------------------------------------------------------------------------------

    def _decision(self, name: str, step: int) -> Decision | None:
        """What the hook saved of a tensor; None where no hook was."""
        if self._plan is None:
            return None
        key, (mode, mode_step, *_) = self._keys[name], self._places[step]
        if key.kind is Kind.SCALAR:
            return Decision(raw=True)
        if key.kind is Kind.CUSTOM:
            return self._plan.decide_custom(key.collections)
        return self._plan.decide(key.collections, self._plan.due(ModeKeys[mode], mode_step))

    def _raw_file(self, rank: int, mode: Mode, step: int) -> RawFile | None:
        return next((file for file in self._raw_index.at(step, rank) if file.mode is mode), None)

    def _raw(self, name: str, step: int, rank: int) -> NDArray[Any] | None:
        _, _, mode, at = self._places[step]
        file = self._raw_file(rank, mode, at)
        return None if file is None else self._raw_index.column([file], name)[0]

    def _rank(self, name: str, step: int, worker: str | None) -> int:
        workers = self.tensor_workers(name, step)
        found = worker or (workers[0] if workers else "worker_0")
        return int(found.rpartition("_")[2])

    def has_value(self, name: str, step: int, worker: str | None = None) -> bool:
        """Whether the values were saved."""
        rank = self._rank(name, step, worker)
        _, _, mode, at = self._places[step]
        file = self._raw_file(rank, mode, at)
        if file is not None and self._raw_index.has(file, name):
            return True
        return self._single(name, step, rank) is not None

    def _single(self, name: str, step: int, rank: int) -> NDArray[Any] | None:
        """The value of a tensor with one element, which its statistics hold exactly."""
        key, decision = self._keys[name], self._decision(name, step)
        wanted = key.kind in {Kind.LOSS, Kind.SCALAR} if decision is None else decision.raw
        dtype = SCALAR_DTYPES.get(key.dtype or "float64")
        if not wanted or dtype is None:
            return None
        row = self._rows.row(name, self._places[step], rank)
        if row is None or row["count"] != 1:
            return None
        shape = key.shape if int(np.prod(key.shape)) == 1 else (1,)
        return np.full(shape, row["value"], dtype)

    def value(self, name: str, step: int, worker: str | None = None) -> NDArray[Any]:
        """The values.

        Raises
        ------
        StepNotFoundError
            If they were not saved.
        """
        rank = self._rank(name, step, worker)
        for found in (self._raw(name, step, rank), self._single(name, step, rank)):
            if found is not None:
                return found
        raise StepNotFoundError(f"The value of {name[:200]} was not saved at step {step}.")

    def values(
        self, name: str, steps: Iterable[int] | None = None, worker: str | None = None
    ) -> dict[int, NDArray[Any]]:
        """The values of several steps, where they were saved."""
        found = {}
        for step in self.tensor_steps(name) if steps is None else steps:
            if worker is None or worker in self.tensor_workers(name, step):
                try:
                    found[step] = self.value(name, step, worker)
                except StepNotFoundError:
                    continue
        return found

    def shape(self, name: str, step: int, worker: str | None = None) -> tuple[int, ...] | None:
        """The shape, when it was saved or follows from the values."""
        rank = self._rank(name, step, worker)
        saved = self._raw(SHAPE + name, step, rank)
        if saved is not None:
            return tuple(int(n) for n in saved)
        return self.value(name, step, worker).shape if self.has_value(name, step, worker) else None

    # -- reductions --------------------------------------------------------------------------------

    def reductions(self, name: str, step: int, _worker: str | None = None) -> list[tuple[str, bool]]:
        """Reductions that were saved: name, and whether it is of absolute values."""
        decision = self._decision(name, step)
        return [] if decision is None else list(decision.reductions)

    def reduction(
        self,
        name: str,
        step: int,
        reduction: str,
        *,
        abs: bool = False,  # noqa: A002
        worker: str | None = None,
    ) -> Any:
        """A reduction that was saved, in the type of the tensor.

        Raises
        ------
        StepNotFoundError
            If it was not.
        """
        rank, place = self._rank(name, step, worker), self._places[step]
        if follows_from_row(reduction, abs):
            row = self._rows.row(name, place, rank)
            found = None if row is None else reduced(row, reduction, absolute=abs, ddof=self._ddof)
        else:
            kept = get_reduction_tensor_name(name, reduction, abs)
            found = self._rows.values(kept, place[2], rank).get(place[3])
        if found is None:
            raise StepNotFoundError(f"The {reduction} of {name[:200]} was not saved at step {step}.")
        return in_dtype(found, self._keys[name].dtype)

    def derived(self, name: str, step: int, reduction: tuple[str, bool], worker: str | None) -> Any:
        """A reduction that was not asked for but follows exactly from the statistics; else None."""
        row = self._rows.row(name, self._places[step], self._rank(name, step, worker))
        if row is None:
            return None
        found = reduced(row, reduction[0], absolute=reduction[1], ddof=0)
        return None if found is None else in_dtype(found, self._keys[name].dtype)
