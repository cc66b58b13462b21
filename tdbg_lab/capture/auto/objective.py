"""The number that ``backward()`` is called on: the loss of programs that compute it by functions."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.amp import GradScaler

    from tdbg_lab.capture.pytorch.session import TorchSession

__all__ = ["ObjectiveWatch"]


class ObjectiveWatch:
    """Puts itself around ``torch.autograd.backward``, which ``Tensor.backward`` calls, until `stop`.

    Parameters
    ----------
    session
        Gives the session of the training that a backward belongs to, or None.
    passed
        Called when a backward is over.
    """

    def __init__(self, session: Callable[[], TorchSession | None], passed: Callable[[], None]) -> None:
        self._session = session
        self._passed = passed
        self._original: Callable[..., Any] | None = None
        self.scalers: WeakSet[GradScaler] = WeakSet()
        """Those that exist: an enabled one has multiplied what ``backward`` is called on."""

    def start(self) -> None:
        """Look from now on."""
        original = self._original = torch.autograd.backward

        @wraps(original)
        def followed(tensors: Any, *args: Any, **kwargs: Any) -> None:
            session = None
            if isinstance(tensors, torch.Tensor) and tensors.numel() == 1:
                session = self._session()
                if session is not None:
                    session.take_objective(tensors, self._scale)
            original(tensors, *args, **kwargs)
            if session is not None:
                session.end_backward()
            self._passed()

        torch.autograd.backward = followed

    def stop(self) -> None:
        """Look no longer. Idempotent."""
        original, self._original = self._original, None
        if original is not None:
            torch.autograd.backward = original

    def _scale(self) -> float:
        return next((one.get_scale() for one in self.scalers if one.is_enabled()), 1.0)
