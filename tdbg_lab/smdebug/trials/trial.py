"""A trial: what a training job saved, as it is now."""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_left
from typing import TYPE_CHECKING

from tdbg_lab.smdebug.core.collection import Collection, CollectionKeys
from tdbg_lab.smdebug.core.config_constants import (
    INCOMPLETE_STEP_WAIT_WINDOW_DEFAULT,
    INCOMPLETE_STEP_WAIT_WINDOW_KEY,
    TRAINING_END_DELAY_REFRESH_DEFAULT,
    TRAINING_END_DELAY_REFRESH_KEY,
)
from tdbg_lab.smdebug.core.logger import get_logger
from tdbg_lab.smdebug.core.modes import ModeKeys
from tdbg_lab.smdebug.core.reduction_config import ReductionConfig
from tdbg_lab.smdebug.core.save_config import SaveConfig
from tdbg_lab.smdebug.core.tensor import StepState, Tensor
from tdbg_lab.smdebug.core.utils import match_inc, step_in_range
from tdbg_lab.smdebug.exceptions import (
    MissingCollectionFiles,
    NoMoreData,
    SMDebugValueError,
    StepUnavailable,
    TensorUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tdbg_lab.smdebug.trials.record import CollectionFacts, Record

__all__ = ["Trial"]

_POLL_S = 0.1


class Trial:
    """What was saved, with methods that answer while training goes on.

    Every method looks for new data first, unless training has ended or `analysis.utils.no_refresh`
    says otherwise. Steps are global steps; with a mode they are counted in it.

    Parameters
    ----------
    name
        For people.
    record
        Where the answers come from.
    range_steps
        Global steps to look at: from the first on, before the second; None leaves an end open.
    cache
        Keep values in memory once they were read.

    Raises
    ------
    SMDebugValueError
        If `range_steps` is no range.
    MissingCollectionFiles
        If training has ended and saved nothing.
    """

    def __init__(
        self,
        name: str,
        record: Record,
        range_steps: Sequence[int | None] | None = None,
        cache: bool = False,
    ) -> None:
        self.name = name
        self.record = record
        self.range_steps = _checked(range_steps)
        self.cache = cache
        self.dynamic_refresh = True
        """Whether methods look for new data first."""
        self.loaded_all_steps = False
        """Whether training has ended and everything of it was seen."""
        self.logger = get_logger()
        self._ended_s: float | None = None
        self._tensors: dict[str, Tensor] = {}
        self._made: dict[str, Collection] = {}
        self._wait_for_collections()

    @property
    def path(self) -> str:
        """Where it is read from."""
        return self.name

    @property
    def num_workers(self) -> int:
        """Workers that write."""
        return self.record.num_workers

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.name} of {self.path}: {len(self.steps())} steps, "
            f"{len(self.tensor_names())} tensors>"
        )

    # -- looking for new data ----------------------------------------------------------------------

    def _wait_for_collections(self) -> None:
        while not self.record.num_workers:
            if self.record.ended:
                raise MissingCollectionFiles
            time.sleep(_POLL_S)
            self._fetch()
            self.record.refresh()
        self.refresh_data()

    def maybe_refresh(self, name: str | None = None) -> None:
        """Look for new data, unless that is switched off or there can be none."""
        del name  # all tensors are refreshed together
        if self.dynamic_refresh and not self.loaded_all_steps:
            self.refresh_data()

    def _fetch(self) -> None:
        """For trials elsewhere: bring to this machine what is new."""

    def refresh_data(self) -> None:
        """Look for new data."""
        self._fetch()
        self.record.refresh()
        if not self.record.ended:
            self._ended_s = None
            return
        now = time.monotonic()
        self._ended_s = now if self._ended_s is None else self._ended_s
        # One worker says that training has ended; the others may still be writing.
        delay = _number(TRAINING_END_DELAY_REFRESH_KEY, TRAINING_END_DELAY_REFRESH_DEFAULT)
        if self.record.num_workers == 1 or now - self._ended_s >= delay:
            self.loaded_all_steps = True

    @property
    def last_complete_step(self) -> int:
        """All workers have saved this global step and those before; -1 when there is none.

        When more steps than ``SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW`` wait for a worker, the first
        half of them counts as complete: the worker is gone.
        """
        last = self.record.last_complete_step
        window = int(_number(INCOMPLETE_STEP_WAIT_WINDOW_KEY, INCOMPLETE_STEP_WAIT_WINDOW_DEFAULT))
        waiting = [
            step
            for step in self.record.steps()
            if step > last and len(self.record.step_workers(step)) < self.record.num_workers
        ]
        return waiting[len(waiting) // 2] if len(waiting) > window else last

    # -- steps and modes ---------------------------------------------------------------------------

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Steps that were saved.

        Parameters
        ----------
        show_incomplete_steps
            Also those that not all workers have saved yet.
        """
        self.maybe_refresh()
        return self._select(self.record.steps(mode.name), mode, incomplete=show_incomplete_steps)

    def steps_of(self, name: str, mode: ModeKeys, *, incomplete: bool) -> list[int]:
        """Steps of one tensor, without looking for new ones."""
        return self._select(self.record.tensor_steps(name, mode.name), mode, incomplete=incomplete)

    def _select(self, steps: Iterable[int], mode: ModeKeys, *, incomplete: bool) -> list[int]:
        last = self.last_complete_step
        found = []
        for step in steps:
            at = step if mode is ModeKeys.GLOBAL else self.record.global_step(mode.name, step)
            if at is None or not step_in_range(self.range_steps, at):
                continue
            if incomplete or self.loaded_all_steps or self._has_all(at, last):
                found.append(step)
        return found

    def _has_all(self, step: int, last_complete: int) -> bool:
        return step <= last_complete or len(self.record.step_workers(step)) >= self.record.num_workers

    def modes(self) -> list[ModeKeys]:
        """Modes that have steps."""
        self.maybe_refresh()
        return [ModeKeys[name] for name in self.record.modes()]

    def mode(self, global_step: int) -> ModeKeys | None:
        """Mode of a step; None when it was not saved."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """Number of a step in its mode; None when it was not saved."""
        return self.mode_modestep(global_step)[1]

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys, int] | tuple[None, None]:
        """Mode of a step and its number in it."""
        self.maybe_refresh()
        found = self.record.mode_step(global_step)
        return (None, None) if found is None else (ModeKeys[found[0]], found[1])

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """The global step that a mode counts as `mode_step`; None when it was not saved."""
        if mode is ModeKeys.GLOBAL:
            return mode_step
        self.maybe_refresh()
        return self.record.global_step(mode.name, mode_step)

    def last_step(self, mode: ModeKeys = ModeKeys.GLOBAL) -> int | None:
        """The last step seen; None when there is none."""
        steps = self._select(self.record.steps(mode.name), mode, incomplete=True)
        return steps[-1] if steps else None

    def has_passed_step(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> StepState:
        """Whether a step is there, is missing for good, or may come."""
        self.maybe_refresh()
        return self.state_of(step, mode)

    def state_of(self, step: int, mode: ModeKeys) -> StepState:
        """As `has_passed_step`, without looking for new data."""
        seen = self._select(self.record.steps(mode.name), mode, incomplete=True)
        place = bisect_left(seen, step)
        if place == len(seen):
            return StepState.UNAVAILABLE if self.loaded_all_steps else StepState.NOT_YET_AVAILABLE
        at = self.global_step(mode, seen[place])
        complete = self.loaded_all_steps or (at is not None and self._has_all(at, self.last_complete_step))
        if not complete:
            return StepState.NOT_YET_AVAILABLE
        return StepState.AVAILABLE if seen[place] == step else StepState.UNAVAILABLE

    def wait_for_steps(self, required_steps: Iterable[int], mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        """Return when all these steps are there.

        Raises
        ------
        StepUnavailable
            If one was passed without being saved.
        NoMoreData
            If training ended before one.
        """
        for step in required_steps:
            while True:
                if not self.loaded_all_steps:
                    self.refresh_data()
                state = self.state_of(step, mode)
                if state is StepState.AVAILABLE:
                    break
                if state is StepState.UNAVAILABLE:
                    last = self.last_step(mode)
                    if last is None or step > last:
                        raise NoMoreData(step, mode, -1 if last is None else last)
                    raise StepUnavailable(step, mode)
                time.sleep(_POLL_S)

    # -- tensors -----------------------------------------------------------------------------------

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Sequence[str] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """Names of tensors: at a step, in a mode, that match a pattern or belong to a collection.

        Parameters
        ----------
        show_prefixed_tensors
            Kept for the predecessor's scripts; reductions are no tensors of their own.

        Raises
        ------
        SMDebugValueError
            If both `regex` and `collection` are given, or `regex` is no regular expression.
        """
        del show_prefixed_tensors
        if regex is not None and collection is not None:
            raise SMDebugValueError("tensor_names takes regex or collection, not both.")
        self.maybe_refresh()
        names = self._names_at(step, mode)
        if regex is not None:
            patterns = _compiled(regex)
            names = [name for name in names if any(one.search(name) for one in patterns)]
        elif collection is not None:
            names = [name for name in names if self._belongs(name, collection)]
        if not names:
            self.logger.warning("Trial %s has no tensors like that.", self.name)
        return names

    def _names_at(self, step: int | None, mode: ModeKeys) -> list[str]:
        if step is None:
            if self.range_steps is None:
                return self.record.names(mode.name)
            seen = self._select(self.record.steps(), ModeKeys.GLOBAL, incomplete=True)
            return sorted({name for one in seen for name in self.record.names(mode.name, one)})
        at = self.global_step(mode, step)
        inside = at is not None and step_in_range(self.range_steps, at)
        return self.record.names(mode.name, at) if inside else []

    def _belongs(self, name: str, collection: str | Collection) -> bool:
        if isinstance(collection, Collection):
            if collection.chooses(name):
                return True
            collection = collection.name
        return collection in self.record.collections_of(name)

    def has_tensor(self, tname: str) -> bool:
        """Whether a tensor was saved so far."""
        self.maybe_refresh()
        return tname in self.record.names()

    def tensor(self, tname: str) -> Tensor:
        """The tensor of this name.

        Raises
        ------
        TensorUnavailable
            If it was not saved so far.
        """
        if not self.has_tensor(tname):
            raise TensorUnavailable(tname)
        return self._tensors.setdefault(tname, Tensor(tname, self, self.cache))

    def refresh_tensor(self, tname: str, steps: Iterable[int] | None = None) -> None:
        """Look for new data, of one tensor or all."""
        del steps
        self.maybe_refresh(tname)

    def workers(self) -> list[str]:
        """Workers that saved something, by name."""
        self.maybe_refresh()
        return self.record.workers

    # -- collections -------------------------------------------------------------------------------

    def collections(self) -> dict[str, Collection]:
        """Collections by name."""
        self.maybe_refresh()
        found = {name: _as_collection(facts) for name, facts in self.record.collections.items()}
        for name in self.record.names():
            for one in self.record.collections_of(name):
                if one in found:
                    found[one].add_tensor_name(name)
        return {**found, **{name: one for name, one in self._made.items() if name not in found}}

    def collection(self, coll_name: str) -> Collection:
        """The collection of this name; an empty one when there is none."""
        found = self.collections().get(coll_name)
        return found if found is not None else self._made.setdefault(coll_name, Collection(coll_name))

    def inputs(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[str]:
        """Names of the inputs of the model at a step."""
        return self._names_of(CollectionKeys.INPUTS, step, mode)

    def labels(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[str]:
        """Names of the labels at a step."""
        return self._names_of(CollectionKeys.LABELS, step, mode)

    def predictions(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[str]:
        """Names of the predictions at a step."""
        return self._names_of(CollectionKeys.PREDICTIONS, step, mode)

    def _names_of(self, what: str, step: int, mode: ModeKeys) -> list[str]:
        self.maybe_refresh()
        return [
            name
            for name in self._names_at(step, mode)
            if match_inc(name, [f"^{what}"]) or what in self.record.collections_of(name)
        ]


def _as_collection(facts: CollectionFacts) -> Collection:
    return Collection(
        facts.name,
        include_regex=list(facts.include_regex),
        tensor_names=facts.tensor_names,
        reduction_config=ReductionConfig.from_dict(facts.reduction_config),
        save_config=None if facts.save_config is None else SaveConfig.from_dict(facts.save_config),
        save_histogram=facts.save_histogram,
    )


def _checked(range_steps: Sequence[int | None] | None) -> tuple[int | None, int | None] | None:
    if range_steps is None:
        return None
    if len(range_steps) != 2:
        raise SMDebugValueError(f"range_steps is {range_steps!r}; expected a first step and an end.")
    first, end = range_steps
    if first is not None and end is not None and first >= end:
        raise SMDebugValueError(f"range_steps is {range_steps!r}; the first step must come before the end.")
    return first, end


def _compiled(regex: str | Sequence[str]) -> list[re.Pattern[str]]:
    try:
        return [re.compile(one) for one in ([regex] if isinstance(regex, str) else regex)]
    except re.error as error:
        raise SMDebugValueError(f"regex {regex!r} is not a regular expression: {error}.") from None


def _number(variable: str, default: float) -> float:
    try:
        return float(os.environ.get(variable, default))
    except ValueError:
        return default
