"""`tdbg_lab.attach` for models of Keras: loops of one's own, and ``fit`` without a callback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from tdbg_lab.capture.keras.hyperparameters import hyperparameters
from tdbg_lab.capture.keras.opening import open_keras
from tdbg_lab.capture.keras.session import KerasSession, supported_backend
from tdbg_lab.capture.keras.tape import TapeLoop
from tdbg_lab.capture.opening import accompany
from tdbg_lab.capture.things import by_name
from tdbg_lab.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tdbg_lab.capture.handle import Handle
    from tdbg_lab.config import CaptureConfig

__all__ = ["attach_keras"]


def attach_keras(
    model: Any,
    optimizer: Any,
    *,
    store: str | Path | None,
    settings: CaptureConfig,
    known: Mapping[str, Any],
    given: Mapping[str, Any] | None,
    rules: Any,
    actions: Any,
    profiler: bool,
    **options: Any,
) -> Handle:
    """A handle of models of Keras; see `tdbg_lab.attach`.

    Raises
    ------
    CaptureError
        Something is not what it should be.
    """
    backend = supported_backend()
    models = _named(model, "model", keras.layers.Layer)
    optimizers = _named(optimizer, "optimizer", keras.optimizers.Optimizer)
    described = hyperparameters(next(iter(models.values()))) if models else {}
    handle, engine = open_keras(
        store,
        settings,
        models,
        hyperparameters={**described, **(given or {})},
        known=known,
        phases=profiler,
        **options,
    )
    if not engine.open:  # everything is turned off
        return handle
    try:
        session = KerasSession(engine, handle, models, backend, optimizers)
        if backend.name == "tensorflow":
            session.loop = TapeLoop(session)
        handle.adopt(session)
    except BaseException as error:
        handle.__exit__(type(error), error, None)
        raise
    accompany(engine, rules, actions=actions, profiler=profiler)
    return handle


def _named(things: Any, what: str, of: type) -> dict[str, Any]:
    """One thing, a mapping or a list of them: always a mapping; one thing has the name ``""``."""
    found = by_name(things, of)
    if found is None:
        found = {"": things}
    for name, one in found.items():
        if not isinstance(one, of):
            raise CaptureError(
                f"{what}{f' {name!r}' if name else ''} is of type {type(one).__name__}; "
                f"expected a Keras {of.__name__}, a mapping or a list of them."
            )
    return found
