"""Rows of the data a user gives: bounded, evenly spread, the same at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["chosen", "fitting", "numbers", "rows_of", "split"]


def split(data: Any, what: str) -> tuple[Any, Any]:
    """Features and labels of ``(X, y)`` or ``X``.

    Raises
    ------
    ConfigError
        It is neither.
    """
    features, labels = data if isinstance(data, (tuple, list)) and len(data) == 2 else (data, None)
    if isinstance(features, list):
        features = np.asarray(features)
    shape = getattr(features, "shape", None)
    if shape is None or len(shape) != 2:
        found = type(data).__name__ if shape is None else f"an array of {len(shape)} dimensions"
        raise ConfigError(
            f"{what} is {found}; expected a table of rows and features, (table, labels), "
            "or the data set type of the library where it is supported."
        )
    if labels is not None and len(labels) != shape[0]:
        raise ConfigError(f"{what} has {shape[0]} rows but {len(labels)} labels; give one label a row.")
    return features, labels


def fitting(n_features: int, expected: int, what: str) -> None:
    """Check that data have the features of the model.

    Raises
    ------
    ConfigError
        They have not.
    """
    if n_features != expected:
        raise ConfigError(
            f"{what} has {n_features} features, the model is trained on {expected}; "
            "give data with the same columns."
        )


def chosen(n: int, limit: int) -> NDArray[np.int64]:
    """At most `limit` of `n` rows, evenly spread, the first one among them."""
    if n <= limit:
        return np.arange(n)
    return np.arange(limit) * n // limit


def rows_of(table: Any, picks: NDArray[np.int64]) -> Any:
    """These rows of an array, a sparse matrix or a data frame."""
    if hasattr(table, "iloc"):
        return table.iloc[picks]
    if hasattr(table, "tocsr"):
        return table.tocsr()[picks]
    return table[picks]


def numbers(labels: Any, picks: NDArray[np.int64]) -> NDArray[Any] | None:
    """Labels of these rows; texts become the index of their sorted values; None stays None."""
    if labels is None:
        return None
    values = np.asarray(labels)
    if values.dtype.kind in "USO":
        _, values = np.unique(values.astype(str), return_inverse=True)
    return np.asarray(values)[picks]
