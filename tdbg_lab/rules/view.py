"""What a rule sees of a run: everything up to the step it checks, nothing after it."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from tdbg_lab.records import Kind, Mode
from tdbg_lab.rules.frame import Frame
from tdbg_lab.rules.kinds import Kinds
from tdbg_lab.rules.layout import Layout, Plan
from tdbg_lab.rules.memo import remembered
from tdbg_lab.rules.recent import Recent
from tdbg_lab.rules.sample_log import NO_SAMPLES
from tdbg_lab.rules.scalar_log import ScalarLog
from tdbg_lab.rules.series import NO_SCALARS, Scalars
from tdbg_lab.rules.span_log import SpanLog
from tdbg_lab.stats import empty_block
from tdbg_lab.store.info import RunInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import Finding, StatsBlock, TensorKey
    from tdbg_lab.rules.activity import Activity
    from tdbg_lab.rules.needs import Needs
    from tdbg_lab.rules.raw_values import RawValues
    from tdbg_lab.rules.sample_log import Samples
    from tdbg_lab.rules.span_log import PhaseTimes, Spans
    from tdbg_lab.store.loaders import LoaderFacts

__all__ = ["RunView"]


class RunView:
    """The past of a run, in bounded memory: scalars for long, statistics for a number of recorded steps.

    Parameters
    ----------
    keep
        Recorded steps of each kind of tensor that are kept.
    per_rank
        Keep what each rank wrote by itself, too.
    raw
        Where raw values are read from; None to leave them alone.
    """

    def __init__(self, keep: int = 64, *, per_rank: bool = False, raw: RawValues | None = None) -> None:
        self.opened_ns = time.time_ns()
        """When it was made, by the clock of the wall."""
        self.step = -1
        """The step that is checked."""
        self.active: Finding | None = None
        """The open finding of the rule that is asked, or None: for thresholds with hysteresis."""
        self.open: tuple[Finding, ...] = ()
        """Open findings of all rules, those of earlier rules at this step included."""
        self.info = RunInfo(id="", name="", created_ns=0)
        """What the run says about itself: framework, hyper-parameters, world size, ..."""
        self.activity: Activity | None = None
        """What training and its machines did; None when no rule asked for it (`Needs.activity`)."""
        self._keep = keep
        self._per_rank = per_rank
        self._raw = raw
        self._keys: dict[str, TensorKey] = {}
        self.places: dict[str, int] = {}
        """Place of each tensor in the order of first appearance, by name."""
        self._seen: Layout | None = None
        self._recent = Recent(keep)
        self._ranks: dict[int, Recent] = {}
        self._scalars: dict[Mode, ScalarLog] = {}
        self._plans: dict[tuple[int, ...], Plan] = {}

    def expect(self, keys: Iterable[TensorKey]) -> None:
        """Tell the order of tensors that are about to come: they count as seen once they did."""
        self.places = {key.name: place for place, key in enumerate(keys)}

    def tensors(self, *kinds: Kind, regex: str | None = None) -> list[TensorKey]:
        """Tensors seen so far, in the order of their first appearance."""
        return _chosen(self.seen, kinds, regex)

    @property
    def seen(self) -> Layout:
        """All of them as a layout: the same object until another tensor is seen."""
        if self._seen is None:
            self._seen = Layout(tuple(sorted(self._keys.values(), key=lambda key: self.places[key.name])))
        return self._seen

    def has(self, needs: Needs) -> bool:
        """Whether anything was recorded so far that a rule needs."""
        return _has(self.seen, needs)

    @property
    def modes(self) -> list[Mode]:
        """Modes that rules judge by: train where there is any, else what there is."""
        found = self._recent.modes
        return [Mode.TRAIN] if Mode.TRAIN in found else found

    @property
    def kinds(self) -> Kinds:
        """Kinds of what was recorded at the checked step."""
        return Kinds(self._kinds_of(self.modes), self._kinds_of(self._recent.modes))

    def _kinds_of(self, modes: Iterable[Mode]) -> frozenset[Kind]:
        return frozenset().union(*(self.frame(mode).kinds for mode in modes))

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that have written something so far, ascending."""
        return tuple(sorted(self._ranks))

    def frame(self, mode: Mode = Mode.TRAIN) -> Frame:
        """What was recorded at the checked step; a frame without rows when nothing was."""
        return self.at(self.step, mode) or Frame(self.step, mode, 0, (), empty_block())

    def at(self, step: int, mode: Mode = Mode.TRAIN) -> Frame | None:
        """What was recorded at a step up to the checked one; None when nothing was, or is kept no more."""
        return self._recent.at(mode, step) if step <= self.step else None

    def frames(self, kind: Kind, n: int = 1, mode: Mode = Mode.TRAIN) -> list[Frame]:
        """The last `n` steps at which tensors of a kind were recorded, oldest first.

        Fewer when there are fewer, or when `Needs.steps` asked for fewer.
        """
        return self._recent.last(mode, kind, n, self.step)

    def rank_frames(self, kind: Kind, n: int = 1, mode: Mode = Mode.TRAIN) -> dict[int, list[Frame]]:
        """Like `frames`, of each rank by itself; ranks without any are left out.

        Kept when a rule asked for it (`Needs.per_rank`); empty else.
        """
        found = {rank: recent.last(mode, kind, n, self.step) for rank, recent in sorted(self._ranks.items())}
        return {rank: frames for rank, frames in found.items() if frames}

    def raw(
        self, name: str, step: int | None = None, mode: Mode = Mode.TRAIN, rank: int | None = None
    ) -> NDArray[Any] | None:
        """Values of a tensor at a step, the checked one by default, as they were recorded.

        Several ranks and micro-steps are joined along the first axis. None when only statistics were
        kept, when they take more than `tdbg_lab.store.limits.MAX_RULE_RAW_BYTES`, or when no rule
        asked for raw values (`Needs.raw`).
        """
        if self._raw is None:
            return None
        return self._raw.get(name, self.step if step is None else step, mode, rank)

    def scalars(self, name: str, mode: Mode = Mode.TRAIN) -> Scalars:
        """A loss, a logged scalar or an optimizer fact over steps; empty when there is none."""
        log = self._scalars.get(mode)
        return NO_SCALARS if log is None else log.get(name, self.step)

    def value(self, name: str, step: int | None = None, mode: Mode = Mode.TRAIN) -> float | None:
        """Value of a scalar at a step, the checked one by default; None when it was not recorded there."""
        series = self.scalars(name, mode)
        found = series.values[series.steps == (self.step if step is None else step)]
        return float(found[0]) if len(found) else None

    def losses(self, mode: Mode = Mode.TRAIN) -> list[str]:
        """Names of training losses: of loss modules, else scalars that the user logged as a loss."""
        for kinds, pattern in (((Kind.LOSS,), ""), ((Kind.SCALAR, Kind.CUSTOM), _LOSS_NAME)):
            known = self._scalars.get(mode, ())
            names = [key.name for key in self.tensors(*kinds, regex=pattern) if key.name in known]
            if names:
                return names
        return []

    def samples(self, metric: str, device: str, rank: int = 0) -> Samples:
        """The last samples of a metric of one device of one machine; empty where there are none.

        This and the next three go as far as the checked step, and on about once a second. Nothing is
        there unless a rule asked for it (`Needs.activity`).
        """
        return NO_SAMPLES if self.activity is None else self.activity.samples.recent(metric, device, rank)

    def spans(self, rank: int | None = None) -> Spans:
        """The last phases one by one, of a rank, by default of the lowest one."""
        return (self.activity.spans if self.activity else SpanLog()).spans(rank)

    def phase_times(self, rank: int | None = None) -> PhaseTimes:
        """The last complete steps of a rank with the time of each phase."""
        return (self.activity.spans if self.activity else SpanLog()).times(rank)

    @property
    def loaders(self) -> tuple[LoaderFacts, ...]:
        """How the data loaders are set that training takes its batches from."""
        return self.activity.loaders if self.activity else ()

    def put(
        self,
        mode: Mode,
        step: int,
        time_ns: int,
        parts: Sequence[tuple[tuple[TensorKey, ...], StatsBlock]],
        ranks: Sequence[int] = (),
    ) -> None:
        """Add what was written of a step; more of the same step merges with what is there.

        `ranks` says who wrote each of the parts: rank 0 when it is not given.
        """
        frame = self._merged(self._recent, mode, step, time_ns, parts)
        if mode not in self._scalars:
            self._scalars[mode] = ScalarLog(mode)
        self._scalars[mode].put(frame)
        writers = sorted(set(ranks)) or [0]
        for rank in writers:
            self._ranks.setdefault(rank, Recent(self._keep))
        for rank in writers if self._per_rank else ():
            if len(self._ranks) == 1:  # what all wrote is what this one wrote
                self._ranks[rank].put(frame)
            else:
                own = [part for part, of in zip(parts, ranks, strict=True) if of == rank] if ranks else parts
                self._merged(self._ranks[rank], mode, step, time_ns, own)

    def _merged(
        self,
        recent: Recent,
        mode: Mode,
        step: int,
        time_ns: int,
        parts: Sequence[tuple[tuple[TensorKey, ...], StatsBlock]],
    ) -> Frame:
        known = recent.at(mode, step)
        pieces = [*([(known.keys, known.block)] if known else ()), *parts]
        plan = self._plan([keys for keys, _ in pieces])
        block = plan.apply([block for _, block in pieces])
        frame = Frame.laid_out(step, mode, time_ns, plan.layout, block)
        recent.put(frame)
        return frame

    def _plan(self, parts: Sequence[tuple[TensorKey, ...]]) -> Plan:
        """How to join these writes, in the order of first appearance: sealed segments are sorted by name."""
        which = tuple(map(id, parts))  # a plan keeps its parts, so no other has the same ids
        plan = self._plans.get(which)
        if plan is None:
            for key in (key for part in parts for key in part):
                if key.name not in self._keys:
                    self._keys[key.name] = key
                    self._seen = None
                    self.places.setdefault(key.name, len(self.places))
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            plan = self._plans[which] = Plan(parts, self.places)
        return plan


@remembered
def _chosen(seen: Layout, kinds: tuple[Kind, ...], regex: str | None) -> list[TensorKey]:
    pattern = re.compile(regex or "")
    return [key for key in (seen.keys[row] for row in seen.rows(kinds)) if pattern.search(key.name)]


@remembered
def _has(seen: Layout, needs: Needs) -> bool:
    return any(needs.match(key) for key in seen.keys)


_MAX_PLANS = 256
_LOSS_NAME = r"(?i)^(train(ing)?[_/. ])?loss$"
