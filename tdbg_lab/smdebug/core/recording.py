"""Writes what a hook saves into a run directory of tdbg-lab.

A step of the run is a *global* step: train and eval steps share one axis, in the order of time, as
the predecessor counts them. Beside its tensors a saved step has two rows of its own:
``smdebug/step/<MODE>``, whose value is the step counted in that mode, and ``smdebug/raw``, the
number of raw values. They come last, so a step that has them is complete.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.background import start_thread
from tdbg_lab.capture.control import ControlWatch, SharedControlWatch
from tdbg_lab.capture.guard import STORE
from tdbg_lab.capture.recorder import Recorder
from tdbg_lab.errors import TrainingStopped
from tdbg_lab.records import Kind, Mode, RunStatus, TensorKey
from tdbg_lab.smdebug.core.modes import ModeKeys
from tdbg_lab.smdebug.core.reductions import get_numpy_reduction, get_reduction_tensor_name
from tdbg_lab.stats.block import scalar_block, take
from tdbg_lab.store import RankWriter, create_run, join_run
from tdbg_lab.store.attempts import cut_other_ranks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from tdbg_lab.capture.guard import Guard
    from tdbg_lab.records import StatsBlock
    from tdbg_lab.smdebug.core.saving import Decision

__all__ = ["MARK", "RAW_COUNT", "SHAPE", "Recording", "follows_from_row", "rank", "world_size"]

MARK = "smdebug/step/"
RAW_COUNT = "smdebug/raw"
SHAPE = "smdebug/shape/"
_FORMAT = 1
_STORE_MODES = {ModeKeys.EVAL: Mode.EVAL, ModeKeys.PREDICT: Mode.PREDICT}
_FROM_ROWS = frozenset({"min", "max", "mean", "std", "variance", "sum", "l1", "l2"})
_ABS_FROM_ROWS = frozenset({"max", "mean", "sum", "l1", "l2"})


def rank() -> int:
    """Number of this worker."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return int(os.environ.get("RANK", "0") or 0)


def world_size() -> int:
    """Number of workers."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_world_size())
    return int(os.environ.get("WORLD_SIZE", "1") or 1)


def follows_from_row(reduction: str, absolute: bool) -> bool:
    """Whether a reduction follows exactly from the statistics every saved tensor has anyway."""
    return reduction in (_ABS_FROM_ROWS if absolute else _FROM_ROWS)


class Recording:
    """One run directory, seen by the hook that fills it.

    Parameters
    ----------
    plan
        What is saved, kept in ``run.json`` for those who read.
    guard
        What failures end in; its hook shares it.
    ddof
        Degrees of freedom taken off in saved ``std`` and ``variance``: the framework's choice.
    goes_on_at
        The first step, where training goes on from a checkpoint: what an earlier attempt has of it and of
        later ones counts no more.

    Raises
    ------
    StoreError
        If it cannot be made.
    """

    def __init__(
        self,
        path: Path,
        plan: Mapping[str, Any],
        guard: Guard,
        *,
        framework: str,
        ddof: int,
        num_workers: int,
        goes_on_at: int = 0,
    ) -> None:
        number = rank()
        if number:
            folder = join_run(path, number)
        else:
            described = {**plan, "format": _FORMAT, "ddof": ddof, "num_workers": num_workers}
            module = sys.modules.get(framework)
            folder = create_run(
                path,
                framework="pytorch" if framework == "torch" else framework,
                framework_version=str(getattr(module, "__version__", "")),
                world_size=world_size(),
                capture={"smdebug": described},
                if_exists="resume",  # the hook has made sure that there is no run
            )
        self.folder = folder
        self.guard = guard
        self.chief = number == 0
        self._ddof = ddof
        anew = dict.fromkeys(Mode, goes_on_at) if goes_on_at else None
        if anew is not None and not number:
            cut_other_ranks(folder.path, number, anew)
        self._writer = RankWriter(folder.path, number, goes_on_at=anew)
        self._recorder = Recorder(self._writer)
        self.guard.on_problem = self._recorder.add_problem
        self._control = _control(folder.path, num_workers, chief=self.chief)
        self._held: dict[str, tuple[TensorKey, StatsBlock, int]] = {}
        self._raw: dict[str, NDArray[Any]] = {}
        self._pid = os.getpid()
        self.open = True
        start_thread(_warm_up, "tdbg-lab warm-up")

    @property
    def mine(self) -> bool:
        """Whether this process may write: a forked child may not."""
        return self.open and os.getpid() == self._pid

    def hold(
        self,
        key: TensorKey,
        block: StatsBlock,
        row: int,
        values: NDArray[Any] | None,
        decision: Decision,
    ) -> None:
        """Keep a tensor of the current step; one that comes again takes its place.

        Parameters
        ----------
        block, row
            Its statistics.
        values
            A copy of its values, or None when neither they nor a reduction of them are wanted.
        """
        name = key.name
        self._held[name] = (key, block, row)
        single = block.count[row] == 1 and key.dtype in {"float32", "float64", "float16", "bfloat16"}
        if values is not None and decision.raw and not single:
            self._raw[name] = values
        if decision.shape and not decision.raw:
            self._raw[SHAPE + name] = np.array(key.shape, dtype=np.int64)
        if values is not None:
            self._reduce(name, values, decision)

    def _reduce(self, name: str, values: NDArray[Any], decision: Decision) -> None:
        """Reductions that do not follow from the statistics."""
        for reduction, absolute in decision.reductions:
            if not follows_from_row(reduction, absolute):
                with np.errstate(all="ignore"):
                    value = self._of_values(reduction, np.abs(values) if absolute else values)
                key = TensorKey(get_reduction_tensor_name(name, reduction, absolute), Kind.SCALAR)
                self._held[key.name] = (key, scalar_block([float(value)]), 0)

    def _of_values(self, reduction: str, values: NDArray[Any]) -> Any:
        if reduction in {"std", "variance"} and values.size > self._ddof:
            variance = np.var(values, ddof=self._ddof)
            return np.sqrt(variance) if reduction == "std" else variance
        return get_numpy_reduction(reduction, values)

    def end_step(self, step: int, mode: ModeKeys, mode_step: int, *, at: Mode) -> None:
        """Write what is held of a step, and that it is complete."""
        held, self._held = self._held, {}
        raw, self._raw = self._raw, {}
        if not held or not self.mine:
            return
        self.guard.step = step
        self.guard.run(STORE, self._write, held, raw, step, _STORE_MODES.get(mode, at))
        self.guard.run(STORE, self._mark, mode, mode_step, len(raw))

    def _write(
        self,
        held: dict[str, tuple[TensorKey, StatsBlock, int]],
        raw: dict[str, NDArray[Any]],
        step: int,
        mode: Mode,
    ) -> None:
        recorder = self._recorder
        recorder.move_to(step, mode, 0)
        for block, keys, rows in _batches(held):
            if len(block) == 1 and not block.reasons and _plain(block):
                recorder.add_scalar(keys[0], float(block.scalar_values[0]))
            else:
                recorder.add(keys, block if rows == list(range(len(block))) else take(block, np.array(rows)))
        for name, values in raw.items():
            recorder.add_raw(name, values)

    def _mark(self, mode: ModeKeys, mode_step: int, raw: int) -> None:
        recorder = self._recorder
        recorder.add_scalar(TensorKey(MARK + mode.name, Kind.COST), float(mode_step))
        recorder.add_scalar(TensorKey(RAW_COUNT, Kind.COST), float(raw))
        recorder.flush()
        recorder.tell_left_out(self.guard)

    def add_span(self, span: tuple[str, str, int, int], step: int) -> None:
        """Put an interval on the timeline: name, phase, start and duration in ns."""
        name, phase, start_ns, duration_ns = span
        self._writer.append_spans([name], [phase], [start_ns], [duration_ns], [step])

    def poll_stop(self, step: int) -> None:
        """Stop the training when somebody asked for it.

        Raises
        ------
        TrainingStopped
            A stop was requested; the run is closed.
        """
        if not self.mine or self._control is None:
            return
        request = self.guard.run("control", self._control.poll, step + 1)
        if request is None:
            return
        reason = request.reason or "a stop was requested"
        self.guard.run("control", self._control.answer, request, f"stopped at step {step}")
        self.finish(RunStatus.STOPPED, reason, last_step=step)
        raise TrainingStopped(reason, step=step)

    def finish(self, status: RunStatus, error: str | None = None, *, last_step: int) -> None:
        """Write what waits and close the run. Idempotent; a forked child does nothing."""
        if not self.mine:
            return
        self.open = False
        self.guard.run(STORE, self._recorder.flush)
        self._recorder.tell_left_out(self.guard)
        self.guard.run(STORE, self._recorder.close)
        self.guard.run("store.close", self._writer.close)
        if self.chief:
            self.guard.run("store.status", self._say, status, error, last_step)

    def _say(self, status: RunStatus, error: str | None, last_step: int) -> None:
        self.folder.set_status(status, error, last_step=last_step if last_step >= 0 else None)


def _control(path: Path, num_workers: int, *, chief: bool) -> ControlWatch | None:
    """What hears stop requests; None where others train beside and would wait for this worker for ever."""
    if num_workers > 1:
        return SharedControlWatch(path, chief=chief)
    return ControlWatch(path) if world_size() == 1 else None


def _batches(
    held: Mapping[str, tuple[TensorKey, StatsBlock, int]],
) -> list[tuple[StatsBlock, list[TensorKey], list[int]]]:
    """Held tensors, together where their statistics stand in one block."""
    found: dict[int, tuple[StatsBlock, list[TensorKey], list[int]]] = {}
    for key, block, row in held.values():
        _, keys, rows = found.setdefault(id(block), (block, [], []))
        keys.append(key)
        rows.append(row)
    return list(found.values())


def _plain(block: StatsBlock) -> bool:
    return int(block.count[0]) == 1 and not len(block.channel_mean)


def _warm_up() -> None:
    from tdbg_lab.stats import cpu

    cpu.warm_up()
