"""Boosted trees that tell the rows they were grown on, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tdbg_lab.records import Mode
from tdbg_lab.rules.setup.rounds import is_boosted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.rules.view import RunView

__all__ = ["HeldRows", "held_rows", "shares_of_gain"]

_ELSE = ("rank", "lambdarank", "survival", "xendcg")
"""Beginnings of objectives whose predictions need not go with labels over all rows."""
_MAX_CLASSES = 1000
_LEAST_ROWS = 100
_Z = 1.64
"""Standard errors that leave one chance in twenty."""
_TOLD = 0.15
"""Correlation with labels from which predictions go with them. In healthy trainings the least was 0.63."""
_GAIN = "feature_importance/total_gain"


class HeldRows(NamedTuple):
    """How far predictions go with labels: correlations, 1 for all."""

    trained: float
    """On the rows that trees are grown on."""
    held: float
    """On those of the evaluation."""
    error: float
    """Standard error of the latter where there is none."""
    rows: int

    @property
    def tell_nothing(self) -> bool:
        """Whether rows held out are told by chance, as far as that can be said, and the others are not."""
        by_chance = self.held <= _Z * self.error and self.held + _Z * self.error <= _TOLD
        return by_chance and self.trained >= _TOLD


def held_rows(run: RunView) -> HeldRows | None:
    """Compare predictions with labels at the checked round; None where they were not recorded.

    Numbers by their correlation; classes by that of their probabilities with being of the class, over all of
    them, whose standard error is one by the root of the rows times the classes less one.
    """
    if not is_boosted(run):
        return None
    if str(run.info.hyperparameters.get("objective", "")).startswith(_ELSE):
        return None
    trained, held = (_association(run, mode) for mode in (Mode.TRAIN, Mode.EVAL))
    if trained is None or held is None or held[1] < _LEAST_ROWS:
        return None
    return HeldRows(trained[0], held[0], held[2], held[1])


def shares_of_gain(run: RunView) -> NDArray[np.float64] | None:
    """What each feature has of the gain of all splits at the checked round; None if that is not known."""
    for mode in Mode:
        raw = run.raw(_GAIN, mode=mode)
        if raw is not None and raw.ndim == 1 and len(raw) and np.isfinite(raw).all() and raw.sum() > 0:
            return np.asarray(raw, np.float64) / float(raw.sum())
    return None


def _association(run: RunView, mode: Mode) -> tuple[float, int, float] | None:
    """Correlation, rows, and its standard error; None where something is missing or constant."""
    told, labels = run.raw("predictions", mode=mode), run.raw("labels", mode=mode)
    if told is None or labels is None or labels.ndim != 1 or len(told) != len(labels):
        return None
    told, wanted = np.asarray(told, np.float64), np.asarray(labels, np.float64)
    if told.ndim == 2 and 1 < told.shape[1] <= _MAX_CLASSES:
        wanted = (wanted[:, None] == np.arange(told.shape[1])).astype(np.float64)
    elif told.ndim != 1:
        return None
    free = max(1, told.shape[1] - 1) if told.ndim == 2 else 1
    told, wanted = _centred(told), _centred(wanted)
    scale = float(np.linalg.norm(told) * np.linalg.norm(wanted))
    if not np.isfinite(scale) or scale == 0.0:
        return None
    return float((told * wanted).sum()) / scale, len(labels), 1.0 / float(np.sqrt(len(labels) * free))


def _centred(values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values - values.mean(axis=0))
