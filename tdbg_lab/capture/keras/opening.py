"""Opening a run for models of Keras, by the callback or by `tdbg_lab.attach`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from tdbg_lab.capture.keras.naming import layer_sites, weight_sites
from tdbg_lab.capture.opening import RunFacts, open_handle

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.handle import Handle
    from tdbg_lab.config import CaptureConfig

__all__ = ["open_keras"]


def open_keras(
    store: str | Path | None,
    settings: CaptureConfig,
    models: Mapping[str, Any],
    *,
    hyperparameters: Mapping[str, Any],
    known: Mapping[str, Any],
    **options: Any,
) -> tuple[Handle, Engine]:
    """A handle with nothing hung on it yet; see `tdbg_lab.capture.opening.open_handle`."""
    weights = weight_sites(layer_sites(models))
    facts = RunFacts(
        **known,
        hyperparameters=hyperparameters,
        framework="keras",
        framework_version=str(keras.__version__),
        capture={
            "aliases": {other: site.name for site in weights for other in site.aliases},
            "backend": keras.backend.backend(),
        },
    )
    return open_handle(store, settings, facts, **options)
