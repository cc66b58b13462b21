"""A callback for the Trainer of Hugging Face Transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, Unpack

from tdbg_lab.capture.adapters.attachment import Attachment
from tdbg_lab.capture.adapters.settings import AttachSettings, checked_settings
from tdbg_lab.errors import MissingDependencyError
from tdbg_lab.records import Mode

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise MissingDependencyError(
        "TransformersCallback needs Hugging Face Transformers: pip install transformers accelerate"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from tdbg_lab.capture.handle import Handle

__all__ = ["TransformersCallback"]


class TransformersCallback(TrainerCallback):  # type: ignore[misc]
    """Capture what a Trainer trains: ``Trainer(..., callbacks=[TransformersCallback(rules="default")])``.

    Attaches when training begins and detaches when it ends. A Trainer does not tell its callbacks
    when training raises: used as a context manager around ``trainer.train()`` the callback detaches
    at once, otherwise when training begins again, the model goes, or the process ends.

    A stop request ends the training after the current step, as a callback's
    ``control.should_training_stop`` does: ``trainer.train()`` returns.

    Parameters
    ----------
    **settings
        Those of `tdbg_lab.attach`, but model, optimizer and loss.

    Raises
    ------
    ConfigError
        A setting is wrong.
    """

    def __init__(self, **settings: Unpack[AttachSettings]) -> None:
        self.attachment = Attachment(checked_settings("TransformersCallback", settings), self._ask_to_stop)
        self._control: Any = None

    @property
    def handle(self) -> Handle | None:
        """The handle of the training that is going on, or of the last one."""
        return self.attachment.handle

    # -- what the Trainer calls -------------------------------------------------------------------

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Attach; after a checkpoint the steps go on where it was made."""
        self._control = control
        model = kwargs.get("model")
        self.attachment.begin(
            _modules(model),
            optimizer=kwargs.get("optimizer"),
            hyperparameters=_hyperparameters(args, model),
            first_step=int(state.global_step),
        )

    def on_step_end(self, _args: Any, _state: Any, control: Any, **_kwargs: Any) -> None:
        """Stop when somebody asked for it."""
        if self.attachment.stop_requested:
            control.should_training_stop = True

    def on_log(
        self, _args: Any, _state: Any, _control: Any, logs: Mapping[str, Any] | None = None, **_kwargs: Any
    ) -> None:
        """Log what the Trainer logs, under its names."""
        logs = logs or {}
        evaluated = {name: value for name, value in logs.items() if name.startswith(("eval_", "test_"))}
        trained = {name: value for name, value in logs.items() if name not in evaluated}
        if evaluated:  # then `epoch` belongs to it
            evaluated, trained = {**evaluated, **trained}, {}
        self.attachment.log(evaluated, Mode.EVAL)
        self.attachment.log(trained, Mode.TRAIN)

    def on_train_end(self, _args: Any, _state: Any, _control: Any, **_kwargs: Any) -> None:
        """Detach."""
        self.attachment.end()
        self._control = None

    def _ask_to_stop(self) -> None:
        if self._control is not None:
            self._control.should_training_stop = True

    # -- around trainer.train() -------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.attachment.end(error)


def _modules(model: Any) -> Any:
    """The model, or the modules in an object that is none and holds it, as SetFit calls its own a model."""
    from torch.nn import Module

    if isinstance(model, Module):
        return model
    held = {name: part for name, part in vars(model).items() if isinstance(part, Module)}
    return next(iter(held.values())) if len(held) == 1 else held or model


def _hyperparameters(args: Any, model: Any) -> dict[str, Any]:
    """The training arguments that are set (the library hides tokens), and the model's configuration."""
    found = {name: value for name, value in args.to_dict().items() if value not in (None, "", [], {})}
    config: Any = getattr(model, "config", None)
    if hasattr(config, "to_diff_dict"):
        found["model"] = config.to_diff_dict()
    return found
