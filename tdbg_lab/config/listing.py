"""Which collections a configuration names, and how it changes the default ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tdbg_lab.config.checking import article, closest, validated
from tdbg_lab.config.collection import CollectionConfig, collections_on_request, default_collections
from tdbg_lab.errors import ConfigError

__all__ = ["Known", "collection_list"]


class Known:
    """The collections that can be named."""

    def __init__(self, defaults: Sequence[CollectionConfig] | None) -> None:
        self.defaults = tuple(default_collections() if defaults is None else defaults)
        self.all = {one.name: one for one in (*self.defaults, *collections_on_request())}


def collection_list(chosen: Any, known: Known) -> tuple[CollectionConfig, ...]:
    """The collections of a setting: a name, a list, or a mapping of changes.

    Raises
    ------
    ConfigError
        With one sentence.
    """
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
            f"collections is {article(chosen)}; expected a list of collections or a mapping of changes."
        )
    names = [one.name for one in merged]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"collections has {name!r} more than once; give each collection its own name.")
    return tuple(merged)


def _listed(entry: Any, known: Known) -> list[CollectionConfig]:
    if isinstance(entry, CollectionConfig):
        return [entry]
    if entry == "default":
        return list(known.defaults)
    if isinstance(entry, str):
        if entry not in known.all:
            raise ConfigError(
                f"collections names {entry!r}, which is not a known collection; "
                f"expected one of {', '.join(known.all)}{closest(entry, [*known.all, 'default'])}."
            )
        return [known.all[entry]]
    if isinstance(entry, Mapping):
        base = known.all.get(str(entry.get("name")))
        fields = dict(base) if base else {}
        made = validated(CollectionConfig, {**fields, **entry}, where="collections")
        if base is None and not (made.chooses or made.kinds or made.exclude):
            raise ConfigError(_of_everything(made.name, known))
        return [made]
    raise ConfigError(
        f"collections holds {article(entry)}; expected a name, a CollectionConfig or a mapping."
    )


def _of_everything(name: str, known: Known) -> str:
    """A new collection without a choice is a name typed wrong more often than a wish for everything."""
    return (
        f"collections names {name!r}, which is not a known collection, and does not say what belongs to it; "
        f"expected one of {', '.join(known.all)}{closest(name, known.all)}, or kinds, include, tensors, "
        f"modules or predicate (include='.' is everything)."
    )


def _changed_defaults(changes: Mapping[str, Any], known: Known) -> list[CollectionConfig]:
    chosen = {one.name: one for one in known.defaults}
    for name, change in changes.items():
        if change is False or change is None:
            if name not in known.all:
                raise ConfigError(
                    f"collections switches off {name!r}, which does not exist{closest(name, known.all)}."
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
                f"collections.{name} is {article(change)}; expected true, false or a mapping of settings."
            )
    return list(chosen.values())
