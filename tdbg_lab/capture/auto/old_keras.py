"""Says of what Keras 2 trains that it is not captured."""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.of_keras import KERAS_2
from tdbg_lab.listening import forget, listen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.auto.watch import AutoWatch
    from tdbg_lab.listening import Listeners

__all__ = ["OldKerasFinder"]


class OldKerasFinder:
    """Hears of ``Model.fit``."""

    def __init__(self, watch: AutoWatch, module: str) -> None:
        self._watch = watch
        self._model: Any = sys.modules[module].Model  # type: ignore[attr-defined, unused-ignore]

    def start(self) -> None:
        """Listen."""
        listen(self._model, "fit", self, _heard)

    def stop(self) -> None:
        """Listen no longer."""
        forget(self._model, "fit", self)

    def note(self) -> None:
        """Something is trained."""
        self._watch.missed = f"what trains is {KERAS_2}"


def _heard(original: Callable[..., Any], listeners: Listeners[OldKerasFinder]) -> Callable[..., Any]:
    @wraps(original)
    def fit(*args: Any, **kwargs: Any) -> Any:
        for one in listeners:
            one.note()
        return original(*args, **kwargs)

    return fit
