"""Which tensors belong to which collections, and which collections are due: bit masks."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.interval import AutoInterval
from tdbg_lab.config.sagemaker.names import sagemaker_names
from tdbg_lab.nearest import nearest
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.config import CaptureConfig, CollectionConfig, SaveSchedule
    from tdbg_lab.records import Kind

__all__ = ["Due", "Membership", "Plan"]

_log = logging.getLogger("tdbg_lab")


@dataclass(frozen=True, slots=True)
class Membership:
    """The collections of one tensor."""

    mask: int
    """Bit i is set when it belongs to collection i."""
    names: tuple[str, ...]
    raw_mask: int
    """Those of them that want raw values."""
    stats_mask: int
    """Those of them that want statistics."""
    sample_rows: int | None
    """Rows of raw values to keep, the most that any of them asks for."""


class Plan:
    """The collections of a configuration, matched against names."""

    def __init__(self, config: CaptureConfig) -> None:
        self.config = config
        self.collections: tuple[CollectionConfig, ...] = config.collections
        self._include = [[re.compile(one) for one in c.include] for c in config.collections]
        self._exclude = [[re.compile(one) for one in c.exclude] for c in config.collections]
        self._unmatched: dict[str, None] = {
            pattern: None
            for c in config.collections
            for pattern in (*c.include, *c.tensors, *(one for one in c.modules if isinstance(one, str)))
        }
        self._seen: dict[str, None] = {}
        self._modules: dict[int, str] = {}

    def place_modules(self, paths: Mapping[int, str]) -> None:
        """Tell the plan the paths of module objects, by their ``id``."""
        self._modules.update(paths)

    def membership(self, name: str, kind: Kind, path: str = "", module: Any = None) -> Membership:
        """The collections that a tensor belongs to; ``mask`` 0 when it is in none."""
        if len(self._seen) < 10_000:
            self._seen[name] = None
        mask = raw = stats = 0
        names = []
        rows: list[int | None] = []
        for index, collection in enumerate(self.collections):
            if not self._belongs(index, name, kind, path, module):
                continue
            bit = 1 << index
            mask |= bit
            names.append(collection.name)
            if collection.values != "stats":
                raw |= bit
                rows.append(collection.sample_rows or self.config.sample_rows)
            if collection.values != "raw":
                stats |= bit
        most = None if None in rows or not rows else max(one for one in rows if one is not None)
        return Membership(mask, tuple(names), raw, stats, most)

    def mask_of(self, *kinds: Kind) -> int:
        """The collections that may hold tensors of these kinds."""
        names = {kind.value for kind in kinds}
        return sum(
            1 << index
            for index, collection in enumerate(self.collections)
            if not collection.kinds or names.intersection(collection.kinds)
        )

    def wants_module(self, path: str, module: Any) -> bool:
        """Whether a collection chooses this module itself, so that it counts though it has children."""
        for index, collection in enumerate(self.collections):
            chosen = [
                one if isinstance(one, str) else self._modules.get(id(one)) for one in collection.modules
            ]
            if path in chosen:
                return True
            outputs = (f"activation/{path}", f"input/{path}")
            if any(name in collection.tensors for name in outputs):
                return True
            if any(
                r.search(one)
                for r in self._include[index]
                for name in outputs
                for one in self._names(index, name)
            ):
                return True
            if collection.predicate is not None and collection.predicate(outputs[0], module):
                return True
        return False

    def _belongs(self, index: int, name: str, kind: Kind, path: str, module: Any) -> bool:
        collection = self.collections[index]
        if collection.kinds and kind.value not in collection.kinds:
            return False
        if any(pattern.search(name) for pattern in self._exclude[index]):
            return False
        if not collection.chooses:
            return True
        chosen = self._chosen(index, name)  # both are asked: each notes what it has matched
        return self._below(collection, path, name, module) or chosen

    def _names(self, index: int, name: str) -> tuple[str, ...]:
        """The names that patterns are searched in."""
        return (name, *sagemaker_names(name)) if self.collections[index].sagemaker_names else (name,)

    def _chosen(self, index: int, name: str) -> bool:
        hit = False
        names = self._names(index, name)
        for pattern in self._include[index]:
            if any(pattern.search(one) for one in names):
                self._unmatched.pop(pattern.pattern, None)
                hit = True
        if name in self.collections[index].tensors:
            self._unmatched.pop(name, None)
            hit = True
        return hit

    def _below(self, collection: CollectionConfig, path: str, name: str, module: Any) -> bool:
        for chosen in collection.modules:
            root = chosen if isinstance(chosen, str) else self._modules.get(id(chosen))
            if root is not None and (path == root or path.startswith(f"{root}.") or root == ""):
                self._unmatched.pop(root, None)
                return True
        return collection.predicate is not None and bool(collection.predicate(name, module))

    def warn_unmatched(self) -> None:
        """Say once which patterns have matched nothing so far, with the nearest names."""
        for pattern in self._unmatched:
            plain = re.sub(r"[\\^$.*+?()\[\]|]+", " ", pattern).strip()
            near = nearest(plain, self._seen, most=3, cutoff=0.4)
            _log.warning(
                "tdbg-lab: no tensor matches %r so far%s.",
                pattern,
                f"; the nearest names are {', '.join(near)}" if near else "",
            )
        self._unmatched.clear()


@dataclass(slots=True)
class _Pass:
    """A pass over data in eval or predict mode, seen by one schedule."""

    step: int = -1
    due: bool = False
    last_saved: int | None = None


@dataclass(slots=True)
class Due:
    """Which collections are saved in a forward: a mask, by step, mode and micro-step."""

    plan: Plan
    _groups: dict[Mode, list[tuple[SaveSchedule, int]]] = field(default_factory=dict)
    _passes: dict[tuple[Mode, int], _Pass] = field(default_factory=dict)
    train: int = 0
    """The mask of train steps from `first` on, before `until`: not computed anew at each of them."""
    first: int = 0
    until: int = 0
    every: int = 0
    """The distance of saved steps, where a collection does not say another."""
    interval: AutoInterval | None = None
    """What chooses it, where nobody says it."""

    def __post_init__(self) -> None:
        every = self.plan.config.save_every
        if every == "auto":
            self.interval = AutoInterval(self.plan.config.budget)
            every = self.interval.every
        self._save_every(every)

    def choose(self, took_ns: int, capture_ns: int, *, saved: bool, steps: int) -> bool:
        """Choose the distance anew, see `AutoInterval.add`; return whether it is another now."""
        if self.interval is None or not self.interval.add(took_ns, capture_ns, saved=saved, steps=steps):
            return False
        self._save_every(self.interval.every)
        return True

    def _save_every(self, every: int) -> None:
        self.every = every
        self.first = self.until = 0  # what is known of the steps ahead holds no longer
        self._passes.clear()
        for mode in Mode:
            grouped: dict[SaveSchedule, int] = {}
            for index, collection in enumerate(self.plan.collections):
                schedule = collection.schedule(mode, every)
                grouped[schedule] = grouped.get(schedule, 0) | 1 << index
            self._groups[mode] = list(grouped.items())

    def mask(self, step: int, mode: Mode, micro: int) -> int:
        """The collections that are due; in train mode `micro` does not matter."""
        due = 0
        if mode is Mode.TRAIN:
            if self.first <= step < self.until:
                return self.train
            for schedule, bits in self._groups[mode]:
                if schedule.saves(step):
                    due |= bits
            self.train, self.first = due, step
            self.until = min((one.until(step) for one, _ in self._groups[mode]), default=step + 1)
            return due
        for index, (schedule, bits) in enumerate(self._groups[mode]):
            seen = self._passes.setdefault((mode, index), _Pass())
            if self._saves_pass(schedule, seen, step, micro):
                due |= bits
        return due

    @staticmethod
    def _saves_pass(schedule: SaveSchedule, seen: _Pass, step: int, micro: int) -> bool:
        every = schedule.every
        if seen.step != step:
            far = every is not None and (seen.last_saved is None or step - seen.last_saved >= every)
            seen.due = not schedule.off and (step in schedule.steps or (far and schedule.covers(step)))
            seen.step = step
            if seen.due:
                seen.last_saved = step
        return seen.due and micro % (every or 1) == 0
