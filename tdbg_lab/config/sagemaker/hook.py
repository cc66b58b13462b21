"""The JSON of SageMaker Debugger's hook (``debughookconfig.json``): checked, values of the right type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tdbg_lab.config.checking import article
from tdbg_lab.config.sagemaker.values import (
    check_keys,
    mapping_of,
    number,
    patterns,
    steps,
    switch,
    text,
    texts,
)
from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MODES", "REDUCTIONS", "CollectionJson", "HookJson", "is_sagemaker"]

MODES = ("global", "train", "eval", "predict")
_STATISTICS = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1_norm", "l2_norm")
REDUCTIONS = (*_STATISTICS, *(f"abs_{one}" for one in _STATISTICS))

_TOP = ("S3OutputPath", "S3Path", "LocalPath", "HookParameters", "CollectionConfigurations")
_PROFILER = (
    *("ProfilingParameters", "DisableProfiler", "ProfilingIntervalInMilliseconds"),
    *("ProfileS3OutputPath", "ProfilerRuleConfigurations"),
)
_ENTRY = ("CollectionName", "CollectionParameters")


def _reductions(key: str, value: Any) -> tuple[str, ...]:
    found = texts(key, value)
    for one in found:
        if one not in REDUCTIONS:
            raise ConfigError(f"{key} names {one!r}; expected some of {', '.join(REDUCTIONS)}.")
    return found


_SAVE: Mapping[str, Callable[[str, Any], Any]] = {
    "save_interval": partial(number, least=1),
    "save_steps": steps,
    "start_step": number,
    "end_step": number,
}
_WHAT: Mapping[str, Callable[[str, Any], Any]] = {
    "include_regex": patterns,
    "reductions": _reductions,
    "save_raw_tensor": switch,
    "save_shape": switch,
}
_OF_HOOK: Mapping[str, Callable[[str, Any], Any]] = {
    **_WHAT,
    "dry_run": switch,
    "export_tensorboard": switch,
    "include_collections": texts,
    "include_workers": text,
    "save_all": switch,
    "tensorboard_dir": text,
}
_OF_COLLECTION: Mapping[str, Callable[[str, Any], Any]] = {**_WHAT, "save_histogram": switch}


def is_sagemaker(given: Mapping[Any, Any]) -> bool:
    """Whether a configuration is one of SageMaker Debugger's: its keys are no others'."""
    return any(key in given for key in (*_TOP, *_PROFILER))


@dataclass(frozen=True, slots=True)
class CollectionJson:
    """An entry of ``CollectionConfigurations``."""

    name: str
    what: Mapping[str, Any] = field(default_factory=dict)
    """``include_regex``, ``reductions``, ``save_raw_tensor``, ``save_shape``, ``save_histogram``."""
    save: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By mode (``""`` for all of them): ``save_interval``, ``save_steps``, ``start_step``, ``end_step``."""


@dataclass(frozen=True, slots=True)
class HookJson:
    """The configuration of a hook; what the file does not say is missing in the mappings."""

    local_path: str | None
    s3_path: str | None
    what: Mapping[str, Any]
    """As in `CollectionJson`, and ``dry_run``, ``save_all``, ``include_workers``, ..."""
    save: Mapping[str, Mapping[str, Any]]
    """As in `CollectionJson`."""
    collections: tuple[CollectionJson, ...]

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> HookJson:
        """From the content of a file; the keys of a profiler may stand in it, too.

        Raises
        ------
        ConfigError
            With one sentence for the first thing that is wrong.
        """
        check_keys(given, (*_TOP, *_PROFILER), "SageMaker Debugger's configuration")
        what, save = _parameters("HookParameters", mapping_of(given, "HookParameters"), _OF_HOOK)
        if what.get("include_workers", "one") not in {"one", "all"}:
            raise ConfigError(
                f"HookParameters.include_workers is {what['include_workers']!r}; expected 'one' or 'all'."
            )
        entries = given.get("CollectionConfigurations") or []
        if not isinstance(entries, list):
            raise ConfigError(
                f"CollectionConfigurations is {article(entries)}; expected a list of collections."
            )
        paths = {key: text(key, given[key]) for key in _TOP[:3] if given.get(key) is not None}
        return cls(
            local_path=paths.get("LocalPath"),
            s3_path=paths.get("S3OutputPath", paths.get("S3Path")),
            what=what,
            save=save,
            collections=tuple(_collection(one) for one in entries),
        )

    def schedule(self, mode: str, collection: CollectionJson | None = None) -> dict[str, Any]:
        """What is said about when to save in `mode` (``""``: in all modes).

        A collection wins over the hook, and a mode over all modes.
        """
        found: dict[str, Any] = {}
        for owner in (self, collection):
            for key in ("", mode):
                found.update({} if owner is None else owner.save.get(key, {}))
        return found


def _parameters(
    where: str, given: Mapping[str, Any], known: Mapping[str, Callable[[str, Any], Any]]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What to save, and when: by mode."""
    prefixes = ("", *(f"{mode}." for mode in MODES))
    check_keys(given, (*known, *(prefix + key for prefix in prefixes for key in _SAVE)), where)
    what = {}
    save: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        if value is None or value == "":
            continue
        mode, _, name = key.rpartition(".")
        if name in _SAVE:
            save.setdefault(mode, {})[name] = _SAVE[name](f"{where}.{key}", value)
        else:
            what[key] = known[key](f"{where}.{key}", value)
    return what, save


def _collection(entry: Any) -> CollectionJson:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"CollectionConfigurations holds {article(entry)}; expected objects.")
    name = entry.get("CollectionName")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"An entry of CollectionConfigurations has no CollectionName: {article(entry)}.")
    check_keys(entry, _ENTRY, f"Collection {name} of CollectionConfigurations")
    return CollectionJson(name, *_parameters(name, mapping_of(entry, "CollectionParameters"), _OF_COLLECTION))
