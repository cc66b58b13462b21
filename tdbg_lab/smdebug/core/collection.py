"""A collection: a named set of tensors that share what is saved and when."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tdbg_lab.smdebug.core.checks import checked
from tdbg_lab.smdebug.core.reduction_config import ReductionConfig
from tdbg_lab.smdebug.core.save_config import SaveConfig, SaveConfigMode
from tdbg_lab.smdebug.exceptions import SMDebugTypeError, SMDebugValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.smdebug.core.modes import ModeKeys

__all__ = ["SCALAR_COLLECTIONS", "Collection", "CollectionKeys"]


class CollectionKeys:
    """Names of the collections that exist without being made."""

    DEFAULT = "default"
    ALL = "all"
    INPUTS = "inputs"
    OUTPUTS = "outputs"
    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    LOSSES = "losses"
    BIASES = "biases"
    LAYERS = "layers"
    SM_METRICS = "sm_metrics"
    OPTIMIZER_VARIABLES = "optimizer_variables"
    TENSORFLOW_SUMMARIES = "tensorflow_summaries"
    METRICS = "metrics"
    HYPERPARAMETERS = "hyperparameters"
    PREDICTIONS = "predictions"
    LABELS = "labels"
    FEATURE_IMPORTANCE = "feature_importance"
    AVERAGE_SHAP = "average_shap"
    FULL_SHAP = "full_shap"
    TREES = "trees"


SCALAR_COLLECTIONS = frozenset({"losses", "metrics", "sm_metrics", "feature_importance", "average_shap"})
"""Their tensors are saved as they are: never reduced."""
_FIELDS = ("name", "include_regex", "tensor_names", "reduction_config", "save_config", "save_histogram")


class Collection:
    """Tensors chosen by name or by pattern.

    Parameters
    ----------
    name
        Its name.
    include_regex
        Regular expressions, searched anywhere in a tensor's name.
    tensor_names
        Names of tensors.
    reduction_config, save_config
        What of its tensors is saved, and when; None for what the hook says.
    save_histogram
        Kept for the predecessor's configurations; histograms are always recorded here.

    Raises
    ------
    SMDebugTypeError
        If a configuration is of another type, or names or patterns are no list of texts.
    """

    def __init__(
        self,
        name: str,
        include_regex: str | list[str] | tuple[str, ...] | set[str] | None = None,
        tensor_names: Iterable[str] | None = None,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | Mapping[ModeKeys, SaveConfigMode] | None = None,
        save_histogram: bool = True,
    ) -> None:
        self.name = name
        self.include_regex: list[str] = []
        if include_regex:
            self.include(list(include_regex) if isinstance(include_regex, (tuple, set)) else include_regex)
        self.tensor_names = tensor_names or ()
        self.reduction_config = reduction_config
        self.save_config = save_config
        self.save_histogram = save_histogram

    def __repr__(self) -> str:
        return f"<Collection {self.to_json()}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Collection) and self.to_json_dict() == other.to_json_dict()

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def tensor_names(self) -> set[str]:
        """Names of its tensors: those given, and those seen."""
        return self._tensor_names

    @tensor_names.setter
    def tensor_names(self, names: Iterable[str]) -> None:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise SMDebugTypeError(f"tensor_names is {names!r}; expected a list of names of tensors.")
        self._tensor_names = set(names)

    @property
    def reduction_config(self) -> ReductionConfig | None:
        """What of its tensors is saved; None for what the hook says."""
        return self._reduction_config

    @reduction_config.setter
    def reduction_config(self, value: ReductionConfig | None) -> None:
        if value is not None and not isinstance(value, ReductionConfig):
            raise SMDebugTypeError(f"reduction_config is {value!r}; expected a ReductionConfig.")
        self._reduction_config = value

    @property
    def save_config(self) -> SaveConfig | None:
        """When its tensors are saved; None for when the hook says."""
        return self._save_config

    @save_config.setter
    def save_config(self, value: SaveConfig | Mapping[ModeKeys, SaveConfigMode] | None) -> None:
        if isinstance(value, dict):
            value = SaveConfig(value)
        if value is not None and not isinstance(value, SaveConfig):
            raise SMDebugTypeError(
                f"save_config is {value!r}; expected a SaveConfig, or a dict of modes to SaveConfigMode."
            )
        self._save_config = value

    def include(self, t: str | list[str]) -> None:
        """Add a pattern, or several.

        Raises
        ------
        SMDebugTypeError
            If it is neither a text nor a list of them.
        SMDebugValueError
            If it is not a regular expression.
        """
        given: Any = t
        patterns = given if isinstance(given, list) else [given]
        if not all(isinstance(one, str) for one in patterns):
            raise SMDebugTypeError(f"include() takes a regular expression or a list of them, not {t!r}.")
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise SMDebugValueError(
                    f"include_regex {pattern!r} of collection {self.name} is not a regular expression: "
                    f"{error}."
                ) from None
            self.include_regex.append(pattern)

    def add_tensor_name(self, tname: str) -> None:
        """Add the name of a tensor."""
        self._tensor_names.add(tname)

    def has_tensor_name(self, tname: str) -> bool:
        """Whether the tensor is known to belong to it by name."""
        return tname in self._tensor_names

    def remove_tensor_name(self, tname: str) -> None:
        """Take the name of a tensor away, if it is there."""
        self._tensor_names.discard(tname)

    def chooses(self, tname: str) -> bool:
        """Whether a tensor belongs to it, by name or by pattern."""
        return tname in self._tensor_names or any(re.search(one, tname) for one in self.include_regex)

    def to_json_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            "name": self.name,
            "include_regex": self.include_regex,
            "tensor_names": sorted(self._tensor_names),
            "reduction_config": self._reduction_config and self._reduction_config.to_json_dict(),
            "save_config": self._save_config and self._save_config.to_json_dict(),
            "save_histogram": self.save_histogram,
        }

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.to_json_dict())

    @classmethod
    def from_dict(cls, params: Mapping[str, Any]) -> Collection:
        """From what `to_json_dict` gives; patterns may be one text with commas.

        Raises
        ------
        SMDebugValueError
            If it is no mapping, or something in it is not part of a collection.
        """
        checked(params, "a collection")
        unknown = [name for name in params if name not in _FIELDS]
        if unknown:
            raise SMDebugValueError(
                f"{unknown[0]!r} is not part of a collection; expected {', '.join(_FIELDS)}."
            )
        if "name" not in params:
            raise SMDebugValueError(f"A collection has no name: found {dict(params)!r:.80}.")
        patterns = params.get("include_regex") or []
        saved = params.get("save_config")
        return cls(
            name=str(params["name"]),
            include_regex=patterns.split(",") if isinstance(patterns, str) else patterns,
            tensor_names=params.get("tensor_names"),
            reduction_config=ReductionConfig.from_dict(params.get("reduction_config")),
            save_config=None if saved is None else SaveConfig.from_dict(saved),
            save_histogram=bool(params.get("save_histogram", True)),
        )

    @classmethod
    def from_json(cls, json_str: str) -> Collection:
        """From JSON."""
        return cls.from_dict(json.loads(json_str))
