"""Weights between the steps: changed by somebody else than the optimizer, or not equal on all ranks."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING
from weakref import ref

import torch
from torch.nn.parameter import UninitializedParameter

from tdbg_lab.capture.pytorch.naming import named_parameters
from tdbg_lab.capture.pytorch.values import is_part, sample_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn
    from torch.optim import Optimizer

    from tdbg_lab.capture.notes import Notes
    from tdbg_lab.capture.pytorch.checks.pace import Pace

__all__ = ["WeightWatch"]

_LEAST = 16
"""Values of the smallest weight that is sampled: of fewer, other ones may be alike by chance."""
_SAMPLE_EVERY = 8
"""Steps between two samples, at least."""
_MAX_SAMPLED = 64
"""Weights sampled, the largest first in the order of the model."""
_UNLIKE = 0.5
"""Correlation with what was there before, below which a weight was replaced."""
_MAX_KEPT = 32
"""Samples of each of the first weights that are kept of the past; then every other one goes."""
_FOLLOWED = 4
"""Weights whose past is kept."""
_LEAST_BACK = 3
"""Samples back from which weights have gone back: averages of the last steps are nearer."""
_NEARER = 0.9
"""Distance to a sample of the past, as a share of that to the last one, below which it is one's past: what
else is done to weights leaves the last one nearest. An average with a long memory stands at 0.2 to 0.6 of
where it lags behind, and at almost 0.9 where steps are mostly noise that comes back to it."""
_LEFT_ALONE = 24
"""Steps without a change from outside before one that goes back is told: methods that set weights by
themselves do so again and again."""
_MAX_HARMLESS = 8
"""Changes from outside that left the weights alike, after which only one in as many is looked at."""
_MAX_WRONG = 4
"""Wrong guesses of what an optimizer changes, after which it is no longer guessed."""
_DIGESTED = 8
_version = attrgetter("_version")


class _Sampled:
    """One weight, with some of its values as they were at first and not long ago."""

    __slots__ = ("first", "name", "past", "sample", "value")

    def __init__(self, name: str, value: torch.Tensor) -> None:
        self.name = name
        self.value = ref(value)
        self.first = self.sample = sample_of(value)
        self.past: list[tuple[int, torch.Tensor]] = []
        """Steps and samples, the oldest first; followed weights only."""

    def keep(self) -> None:
        """Keep the values of now."""
        value = self.value()
        if value is not None:
            self.sample = sample_of(value)

    def follow(self, step: int) -> None:
        """Remember the last sample."""
        self.past.append((step, self.sample))
        if len(self.past) > _MAX_KEPT:  # the older half becomes thinner
            half = len(self.past) // 2
            self.past = self.past[:half:2] + self.past[half:]

    def went_back(self, step: int) -> int:
        """Steps that the values of now lie back in their own past; 0 when the last ones are nearest."""
        value = self.value()
        if value is None or len(self.past) <= _LEAST_BACK:
            return 0
        now = sample_of(value)
        kept = [sample for _, sample in self.past]
        if any(one.shape != now.shape for one in kept):
            return 0
        far = (torch.stack(kept) - now).norm(dim=1).tolist()
        nearest = min(range(len(far)), key=far.__getitem__)
        old = nearest < len(far) - _LEAST_BACK and far[nearest] < _NEARER * far[-1]
        return step - self.past[nearest][0] if old else 0

    def likeness(self) -> float:
        """Correlation of the values of now with those kept; 1.0 when there is nothing to compare."""
        value = self.value()
        if value is None:
            return 1.0
        now, before = (some.cpu().double() for some in (sample_of(value), self.sample))
        if now.shape != before.shape:
            return 0.0
        now, before = now - now.mean(), before - before.mean()
        scale = float(before.norm())
        if scale == 0.0:
            return 1.0
        return float((now * before).sum()) / (float(now.norm()) * scale or 1.0)

    def is_back(self) -> bool:
        """Whether all values are again exactly what they were at first, having been others."""
        value = self.value()
        if value is None or torch.equal(self.first, self.sample):
            return False
        return torch.equal(sample_of(value), self.first)


class WeightWatch:
    """Weights of the models, looked at where nobody should touch them: between two steps.

    PyTorch counts the changes of each. How many an optimizer makes in a step is measured in steps that are
    looked at, and taken for granted in the others: so one look at a step is enough to see those of others.
    """

    def __init__(self, notes: Notes, pace: Pace, *, several: bool) -> None:
        self._notes = notes
        self._pace = pace
        self._several = several
        self._sampled: list[_Sampled] = []
        self._digested: list[ref[torch.Tensor]] = []
        self._steps = self._sample_at = 0
        self._versions: dict[int, int] = {}
        """Changes when the last step of each optimizer was over, measured or guessed."""
        self._before: dict[int, int] = {}
        """The same when it was about to step."""
        self._made: dict[int, int] = {}
        """Changes that each made in a step when it was measured."""
        self._guessed: set[int] = set()
        """Optimizers whose last step was not measured."""
        self._wrong = 0
        self._harmless = 0
        self._touched = 0
        """Step before which the weights were last changed from outside."""
        self._told: dict[int, set[str]] = {}
        """Names of what was noted before the last step of each optimizer; those of others are of now."""

    def find(self, models: Sequence[tuple[str, nn.Module]]) -> None:
        """Look the weights up anew: the models changed."""
        values: list[tuple[str, torch.Tensor]] = []
        for prefix, model in models:
            for name, value in named_parameters(model):
                if isinstance(value, UninitializedParameter):
                    continue
                if value.requires_grad and value.is_floating_point() and not is_part(value):
                    values.append((f"{prefix}.{name}" if prefix else name, value))
        known = {one.name: one for one in self._sampled}
        large = [(name, value) for name, value in values if value.ndim > 1 and value.numel() >= _LEAST]
        self._sampled = [
            old if (old := known.get(name)) is not None and old.value() is value else _Sampled(name, value)
            for name, value in large[:_MAX_SAMPLED]
        ]
        stride = max(1, len(values) // _DIGESTED)
        self._digested = [ref(value) for _, value in values[::stride][:_DIGESTED] if value.is_cpu]

    def rest(self, index: int, optimizer: Optimizer) -> bool:
        """Whether the weights are what the last step left, and this one need not be looked at.

        It is taken for granted then that the optimizer makes it as usual.
        """
        made = self._made.get(index)
        if made is None or self._several or self._wrong >= _MAX_WRONG:
            return False
        if self._versions[index] != _sum(optimizer):
            return False
        self._versions[index] += made
        self._guessed.add(index)
        self._steps += 1
        return True

    def before_step(self, index: int, optimizer: Optimizer) -> None:
        """The optimizer is about to step: look whether the weights are what its last step left."""
        told: set[str] = set()
        known, now = self._versions.get(index), _sum(optimizer)
        self._before[index] = now
        if known is not None and known != now:
            told = self._judge_all(guessed=index in self._guessed)
            self._touched = self._steps
        for name in self._told.pop(index, set()) - told:
            self._notes.clear(name)
        if told:
            self._told[index] = told

    def _judge_all(self, *, guessed: bool) -> set[str]:
        """Somebody changed weights, unless it was guessed wrong; the names of what was noted."""
        if not guessed and not self._worth_looking():
            return set()
        told: set[str] = set()
        for one in self._sampled:
            told |= self._judge(one)
        if not told and self._steps - self._touched >= _LEFT_ALONE:
            told = self._note_back()
        if told:
            self._harmless = 0
        elif guessed:
            self._wrong += 1
        else:
            self._harmless += 1
        if told or guessed:
            self._pace.wake()
        return told

    def _judge(self, one: _Sampled) -> set[str]:
        """Note that a weight was replaced, or set back; the names of what was noted."""
        likeness, module = one.likeness(), one.name.rpartition(".")[0]
        found = {}
        if likeness < _UNLIKE:
            found[f"replaced/{one.name}"] = 1.0 - likeness
        elif one.is_back():
            found[f"set_back/{one.name}"] = 1.0 - likeness
        for name, value in found.items():
            self._notes.set(name, value, module=module)
        if found:
            one.keep()
        return set(found)

    def _note_back(self) -> set[str]:
        """Note that all followed weights lie where they were some time ago; the name of what was noted."""
        followed = self._sampled[:_FOLLOWED]
        back = [one.went_back(self._steps) for one in followed]
        if not back or not all(back):
            return set()
        for one in followed:
            one.keep()
            one.past.clear()
        self._notes.set("went_back", float(min(back)))
        return {"went_back"}

    def after_step(self, index: int, optimizer: Optimizer) -> None:
        """The optimizer has stepped."""
        made = self._made.get(index)
        if made is None or self._pace.looking or self._wrong >= _MAX_WRONG:
            now = self._versions[index] = _sum(optimizer)
            self._made[index] = now - self._before.get(index, now)
            self._guessed.discard(index)
        else:
            self._versions[index] = self._before[index] + made
            self._guessed.add(index)
        if self._steps >= self._sample_at:
            self._sample_at = self._steps + _SAMPLE_EVERY
            for one in self._sampled:
                one.keep()
            for one in self._sampled[:_FOLLOWED]:
                one.follow(self._steps)
        self._steps += 1
        if self._several and self._digested:
            self._notes.set("weights", self._digest())

    def _worth_looking(self) -> bool:
        return self._harmless < _MAX_HARMLESS or self._harmless % _MAX_HARMLESS == 0

    def _digest(self) -> float:
        """A number that is the same on ranks whose weights are the same."""
        total = 0.0
        for place, weak in enumerate(self._digested, start=1):
            value = weak()
            if value is not None:
                some = sample_of(value).double()
                total += place * float(some @ torch.arange(1, len(some) + 1, dtype=torch.float64))
        return total


def _sum(optimizer: Optimizer) -> int:
    """Grows with every change of a parameter that PyTorch sees."""
    total = 0
    for group in optimizer.param_groups:
        total += sum(map(_version, group["params"]))
    return total
