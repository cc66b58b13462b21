"""What a configuration of SageMaker Debugger asks of us, in our own settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.config.checking import closest
from tdbg_lab.config.collection import CollectionConfig
from tdbg_lab.config.sagemaker.hook import CollectionJson, HookJson
from tdbg_lab.config.sagemaker.profiler import ProfilerJson
from tdbg_lab.config.sagemaker.profiles import planned_profiles
from tdbg_lab.config.sagemaker.remarks import remark
from tdbg_lab.config.schedule import SaveSchedule
from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.config.listing import Known

__all__ = ["sagemaker_settings"]

_INTERVAL = 500
_ALWAYS = ("losses", "metrics", "scalars", "custom")
"""Kept beside what the file lists: numbers that cost nothing, and what is recorded by hand."""

_COLLECTIONS: Mapping[str, Mapping[str, Any]] = {
    "all": {
        "kinds": (
            *("weight", "bias", "gradient", "activation", "input", "loss"),
            *("optimizer", "scalar", "custom"),
        )
    },
    "weights": {"kinds": ("weight",)},
    "biases": {"kinds": ("bias",)},
    "gradients": {"kinds": ("gradient",)},
    "losses": {"kinds": ("loss",)},
    "inputs": {"kinds": ("input",)},
    "outputs": {"kinds": ("activation",)},
    "layers": {"kinds": ("activation", "input", "weight", "bias")},
    "optimizer_variables": {"kinds": ("optimizer",)},
    "metrics": {"kinds": ("loss", "scalar")},
    "sm_metrics": {"kinds": ("scalar",)},
    "tensorflow_summaries": {"kinds": ("scalar",)},
    "hyperparameters": {"include": ("^hyperparameters/",)},
    "predictions": {"include": ("^predict(ions|ed_labels)$",)},
    "labels": {"include": ("^labels$",)},
    "feature_importance": {"include": ("^feature_importance/",)},
    "average_shap": {"include": ("^average_shap(/|$)",)},
    "full_shap": {"include": ("^full_shap(/|$)",)},
    "trees": {"include": ("^trees/",)},
}
"""What its collections hold, where a framework of ours has none of that name."""


def sagemaker_settings(given: Mapping[str, Any], known: Known) -> dict[str, Any]:
    """Settings for `CaptureConfig`.

    Raises
    ------
    ConfigError
        With one sentence for the first thing that is wrong.
    """
    hook = HookJson.parse(given)
    profiler = ProfilerJson.parse(given)
    settings: dict[str, Any] = {}
    if profiler is not None:
        settings["profiler"] = profiler.enabled
        if profiler.interval_ms is not None:
            settings["sample_interval_s"] = profiler.interval_ms / 1e3
        if profiler.enabled:
            settings["profiles"] = planned_profiles(profiler)
        if not {"HookParameters", "CollectionConfigurations"} & given.keys():
            return settings  # a file for the profiler alone says nothing about tensors
    if hook.what.get("export_tensorboard"):
        remark(
            "export_tensorboard: event files are not written while training; "
            "'tdbg export' makes them from the run."
        )
    return {
        **settings,
        "store": hook.local_path or hook.s3_path,
        "ranks": "all" if hook.what.get("include_workers") == "all" else "first",
        "save_every": hook.schedule("train").get("save_interval", _INTERVAL),
        "collections": () if hook.what.get("dry_run") else tuple(_collections(hook, known)),
    }


def _collections(hook: HookJson, known: Known) -> list[CollectionConfig]:
    listed = {one.name: one for one in hook.collections}
    for name in hook.what.get("include_collections", ()):
        listed.setdefault(name, CollectionJson(name))
    if hook.what.get("save_all"):
        listed.setdefault("all", CollectionJson("all"))
    patterns = hook.what.get("include_regex")
    default = listed.pop("default", None) or CollectionJson("default")
    patterns = (*(patterns or ()), *default.what.get("include_regex", ()))
    chosen = [one for one in known.defaults if one.name in _ALWAYS and one.name not in listed]
    chosen += [_collection(hook, one, known) for one in listed.values()]
    if patterns:
        base = CollectionConfig(name="default", include=patterns, sagemaker_names=True)
        chosen.append(_scheduled(hook, default, base))
    return chosen


def _collection(hook: HookJson, given: CollectionJson, known: Known) -> CollectionConfig:
    patterns = given.what.get("include_regex", ())
    if given.name in known.all:
        base = known.all[given.name]
    elif given.name in _COLLECTIONS:
        base = CollectionConfig(name=given.name, **_COLLECTIONS[given.name])
    elif patterns:
        base = CollectionConfig(name=given.name)
    else:
        near = closest(given.name, (*known.all, *_COLLECTIONS))
        raise ConfigError(
            f"CollectionConfigurations names {given.name!r}, which is no known collection and has no "
            f"include_regex{near}."
        )
    if patterns:
        patterns = (*base.include, *patterns)
        base = base.model_copy(update={"include": patterns, "sagemaker_names": True})
    return _scheduled(hook, given, base)


def _scheduled(hook: HookJson, given: CollectionJson, base: CollectionConfig) -> CollectionConfig:
    what = {**hook.what, **given.what}
    raw = what.get("save_raw_tensor", "reductions" not in what)
    modes = {mode: _schedule(hook.schedule(mode, given)) for mode in ("train", "eval", "predict")}
    return base.model_copy(
        update={
            "values": "both" if raw else "stats",
            "save": _schedule(hook.schedule("global", given)),
            "modes": modes,
        }
    )


def _schedule(said: Mapping[str, Any]) -> SaveSchedule:
    """Its steps are multiples of the interval, ours count from `start`."""
    every = said.get("save_interval", _INTERVAL)
    start = said.get("start_step", 0)
    return SaveSchedule(
        every=every,
        start=-(-start // every) * every,
        end=said.get("end_step"),
        steps=said.get("save_steps", ()),
    )
