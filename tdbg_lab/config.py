"""What to capture, when and how: the settings of `tdbg_lab.attach`, checked.

A wrong key or type gives a `ConfigError` with one sentence: the key, what was found, what is
expected, and the closest valid name. Nothing here knows a training framework.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Kind, Mode

__all__ = [
    "DEFAULT_SAVE_EVERY",
    "CaptureConfig",
    "CollectionConfig",
    "SaveSchedule",
    "default_collections",
    "load_config",
]

DEFAULT_SAVE_EVERY = 10
_MAX_FILE_BYTES = 1_000_000

_KINDS = tuple(kind.value for kind in Kind)
_MODES = tuple(mode.value for mode in Mode)


def _names(value: Any) -> Any:
    """One name or several: always a tuple."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list | tuple | set | frozenset) else value


def _plain_names(value: Any) -> Any:
    """Enum members as their text, so that ``Kind.WEIGHT`` and ``"weight"`` are the same."""
    if isinstance(value, Kind | Mode):
        value = str(value)
    named = _names(value)
    return tuple(str(one) if isinstance(one, Kind | Mode) else one for one in named)


def _modules(value: Any) -> Any:
    """A module path, a module object, or several of them."""
    if not isinstance(value, str) and hasattr(value, "named_modules"):
        return (value,)
    return _names(value)


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
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


class _Model(BaseModel):
    """Strict: no coercion, no unknown key, nothing changes afterwards."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, arbitrary_types_allowed=True)


class SaveSchedule(_Model):
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
    steps: Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(_names)] = ()
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


class CollectionConfig(_Model):
    """A named set of tensors that share what is saved and when.

    A tensor belongs to it when its kind is one of `kinds` (or `kinds` is empty), and it is chosen
    by `include`, `tensors`, `modules` or `predicate` (or none of these is given), and no `exclude`
    matches.
    """

    name: Annotated[str, Field(min_length=1)]
    kinds: Annotated[tuple[KindName, ...], BeforeValidator(_plain_names)] = ()
    include: Names = ()
    """Regular expressions, searched in the tensor's name."""
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


def _on_request() -> tuple[CollectionConfig, ...]:
    return (
        CollectionConfig(name="inputs", kinds=("input",)),
        CollectionConfig(name="buffers", kinds=("buffer",)),
    )


class CaptureConfig(_Model):
    """Everything `tdbg_lab.attach` needs to know about what to save."""

    save_every: Annotated[int, Field(ge=1)] = DEFAULT_SAVE_EVERY
    collections: tuple[CollectionConfig, ...] = Field(default_factory=default_collections)
    sample_rows: Annotated[int, Field(ge=1)] | None = None
    """Rows of raw values to keep in collections that do not say; None for all of them."""
    run_eager: bool = True
    """Run saved steps of compiled models eagerly; else nothing inside of compiled code is seen."""
    functional: bool = True
    """See activation functions that are called as functions (``F.relu``), not as modules."""

    @classmethod
    def build(
        cls,
        source: CaptureConfig | Mapping[str, Any] | str | Path | None = None,
        *,
        save_every: int | None = None,
        collections: Any = None,
        sample_rows: int | None = None,
        defaults: Sequence[CollectionConfig] | None = None,
    ) -> CaptureConfig:
        """A configuration from whatever the user has: an object, a mapping, a JSON or YAML file.

        Parameters
        ----------
        source
            The configuration to start from.
        save_every, collections, sample_rows
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
        given = _as_mapping(source)
        if save_every is not None:
            given["save_every"] = save_every
        if sample_rows is not None:
            given["sample_rows"] = sample_rows
        chosen = given.get("collections") if collections is None else collections
        given["collections"] = _collection_list(chosen, _Known(defaults))
        return _validated(cls, given)

    def dump(self) -> dict[str, Any]:
        """The configuration as JSON-able data, for ``run.json``."""
        data = self.model_dump(mode="json", exclude={"collections": {"__all__": {"modules"}}})
        for shown, collection in zip(data["collections"], self.collections, strict=True):
            shown["modules"] = [
                one if isinstance(one, str) else type(one).__name__ for one in collection.modules
            ]
        return data


def load_config(path: str | Path) -> dict[str, Any]:
    """The content of a JSON or YAML file.

    Raises
    ------
    ConfigError
        It cannot be read, is too large, or holds no mapping.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise ConfigError(f"The configuration file {path.name} is larger than {_MAX_FILE_BYTES} bytes.")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration file {path.name} cannot be read: {error}.") from error
    data = _parsed(path, text)
    if not isinstance(data, dict):
        raise ConfigError(
            f"The configuration file {path.name} holds {_article(data)}; expected a mapping of settings."
        )
    return data


def _parsed(path: Path, text: str) -> Any:
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise ConfigError(f"The configuration file {path.name} is not valid JSON: {error}.") from error
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        what = " ".join(str(error).split())
        raise ConfigError(f"The configuration file {path.name} is not valid YAML: {what}.") from error


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
        f"config is {_article(source)}; "
        "expected a mapping, a CaptureConfig or the path of a JSON or YAML file."
    )


class _Known:
    """The collections that can be named."""

    def __init__(self, defaults: Sequence[CollectionConfig] | None) -> None:
        self.defaults = tuple(default_collections() if defaults is None else defaults)
        self.all = {one.name: one for one in (*self.defaults, *_on_request())}


def _collection_list(chosen: Any, known: _Known) -> tuple[CollectionConfig, ...]:
    if chosen is None:
        return known.defaults
    if isinstance(chosen, str | CollectionConfig):
        chosen = [chosen]
    if isinstance(chosen, Mapping):
        merged = _changed_defaults(chosen, known)
    elif isinstance(chosen, Sequence):
        merged = [one for entry in chosen for one in _listed(entry, known)]
    else:
        raise ConfigError(
            f"collections is {_article(chosen)}; expected a list of collections or a mapping of changes."
        )
    names = [one.name for one in merged]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"collections has {name!r} more than once; give each collection its own name.")
    return tuple(merged)


def _listed(entry: Any, known: _Known) -> list[CollectionConfig]:
    if isinstance(entry, CollectionConfig):
        return [entry]
    if entry == "default":
        return list(known.defaults)
    if isinstance(entry, str):
        if entry not in known.all:
            raise ConfigError(
                f"collections names {entry!r}, which is not a known collection; "
                f"expected one of {', '.join(known.all)}{_closest(entry, [*known.all, 'default'])}."
            )
        return [known.all[entry]]
    if isinstance(entry, Mapping):
        base = known.all.get(str(entry.get("name")))
        fields = dict(base) if base else {}
        return [_validated(CollectionConfig, {**fields, **entry}, where="collections")]
    raise ConfigError(
        f"collections holds {_article(entry)}; expected a name, a CollectionConfig or a mapping."
    )


def _changed_defaults(changes: Mapping[str, Any], known: _Known) -> list[CollectionConfig]:
    chosen = {one.name: one for one in known.defaults}
    for name, change in changes.items():
        if change is False or change is None:
            if name not in known.all:
                raise ConfigError(
                    f"collections switches off {name!r}, which does not exist{_closest(name, known.all)}."
                )
            chosen.pop(name, None)
        elif change is True:
            chosen[name] = _listed(name, known)[0]
        elif isinstance(change, CollectionConfig):
            chosen[name] = change.model_copy(update={"name": name})
        elif isinstance(change, Mapping):
            chosen[name] = _listed({**change, "name": name}, known)[0]
        else:
            raise ConfigError(
                f"collections.{name} is {_article(change)}; expected true, false or a mapping of settings."
            )
    return list(chosen.values())


_M = TypeVar("_M", bound=_Model)


def _validated(model: type[_M], data: Mapping[str, Any], *, where: str = "") -> _M:
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        raise ConfigError(_sentence(model, error, where)) from None


def _sentence(model: type[_Model], error: ValidationError, where: str) -> str:
    """One sentence for the first thing that is wrong."""
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"] if not _is_noise(str(part))]
    key = ".".join([where, *path] if where else path) or model.__name__
    found = first["input"]
    if first["type"] == "extra_forbidden":
        valid = list(model.model_fields) if len(path) == 1 else list(SaveSchedule.model_fields)
        near = _closest(path[-1] if path else "", valid)
        return f"{key} is not a setting; expected one of {', '.join(valid)}{near}."
    if first["type"] == "missing":
        return f"{key} is missing; it is required."
    hint = _closest(found, (*_KINDS, *_MODES)) if first["type"] == "literal_error" else ""
    expected = first["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    expected = expected.removeprefix("Value error, ")
    return f"{key} is {_article(found)}; expected {expected}{hint}."


def _is_noise(part: str) -> bool:
    """Parts of pydantic's path that name its own machinery."""
    return part.startswith(("function-", "constrained-", "tuple[", "nullable")) or part == "[key]"


def _article(value: Any) -> str:
    """What was found: the value when it is short, and its type."""
    shown = repr(value)
    kind = type(value).__name__
    return f"{shown} ({kind})" if len(shown) <= 60 else f"an object of type {kind}"


def _closest(name: Any, valid: Any) -> str:
    near = get_close_matches(str(name), [str(one) for one in valid], n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""
