"""Which rules there are: our own, those of installed packages, those registered in this process."""

from __future__ import annotations

import logging
from dataclasses import fields, replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.nearest import did_you_mean
from tdbg_lab.rules.base import Rule
from tdbg_lab.rules.choice import as_mapping, choice_of
from tdbg_lab.rules.thresholds import type_of, type_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = ["DEFAULT", "Registry", "Rules", "find_rule", "list_rules", "resolve_rules", "rule"]

log = logging.getLogger(__name__)

GROUP = "tdbg_lab.rules"
"""Entry point group: ``my_rule = my_package.my_rule:MyRule``."""

DEFAULT = (
    "uninitialised_values",
    "parameters_without_optimizer",
    "parameters_without_gradient",
    "stale_gradients",
    "skipped_steps",
    "frozen_schedule",
    "stuck_scaler",
    "replaced_weights",
    "training_in_eval_mode",
    "evaluation_in_train_mode",
    "diverging_replicas",
    "clipping_differs",
    "constant_inputs",
    "same_batches",
    "unshuffled_epochs",
    "symmetric_weights",
    "label_range",
    "wrong_output",
    "unscaled_inputs",
    "optimizer_settings",
    "learning_rate",
    "diverging_loss",
    "oscillating_loss",
    "exploding_tensor",
    "check_input_images",
    "poor_weight_initialization",
    "no_splits",
    "all_zero",
    "saturated_activation",
    "attention_collapse",
    "posterior_collapse",
    "dead_relu",
    "dead_units",
    "layer_collapse",
    "lost_dimensions",
    "unchanged_tensor",
    "vanishing_gradient",
    "weight_update_ratio",
    "tensor_variance",
    "constant_output",
    "unrelated_labels",
    "class_imbalance",
    "confusion",
    "nlp_sequence_ratio",
    "feature_importance_overweight",
    "overfit",
    "tree_depth",
    "overtraining",
    "loss_not_decreasing",
    "stalled_training",
    "thermal_throttling",
    "io_bottleneck",
    "input_bound",
    "synchronising_calls",
    "tiny_kernels",
    "straggler",
    "memory_leak",
    "step_outlier",
    "dataloader",
    "max_initialization_time",
    "cpu_bottleneck",
    "gpu_idle_gaps",
    "low_gpu_utilization",
    "gpu_memory_increase",
    "load_balancing",
    "batch_size",
)
"""Rules of ``"default"``. Causes stand before their consequences: a rule sees what earlier ones found."""

R = TypeVar("R", bound=type[Rule])

Rules: TypeAlias = "str | Path | Rule | type[Rule] | Sequence[str | Rule | type[Rule]] | Mapping[str, Any]"
"""What people give where rules are asked for, see `resolve_rules`."""


_WORDS = ("default", "all", "none")
"""What stands for several rules, or for none."""


class Registry:
    """Rule classes by name. The first of a name wins, unless it is registered again from a notebook cell."""

    def __init__(self) -> None:
        self._classes: dict[str, type[Rule]] = {}
        self._discovered = False

    def add(self, cls: type[Rule]) -> None:
        """Add a class; one of the same name from another module makes a `ConfigError`."""
        known = self._classes.get(cls.name)
        if known is not None and known.__module__ != cls.__module__:
            raise ConfigError(f"There is a rule {cls.name!r} already, from {known.__module__}.")
        self._classes[cls.name] = cls

    def all(self) -> dict[str, type[Rule]]:
        """Every rule by name; installed packages are searched once."""
        if not self._discovered:
            self._discovered = True
            for entry in entry_points(group=GROUP):
                self._load(entry)
        return dict(self._classes)

    def _load(self, entry: Any) -> None:
        try:
            cls = entry.load()
        except Exception:
            log.exception("The rule %s of an installed package is left out", entry.name)
            return
        if not (isinstance(cls, type) and issubclass(cls, Rule)):
            log.warning("%s of an installed package is not a rule: it is left out", entry.value)
        elif cls.name not in self._classes:
            self.add(cls)
        elif self._classes[cls.name] is not cls:
            log.warning("There is a rule %r already: that of %s is left out", cls.name, entry.value)


_REGISTRY = Registry()


def rule(name: str | None = None, *, title: str | None = None) -> Callable[[R], R]:
    """Register a `Rule` class: ``@rule("dead_relu", title="Dead ReLU")``.

    Registered rules are found by name on the command line and in ``rules=[...]``. A class that is
    handed over itself needs no registration.
    """

    def register(cls: R) -> R:
        if name is not None:
            cls.name = name
        if title is not None:
            cls.title = title
        _REGISTRY.add(cls)
        return cls

    return register


def list_rules() -> list[type[Rule]]:
    """Every rule there is, by name."""
    return [cls for _, cls in sorted(_REGISTRY.all().items())]


def find_rule(name: str, *, words: Sequence[str] = ()) -> type[Rule]:
    """Find a rule class by name. `words` may have been meant instead.

    Raises
    ------
    NotFoundError
        If there is none.
    """
    known = _REGISTRY.all()
    if name in known:
        return known[name]
    hint = did_you_mean(name, [*words, *known]) or f" There are: {', '.join(sorted(known))}."
    raise NotFoundError(f"There is no rule {name!r}.{hint}")


def resolve_rules(
    rules: Rules | None,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Rule]:
    """Make rules of what a user gave.

    Parameters
    ----------
    rules
        ``"default"``, ``"all"``, ``"none"``, names joined by commas, or a sequence of names, rule
        classes and rules. A mapping (or the path of a YAML or JSON file with one) changes the default
        rules, see `tdbg_lab.rules.choice.choice_of`.
    parameters
        Thresholds to change: ``{"dead_relu": {"threshold_layer": 60}}``.

    Raises
    ------
    NotFoundError
        If there is no rule of a name.
    ConfigError
        If a rule has no such parameter or the same rule is given twice.
    """
    wanted = {name: dict(values) for name, values in (parameters or {}).items()}
    if (mapping := as_mapping(rules)) is not None:
        names, own = choice_of(mapping)
        rules = _without(names)
        wanted = {name: own.get(name, {}) | wanted.get(name, {}) for name in {*own, *wanted}}
    made: list[Rule] = []
    for item in _flat(rules):
        kind = find_rule(item, words=_WORDS) if isinstance(item, str) else item
        one = kind() if isinstance(kind, type) else kind
        if not isinstance(one, Rule):
            raise ConfigError(f"{item!r} is not a rule: give a name, a Rule class or a Rule.")
        made.append(one)
    names = [one.name for one in made]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ConfigError(f"{', '.join(sorted(twice))} is given more than once; give each its own name.")
    unknown = set(wanted) - set(names)
    if unknown:
        raise ConfigError(f"Parameters are given for {', '.join(sorted(unknown))}, which does not run.")
    return [_changed(one, wanted.get(one.name, {})) for one in made]


def _without(names: Sequence[str]) -> list[str | Rule | type[Rule]]:
    """Names, each once, without those that are left out."""
    out = {name[1:] for name in names if name.startswith("-")}
    for name in out:
        find_rule(name)
    chosen = [name for name in names if not name.startswith("-")]
    return [one for one in dict.fromkeys(_flat(chosen)) if one not in out]


def _flat(
    rules: Rules | None,
) -> list[str | Rule | type[Rule]]:
    """Rules one by one; one given by itself takes the place of its name in ``default`` and ``all``."""
    if rules is None or rules == "none":
        return []
    if not isinstance(rules, (str, list, tuple)):
        return [rules]  # type: ignore[list-item]
    items: list[str | Rule | type[Rule]] = []
    sets: list[str] = []
    for item in [rules] if isinstance(rules, str) else rules:
        if not isinstance(item, str):
            items.append(item)
            continue
        for name in filter(None, (part.strip() for part in item.split(","))):
            names = {"default": DEFAULT, "all": tuple(sorted(_REGISTRY.all())), "none": ()}
            if name in names:
                sets += names[name]
            else:
                items.append(name)
    placed: dict[str, str | Rule | type[Rule]] = dict(zip(sets, sets, strict=True))
    rest: list[str | Rule | type[Rule]] = []
    for item in items:
        name = item if isinstance(item, str) else getattr(item, "name", "")
        if placed.get(name) == name:
            placed[name] = item
        if placed.get(name) is not item:
            rest.append(item)
    return [*placed.values(), *rest]


def _changed(one: Rule, values: Mapping[str, Any]) -> Rule:
    if not values:
        return one
    known = {field.name: field for field in fields(one)}
    changes = {}
    for name, value in values.items():
        if name not in known or name == "actions":
            names = ", ".join(sorted(set(known) - {"actions"}))
            raise ConfigError(f"{one.name} has no parameter {name!r}; it has {names}.")
        changes[name] = _parsed(f"{one.name}.{name}", value, type_of(known[name]))
    return replace(one, **changes)


_BOOLS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _parsed(where: str, value: Any, annotation: str) -> Any:
    """Read a value that came as text by the type of its field."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.lower() in ("none", "") and "None" in annotation:
        return None
    try:
        if "bool" in annotation:
            return _BOOLS[text.lower()]
        if "int" in annotation:
            return int(text)
        if "float" in annotation:
            return float(text)
    except (ValueError, KeyError):
        raise ConfigError(f"{where} is {text!r}; expected {type_words(annotation)}.") from None
    return text
