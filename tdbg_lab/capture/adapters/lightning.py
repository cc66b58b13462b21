"""A callback for the Trainer of Lightning."""

from __future__ import annotations

import sys
from functools import update_wrapper
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

from tdbg_lab.capture.adapters.attachment import Attachment
from tdbg_lab.capture.adapters.settings import AttachSettings, checked_settings
from tdbg_lab.errors import MissingDependencyError
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import MethodType

    from tdbg_lab.capture.handle import Handle

__all__ = ["LightningCallback"]

_STEPS = {"training_step": Mode.TRAIN, "validation_step": Mode.EVAL}


def _lightning() -> Any:
    """Lightning under the name the program knows it by: its classes differ between the two."""
    old = "pytorch_lightning"
    names = (old, "lightning.pytorch") if old in sys.modules else ("lightning.pytorch", old)
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise MissingDependencyError("LightningCallback needs Lightning: pip install lightning")


_pl = _lightning()


class LightningCallback(_pl.Callback):  # type: ignore[misc, name-defined]
    """Capture what a Trainer fits: ``Trainer(callbacks=[LightningCallback(rules="default")])``.

    Attaches when `fit` begins to train (after the sanity check) and detaches when it ends, also
    with an exception. What the module logs with ``self.log`` is logged where and when the Trainer
    logs it. A stop request ends the fit by ``trainer.should_stop``.

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
        self.attachment = Attachment(checked_settings("LightningCallback", settings), self._ask_to_stop)
        self._trainer: Any = None
        self._logger: _Logger | None = None

    @property
    def handle(self) -> Handle | None:
        """The handle of the fit that is going on, or of the last one."""
        return self.attachment.handle

    # -- what the Trainer calls -------------------------------------------------------------------

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Attach; after a checkpoint the steps go on where it was made."""
        self.attachment.begin(
            pl_module,
            optimizer=list(trainer.optimizers),
            hyperparameters=_hyperparameters(trainer, pl_module),
            first_step=_steps_made(trainer, pl_module),
        )
        if self.attachment.handle is None:
            return
        if not pl_module.automatic_optimization:
            self.attachment.handle.called_by_parts()
        self._trainer = trainer
        self._logger = _Logger(trainer, self.attachment)
        trainer.loggers = [*trainer.loggers, self._logger]
        for name, mode in _STEPS.items():
            setattr(pl_module, name, _Seen(getattr(pl_module, name), mode, self.attachment.handle))

    def on_fit_end(self, _trainer: Any, pl_module: Any) -> None:
        """Detach."""
        self._end(pl_module)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Detach; the run says what happened."""
        self._end(pl_module or trainer.lightning_module, exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:  # noqa: ARG002 - passed by name
        """Detach, when nothing else did."""
        self._end(pl_module)

    # -- the end ----------------------------------------------------------------------------------

    def _end(self, pl_module: Any, error: BaseException | None = None) -> None:
        self.attachment.end(error)
        trainer, self._trainer = self._trainer, None
        if trainer is None:
            return
        for name in _STEPS:
            vars(pl_module).pop(name, None)
        trainer.loggers = [one for one in trainer.loggers if one is not self._logger]
        self._logger = None

    def _ask_to_stop(self) -> None:
        if self._trainer is not None:
            self._trainer.should_stop = True


class _Seen:
    """A step of the module, as a forward: it calls the parts of the module, seldom the module.

    A copy of the module, or one that is saved and loaded, has its own step again.
    """

    def __init__(self, step: MethodType, mode: Mode, handle: Handle) -> None:
        update_wrapper(self, step)
        self._step = step
        self._mode = mode
        self._handle = handle

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As the step."""
        with self._handle.forward(self._mode):
            output = self._step(*args, **kwargs)
            loss = output.get("loss") if isinstance(output, dict) else output
            if loss is not None and getattr(loss, "numel", int)() == 1:
                self._handle.log_loss(self._step.__name__.removesuffix("_step"), loss)
        return output

    def __reduce__(self) -> tuple[Any, ...]:
        """The step: of a copy, that of the copy."""
        return getattr, (self._step.__self__, self._step.__name__)


class _Logger(_pl.loggers.logger.Logger):  # type: ignore[misc, name-defined]
    """Gets what the Trainer logs, when it logs it."""

    def __init__(self, trainer: Any, attachment: Attachment) -> None:
        super().__init__()
        self._trainer = trainer
        self.attachment = attachment

    @property
    def name(self) -> str:
        """Of the logger."""
        return "tdbg_lab"

    @property
    def version(self) -> str:
        """Of the run."""
        handle = self.attachment.handle
        return handle.run_path.name if handle is not None else ""

    @property
    def save_dir(self) -> str:
        """As when there is no logger: callbacks ask the first one where to write."""
        return str(self._trainer.default_root_dir)

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """They were given when we attached."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:  # noqa: ARG002
        """Log with the last forward of the loop that is running; our own count of steps holds."""
        mode = Mode.EVAL if self._trainer.validating else Mode.TRAIN
        self.attachment.log(metrics, mode)


def _steps_made(trainer: Any, pl_module: Any) -> int:
    """Steps of a checkpoint; by hand the Trainer counts those of each optimizer."""
    made = int(trainer.global_step)
    return made if pl_module.automatic_optimization else made // max(1, len(trainer.optimizers))


def _hyperparameters(trainer: Any, pl_module: Any) -> dict[str, Any]:
    """The module's own, and those of the Trainer that change the training."""
    known = {
        "max_epochs": trainer.max_epochs,
        "max_steps": trainer.max_steps if trainer.max_steps != -1 else None,
        "accumulate_grad_batches": trainer.accumulate_grad_batches,
        "gradient_clip_val": trainer.gradient_clip_val,
        "precision": trainer.precision,
    }
    return {
        **{name: value for name, value in known.items() if value is not None},
        **dict(pl_module.hparams),
    }
