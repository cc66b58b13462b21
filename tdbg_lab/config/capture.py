"""Everything that `tdbg_lab.attach` needs to know about what to save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from tdbg_lab.config.checking import article, validated
from tdbg_lab.config.collection import CollectionConfig, default_collections
from tdbg_lab.config.file import load_config
from tdbg_lab.config.listing import Known, collection_list
from tdbg_lab.config.profile import MAX_PROFILED_STEPS, PlannedProfile
from tdbg_lab.config.sagemaker import is_sagemaker, sagemaker_settings
from tdbg_lab.config.strict import StrictModel, names
from tdbg_lab.errors import ConfigError

__all__ = ["DEFAULT_SAVE_EVERY", "CaptureConfig"]

DEFAULT_SAVE_EVERY = 10

RankNames = Annotated[
    Literal["all", "first"] | tuple[Annotated[int, Field(ge=0)], ...],
    BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
]


def _distance(value: Any) -> Any:
    if (type(value) is int and value >= 1) or (type(value) is str and value == "auto"):
        return value
    raise ValueError('a whole number of steps, at least 1, or "auto"')


SaveEvery = Annotated[int | Literal["auto"], BeforeValidator(_distance)]


class CaptureConfig(StrictModel):
    """Everything `tdbg_lab.attach` needs to know about what to save."""

    save_every: SaveEvery = DEFAULT_SAVE_EVERY
    """Distance of the saved steps; ``"auto"`` chooses it by `budget`."""
    budget: Annotated[float, Field(gt=0, le=1)] = 0.05
    """Share of the time of training that saving may take, where `save_every` is ``"auto"``."""
    collections: tuple[CollectionConfig, ...] = Field(default_factory=default_collections)
    sample_rows: Annotated[int, Field(ge=1)] | None = None
    """Rows of raw values to keep in collections that do not say; None for all of them."""
    run_eager: bool = True
    """Run saved steps of compiled models eagerly; else nothing inside of compiled code is seen."""
    functional: bool = True
    """See activation functions that are called as functions (``F.relu``), not as modules."""
    checks: bool = True
    """Note facts about the training loop for rules on silent errors: gradients that were not reset,
    parameters without an optimizer, layers in the wrong mode, ... They cost microseconds a step."""
    store: str | None = None
    """Run directory or place on an object store, when the caller says none."""
    ranks: RankNames | None = None
    """Which processes of a distributed training write, when the caller does not say."""
    profile_steps: Annotated[tuple[int, int], BeforeValidator(names)] | None = None
    """Steps to profile: from the first number on, before the second."""
    profiles: Annotated[tuple[PlannedProfile, ...], BeforeValidator(names)] = ()
    """Further profiles, each with what it records."""
    profiler: bool = True
    """False: record no phases and do not sample the machine, whatever the caller says."""
    sample_interval_s: Annotated[float, Field(ge=0.1, le=60)] = 0.5
    """Time between two samples of the machine, s: from 0.1 to 60."""

    @field_validator("profile_steps")
    @classmethod
    def _is_window(cls, steps: tuple[int, int] | None) -> tuple[int, int] | None:
        if steps is not None and not 0 <= steps[0] < steps[1] <= steps[0] + MAX_PROFILED_STEPS:
            raise ValueError(
                f"a first step and the one after the last, at most {MAX_PROFILED_STEPS}, such as (100, 105)"
            )
        return steps

    @classmethod
    def build(
        cls,
        source: CaptureConfig | Mapping[str, Any] | str | Path | None = None,
        *,
        save_every: int | Literal["auto"] | None = None,
        collections: Any = None,
        sample_rows: int | None = None,
        profile_steps: tuple[int, int] | None = None,
        sample_interval_s: float | None = None,
        defaults: Sequence[CollectionConfig] | None = None,
    ) -> CaptureConfig:
        """A configuration from whatever the user has: an object, a mapping, a JSON or YAML file.

        The configurations of SageMaker Debugger's hook and profiler are taken as they are.

        Parameters
        ----------
        source
            The configuration to start from.
        save_every, collections, sample_rows, profile_steps, sample_interval_s
            Given, they replace what `source` says. A sequence of collections is the whole list
            (``"default"`` in it stands for all default ones); a mapping changes the default ones:
            ``{"activations": {"save": 1}, "inputs": True, "gradients": False}``.
        defaults
            The default collections, where a framework has its own.

        Raises
        ------
        ConfigError
            With one sentence that names the key.
        """
        known = Known(defaults)
        given = _as_mapping(source)
        if is_sagemaker(given):
            given = sagemaker_settings(given, known)
        if save_every is not None:
            given["save_every"] = save_every
        if sample_rows is not None:
            given["sample_rows"] = sample_rows
        if profile_steps is not None:
            given["profile_steps"] = profile_steps
        if sample_interval_s is not None:
            given["sample_interval_s"] = sample_interval_s
        chosen = given.get("collections") if collections is None else collections
        given["collections"] = collection_list(chosen, known)
        return validated(cls, given)

    def dump(self) -> dict[str, Any]:
        """The configuration as JSON-able data, for ``run.json``."""
        data = self.model_dump(mode="json", exclude={"collections": {"__all__": {"modules"}}})
        for shown, collection in zip(data["collections"], self.collections, strict=True):
            shown["modules"] = [
                one if isinstance(one, str) else type(one).__name__ for one in collection.modules
            ]
        return data


def _as_mapping(source: Any) -> dict[str, Any]:
    if source is None:
        return {}
    if isinstance(source, CaptureConfig):
        return {name: getattr(source, name) for name in type(source).model_fields}
    if isinstance(source, str | Path):
        return load_config(source)
    if isinstance(source, Mapping):
        return dict(source)
    raise ConfigError(
        f"config is {article(source)}; "
        "expected a mapping, a CaptureConfig or the path of a JSON or YAML file."
    )
