"""A profile that a configuration asks for in advance."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tdbg_lab.config.strict import StrictModel

__all__ = ["MAX_PROFILED_SECONDS", "MAX_PROFILED_STEPS", "PlannedProfile"]

MAX_PROFILED_STEPS = 1000
MAX_PROFILED_SECONDS = 600.0


class PlannedProfile(StrictModel):
    """What to record, when, and for how long: some steps, or some seconds."""

    start: Annotated[int, Field(ge=0)] | None = None
    """Step to begin with; None: as soon as possible."""
    start_s: Annotated[float, Field(ge=0)] | None = None
    """Time to begin at, s since 1970; None: as soon as possible."""
    steps: Annotated[int, Field(ge=1, le=MAX_PROFILED_STEPS)] | None = None
    seconds: Annotated[float, Field(ge=0.05, le=MAX_PROFILED_SECONDS)] | None = None
    operators: bool = True
    """Record operators, and kernels of a GPU."""
    python: Literal["sampling", "calls", "off"] = "sampling"
    """Record Python functions: by samples (pyinstrument), every call (cProfile), or not."""

    @model_validator(mode="after")
    def _is_one_window(self) -> PlannedProfile:
        if (self.steps is None) == (self.seconds is None):
            raise ValueError("a profile has a length in steps or in seconds")
        if not self.operators and self.python == "off":
            raise ValueError("a profile records operators or Python functions")
        return self
