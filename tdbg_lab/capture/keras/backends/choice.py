"""Which backend there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.capture.keras.backends.base import Backend

__all__ = ["backend_named"]


def backend_named(name: str) -> Backend | None:
    """The backend of Keras with this name; None when it is not supported."""
    if name == "tensorflow":
        from tdbg_lab.capture.keras.backends.tensorflow import TensorFlowBackend

        return TensorFlowBackend()
    if name == "jax":
        from tdbg_lab.capture.keras.backends.jax import JaxBackend

        return JaxBackend()
    if name == "torch":
        from tdbg_lab.capture.keras.backends.torch import TorchBackend

        return TorchBackend()
    return None
