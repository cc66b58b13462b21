"""What tdbg-lab raises. Each error also inherits the builtin a caller would catch.

::

    TdbgError
    ├── ConfigError (ValueError)             a setting is wrong
    ├── NotFoundError (LookupError)          no such run, tensor, step, view, rule
    │   └── StepNotFoundError
    ├── StoreError (OSError)                 a run directory cannot be read or written
    │   └── DeniedError (PermissionError)    it may not be written by this user
    ├── AccessError (PermissionError)        a path outside the run roots
    ├── ConflictError (RuntimeError)         the thing is in a state that forbids this
    ├── MissingDependencyError (ImportError) an extra is not installed
    └── CaptureError (RuntimeError)          a model or optimizer cannot be attached to
    TrainingStopped (Exception)              raised at a step boundary because a stop was asked for

A message says what was found, what was expected, and what to do. Messages may reach a browser:
they hold no secrets and no path outside the run roots.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AccessError",
    "CaptureError",
    "ConfigError",
    "ConflictError",
    "DeniedError",
    "MissingDependencyError",
    "NotFoundError",
    "StepNotFoundError",
    "StoreError",
    "TdbgError",
    "TrainingStopped",
]


class TdbgError(Exception):
    """Root of all errors of tdbg-lab."""

    http_status: ClassVar[int] = 500


class ConfigError(TdbgError, ValueError):
    """A setting or a parameter is wrong."""

    http_status = 400


class NotFoundError(TdbgError, LookupError):
    """There is no such run, tensor, view or rule."""

    http_status = 404


class StepNotFoundError(NotFoundError):
    """The tensor exists, but not at this step."""


class StoreError(TdbgError, OSError):
    """A run directory cannot be read or written."""


class DeniedError(StoreError, PermissionError):
    """A run directory may not be written by the user of this process: it is somebody else's."""

    http_status = 403

    @classmethod
    def of(cls, what: str, error: OSError) -> StoreError:
        """The error that says what cannot be done, and why: of this class where it is for want of a right."""
        kind = cls if isinstance(error, PermissionError) else StoreError
        return kind(f"{what}: {error.strerror or error}.")


class AccessError(TdbgError, PermissionError):
    """A path leads outside the configured run roots."""

    http_status = 403


class ConflictError(TdbgError, RuntimeError):
    """The run is in a state that forbids what was asked for."""

    http_status = 409


class MissingDependencyError(TdbgError, ImportError):
    """An optional dependency is not installed; the message has the command that installs it."""


class CaptureError(TdbgError, RuntimeError):
    """A model, loss or optimizer cannot be attached to."""


class TrainingStopped(Exception):  # noqa: N818 - an event, not a failure
    """Raised in the training loop at a step boundary, because somebody asked the run to stop.

    It is not a `TdbgError`: code that catches our errors must not swallow a stop. In a notebook it
    prints as one line.
    """

    def __init__(self, reason: str, *, step: int) -> None:
        super().__init__(f"Training stopped at step {step}: {reason}")
        self.reason = reason
        self.step = step

    def _render_traceback_(self) -> list[str]:
        """What IPython prints instead of a traceback."""
        return [str(self)]
