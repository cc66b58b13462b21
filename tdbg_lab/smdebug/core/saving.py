"""What is saved of a tensor at a step: decided by the hook, and again by whoever reads the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tdbg_lab.smdebug.core.collection import SCALAR_COLLECTIONS, Collection, CollectionKeys
from tdbg_lab.smdebug.core.modes import ModeKeys
from tdbg_lab.smdebug.core.reduction_config import ReductionConfig
from tdbg_lab.smdebug.core.save_config import SaveConfig
from tdbg_lab.smdebug.exceptions import InvalidCollectionConfiguration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Decision", "SavePlan"]

_TRAIN_ONLY = frozenset({CollectionKeys.GRADIENTS, CollectionKeys.OPTIMIZER_VARIABLES})


@dataclass(frozen=True, slots=True)
class Decision:
    """What is saved of one tensor at one step."""

    raw: bool = False
    shape: bool = False
    reductions: tuple[tuple[str, bool], ...] = ()
    """Name of each, and whether it is of absolute values."""

    def __bool__(self) -> bool:
        return self.raw or self.shape or bool(self.reductions)


class SavePlan:
    """The collections of a hook, once its first step has begun.

    Parameters
    ----------
    collections
        All of them, by name; those that are included have both configurations filled in.
    included
        Names of those that are saved.
    """

    def __init__(self, collections: Mapping[str, Collection], included: Iterable[str]) -> None:
        self.collections = dict(collections)
        self.included = tuple(included)
        self._decisions: dict[tuple[tuple[str, ...], tuple[str, ...]], Decision] = {}

    @classmethod
    def prepare(
        cls,
        collections: Mapping[str, Collection],
        included: Iterable[str],
        save_config: SaveConfig,
        reduction_config: ReductionConfig,
        known: Iterable[str],
    ) -> SavePlan:
        """Fill in what the collections leave to the hook.

        Parameters
        ----------
        known
            Collections that may be empty, because the framework fills them.

        Raises
        ------
        InvalidCollectionConfiguration
            If an included collection chooses nothing.
        """
        included = list(dict.fromkeys(included))
        if CollectionKeys.ALL in included:
            included = list(dict.fromkeys((*included, *collections)))
        for name, collection in collections.items():
            empty = not collection.include_regex and not collection.tensor_names
            if empty and name in included and name not in known:
                raise InvalidCollectionConfiguration(name)
            if collection.save_config is None:
                collection.save_config = save_config
            else:
                collection.save_config.merge_default_save_config(save_config)
            if collection.reduction_config is None:
                scalars = name in SCALAR_COLLECTIONS
                collection.reduction_config = (
                    ReductionConfig(save_raw_tensor=True) if scalars else reduction_config
                )
        return cls(collections, included)

    def due(self, mode: ModeKeys, mode_step: int) -> tuple[str, ...]:
        """Included collections that are saved at a step, counted in `mode`."""
        return tuple(
            name
            for name in self.included
            if not (name in _TRAIN_ONLY and mode in {ModeKeys.EVAL, ModeKeys.PREDICT})
            and (self.collections[name].save_config or SaveConfig()).should_save_step(mode, mode_step)
        )

    def members(self, tname: str) -> tuple[str, ...]:
        """Names of the collections a tensor belongs to."""
        return tuple(name for name, one in self.collections.items() if one.chooses(tname))

    def decide(self, members: Sequence[str], due: Sequence[str]) -> Decision:
        """What is saved of a tensor of some collections when others are due."""
        both = tuple(members), tuple(due)
        found = self._decisions.get(both)
        if found is None:
            found = self._decisions[both] = self._combined([name for name in members if name in due])
        return found

    def decide_custom(self, members: Sequence[str]) -> Decision:
        """What is saved of a tensor the user handed over: nothing has to be due; values, if nobody says."""
        return self._combined([name for name in members if name in self.collections]) or Decision(raw=True)

    def _combined(self, names: Sequence[str]) -> Decision:
        configs = {name: self.collections[name].reduction_config for name in names}
        scalar = any(name in SCALAR_COLLECTIONS for name in names)
        known = [one for one in configs.values() if one is not None]
        wanted = () if scalar else tuple(dict.fromkeys(pair for one in known for pair in one.wanted))
        raw = scalar or any(one.save_raw_tensor for one in known)
        return Decision(raw, any(one.save_shape for one in known), wanted)

    def to_json_dict(self) -> dict[str, Any]:
        """As JSON-able data, for ``run.json``."""
        return {
            "collections": {name: one.to_json_dict() for name, one in self.collections.items()},
            "included": list(self.included),
        }

    @classmethod
    def from_json_dict(cls, value: Mapping[str, Any]) -> SavePlan:
        """From what `to_json_dict` gives.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it is something else.
        """
        collections = {str(name): Collection.from_dict(one) for name, one in value["collections"].items()}
        return cls(collections, [str(name) for name in value["included"] if name in collections])
