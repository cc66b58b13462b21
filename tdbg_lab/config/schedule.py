"""At which steps to save."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from tdbg_lab.config.strict import StrictModel, names

__all__ = ["SaveSchedule", "Schedule"]


class SaveSchedule(StrictModel):
    """At which steps to save: every N from `start` on, before `end`, and at listed steps.

    In train mode the steps are optimizer steps. In eval and predict mode a pass over the data is
    saved when N steps have gone by since the last saved pass, and of its batches the first and
    every N-th one.
    """

    every: Annotated[int, Field(ge=1)] | None = None
    """Distance in steps; None means the default of the configuration, or, with `steps`, never."""
    start: Annotated[int, Field(ge=0)] = 0
    """First step, inclusive."""
    end: Annotated[int, Field(ge=0)] | None = None
    """First step that is not saved any more (exclusive); None for no end."""
    steps: Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(names)] = ()
    """Steps saved besides."""
    off: bool = False
    """Never save."""

    def saves(self, step: int) -> bool:
        """Whether `step` is saved in train mode."""
        if self.off:
            return False
        return step in self.steps or (
            self.every is not None and self.covers(step) and (step - self.start) % self.every == 0
        )

    def until(self, step: int) -> int:
        """The next step at which `saves` may answer otherwise than at `step`; ``sys.maxsize`` for none."""
        if self.off:
            return sys.maxsize
        if self.saves(step) and not (self.every == 1 and self.covers(step)):
            return step + 1
        changes = [one for one in self.steps if one > step]
        if self.every is not None:
            if step < self.start:
                changes.append(self.start)
            elif self.covers(step):
                distance = self.every - (step - self.start) % self.every
                changes += [step + distance] if self.every > 1 else []
                changes += [self.end] if self.end is not None else []
        return min(changes, default=sys.maxsize)

    def covers(self, step: int) -> bool:
        """Whether `step` lies between start and end."""
        return step >= self.start and (self.end is None or step < self.end)

    def resolved(self, every: int) -> SaveSchedule:
        """The schedule with an open distance filled in."""
        if self.every is not None or self.steps or self.off:
            return self
        return self.model_copy(update={"every": every})


def _schedule(value: Any) -> Any:
    """Short forms: ``5`` is every 5 steps, ``[0, 100]`` these steps, ``False`` never."""
    if value is False:
        return SaveSchedule(off=True)
    if isinstance(value, int) and value is not True:
        return {"every": value}
    if isinstance(value, list | tuple):
        return {"steps": value}
    return value


Schedule = Annotated[SaveSchedule, BeforeValidator(_schedule)]
