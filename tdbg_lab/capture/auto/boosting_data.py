"""What trees are boosted on and evaluated with, where rows of it can be picked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.capture.boosting.sampling import split
from tdbg_lab.capture.callers import caller_frame
from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["data_of"]

_TABLES = frozenset({"numpy", "pandas", "scipy"})
"""Packages whose tables rows are picked from."""
_MAX_FRAMES = 9
"""From here to ``fit``, by way of those who stand in for ``train``."""


def data_of(library: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments ``train`` and ``validation`` of a callback, from those of ``train(params, data, ...)``.

    What is left out: data that only the library can read (quantised, in a file, on a device), and such
    that predictions depend on more than its rows.
    """
    name = {"xgboost": "dtrain", "lightgbm": "train_set"}[library]
    training = args[1] if len(args) > 1 else kwargs.get(name)
    of = _of_xgboost if library == "xgboost" else _of_lightgbm
    train, validation = of(training, kwargs)
    return {what: data for what, data in (("train", train), ("validation", validation)) if data is not None}


def _of_xgboost(matrix: Any, kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    kind = sys.modules["xgboost"].DMatrix  # type: ignore[attr-defined, unused-ignore]
    if type(matrix) is kind:
        others = [one for one, _ in kwargs.get("evals") or () if type(one) is kind and one is not matrix]
        return matrix, next(iter(others), None)
    return _of_estimator()


def _of_estimator() -> tuple[Any, Any]:
    """The tables that an estimator of XGBoost was given: it trains on quantised ones."""
    fitted = _locals_of_fit()
    if not fitted or not _by_rows_alone(fitted["self"]) or fitted.get("base_margin") is not None:
        return None, None
    features = fitted.get("X")
    others = [one for one in fitted.get("eval_set") or () if one[0] is not features]
    return _table(features, fitted.get("y")), _table(*others[0]) if others else None


def _by_rows_alone(estimator: Any) -> bool:
    """Whether metrics of an estimator are of single rows, in which only NaN is missing."""
    return "Ranker" not in type(estimator).__name__ and bool(np.isnan(estimator.missing))


def _locals_of_fit() -> dict[str, Any]:
    """Local variables of ``XGBModel.fit``, if that is what trains; which data it has is not public."""
    kind = sys.modules["xgboost"].XGBModel  # type: ignore[attr-defined, unused-ignore]
    frame = caller_frame("self", kind, most=_MAX_FRAMES)
    return frame.f_locals if frame is not None and frame.f_code.co_name == "fit" else {}


def _of_lightgbm(dataset: Any, kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    others = [one for one in kwargs.get("valid_sets") or () if one is not dataset]
    return _rows(dataset), _rows(others[0]) if others else None


def _rows(dataset: Any) -> Any:
    """Table and labels of a `lightgbm.Dataset` that has not given them away yet."""
    if getattr(dataset, "init_score", None) is not None:
        return None
    return _table(getattr(dataset, "data", None), getattr(dataset, "label", None))


def _table(features: Any, labels: Any) -> Any:
    """Both, where rows of them can be picked."""
    if labels is None or type(features).__module__.partition(".")[0] not in _TABLES:
        return None
    try:
        split((features, np.asarray(labels)), "train")
    except (ConfigError, TypeError, ValueError):
        return None
    return features, labels
