"""Named sets of tensors that share what is saved and when."""

from __future__ import annotations

import re
from collections.abc import Callable  # noqa: TC003 - the model is built from its annotations
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from tdbg_lab.config.schedule import SaveSchedule, Schedule
from tdbg_lab.config.strict import Names, StrictModel, names
from tdbg_lab.records import Kind, Mode

__all__ = ["CollectionConfig", "collections_on_request", "default_collections"]

KindName = Literal[
    "weight",
    "bias",
    "buffer",
    "gradient",
    "activation",
    "input",
    "loss",
    "optimizer",
    "scalar",
    "custom",
    "cost",
]
ModeName = Literal["train", "eval", "predict"]


def _plain_names(value: Any) -> Any:
    """Enum members as their text, so that ``Kind.WEIGHT`` and ``"weight"`` are the same."""
    if isinstance(value, Kind | Mode):
        value = str(value)
    named = names(value)
    return tuple(str(one) if isinstance(one, Kind | Mode) else one for one in named)


def _modules(value: Any) -> Any:
    """A module path, a module object, or several of them."""
    if not isinstance(value, str) and hasattr(value, "named_modules"):
        return (value,)
    return names(value)


class CollectionConfig(StrictModel):
    """A named set of tensors that share what is saved and when.

    A tensor belongs to it when its kind is one of `kinds` (or `kinds` is empty), and it is chosen
    by `include`, `tensors`, `modules` or `predicate` (or none of these is given), and no `exclude`
    matches.
    """

    name: Annotated[str, Field(min_length=1)]
    kinds: Annotated[tuple[KindName, ...], BeforeValidator(_plain_names)] = ()
    include: Names = ()
    """Regular expressions, searched in the tensor's name."""
    sagemaker_names: bool = False
    """Search them in the names that SageMaker Debugger would give, too."""
    exclude: Names = ()
    """Regular expressions; a match keeps a tensor out, whatever else chose it."""
    tensors: Names = ()
    """Exact tensor names."""
    modules: Annotated[tuple[Any, ...], BeforeValidator(_modules)] = ()
    """Module paths or module objects: all their tensors, and those of the modules below them."""
    predicate: Callable[[str, Any], bool] | None = Field(default=None, exclude=True)
    """Called with the tensor's name and its module (or None); not written to the run."""
    save: Schedule | None = None
    """When; None for the `save_every` of the configuration."""
    modes: dict[ModeName, Schedule] = Field(default_factory=dict)
    """Schedules of single modes, instead of `save`; ``False`` switches a mode off."""
    values: Literal["stats", "raw", "both"] = "stats"
    """Statistics, raw values, or both."""
    sample_rows: Annotated[int, Field(ge=1)] | None = None
    """Rows (first dimension) of raw values to keep, evenly spread; None for all of them."""

    @field_validator("include", "exclude")
    @classmethod
    def _compiles(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"a regular expression ({error})") from None
        return patterns

    def schedule(self, mode: Mode, every: int) -> SaveSchedule:
        """The schedule in `mode`."""
        own = self.modes.get(mode.value) or self.save or SaveSchedule()
        return own.resolved(every)

    @property
    def chooses(self) -> bool:
        """Whether anything but the kind decides."""
        return bool(self.include or self.tensors or self.modules or self.predicate)


def default_collections() -> tuple[CollectionConfig, ...]:
    """What is captured when nothing is said. ``inputs`` and ``buffers`` exist on request."""
    every_step = SaveSchedule(every=1)
    return (
        CollectionConfig(name="weights", kinds=("weight",)),
        CollectionConfig(name="biases", kinds=("bias",)),
        CollectionConfig(name="gradients", kinds=("gradient",)),
        CollectionConfig(name="activations", kinds=("activation",)),
        CollectionConfig(name="losses", kinds=("loss",), save=every_step),
        CollectionConfig(name="optimizer", kinds=("optimizer",)),
        CollectionConfig(name="scalars", kinds=("scalar",), save=every_step),
        CollectionConfig(name="custom", kinds=("custom",), values="both", sample_rows=512),
    )


def collections_on_request() -> tuple[CollectionConfig, ...]:
    """What is known by name but left out unless asked for."""
    return (
        CollectionConfig(name="inputs", kinds=("input",)),
        CollectionConfig(name="buffers", kinds=("buffer",)),
    )
