"""A handler for the engines of PyTorch Ignite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Self, Unpack

from tdbg_lab.capture.adapters.attachment import Attachment
from tdbg_lab.capture.adapters.settings import AttachSettings, checked_settings
from tdbg_lab.errors import CaptureError, ConflictError, MissingDependencyError
from tdbg_lab.records import Mode

try:
    from ignite.engine import Engine, Events
except ImportError as error:
    raise MissingDependencyError("IgniteHandler needs PyTorch Ignite: pip install pytorch-ignite") from error

if TYPE_CHECKING:
    from tdbg_lab.capture.handle import Handle

__all__ = ["IgniteHandler"]


class IgniteHandler:
    """Capture what an engine trains: ``IgniteHandler(save_every=5).attach(trainer, model, optimizer=opt)``.

    Attaches to the model when the engine starts and detaches when its run ends, also with an
    exception, which is passed on untouched. A stop request ends the run by ``engine.terminate()``.

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
        self._settings = checked_settings("IgniteHandler", settings)
        self._watches: list[_Watch] = []

    @property
    def handle(self) -> Handle | None:
        """The handle of the run that is going on, or of the last one."""
        return self._watches[-1].attachment.handle if self._watches else None

    def attach(
        self,
        engine: Engine,
        model: Any,
        *,
        optimizer: Any = None,
        loss: Any = None,
        evaluators: Any = (),
    ) -> Self:
        """Follow `engine`, which trains `model`.

        Parameters
        ----------
        engine
            The trainer.
        model, optimizer, loss
            As for `tdbg_lab.attach`.
        evaluators
            An engine, a list, or a mapping of them by name: their metrics are logged as
            ``name/metric`` in eval mode.

        Raises
        ------
        CaptureError
            `engine` is none.
        ConflictError
            This handler follows it already.
        """
        if not isinstance(engine, Engine):
            raise CaptureError(f"engine is of type {type(engine).__name__}; expected an ignite Engine.")
        if any(one.engine is engine for one in self._watches):
            raise ConflictError("This IgniteHandler follows the engine already; detach() it first.")
        watched = {"model": model, "optimizer": optimizer, "loss": loss}
        self._watches.append(_Watch(engine, watched, _by_name(evaluators), self._settings))
        return self

    def detach(self) -> None:
        """Follow no engine any more. Idempotent."""
        while self._watches:
            self._watches.pop().close()


class _Watch:
    """One engine that is followed."""

    def __init__(
        self,
        engine: Engine,
        watched: Mapping[str, Any],
        evaluators: Mapping[str, Engine],
        settings: Mapping[str, Any],
    ) -> None:
        self.engine = engine
        self.attachment = Attachment(settings, engine.terminate)
        self._watched = watched
        self._evaluators = evaluators
        self._interrupted = False
        self._started = engine.add_event_handler(Events.STARTED, self._begin)
        self._events: list[Any] = []
        self._follow_run()

    def _follow_run(self) -> None:
        """See how a run ends. An EXCEPTION_RAISED handler would swallow the exception of the user's code."""
        run = self.engine.run

        @wraps(run)
        def followed(*args: Any, **kwargs: Any) -> Any:
            self._interrupted = False
            try:
                state = run(*args, **kwargs)
            except BaseException as error:
                self._end(error)
                raise
            if not self._interrupted:  # else `run` will be called again to go on
                self._end()
            return state

        self.engine.run = followed

    def _begin(self) -> None:
        """The engine starts: what the user attached to it so far comes before us."""
        self._drop_events()
        add = self.engine.add_event_handler
        self._events = [
            add(Events.ITERATION_COMPLETED, self._log_output),
            add(Events.EPOCH_COMPLETED, self._log_metrics),
            add(Events.INTERRUPT, self._interrupt),
            *(
                evaluator.add_event_handler(Events.COMPLETED, self._log_evaluator, name)
                for name, evaluator in self._evaluators.items()
            ),
        ]
        state = self.engine.state
        known = {"max_epochs": state.max_epochs, "epoch_length": state.epoch_length}
        hyperparameters = {name: value for name, value in known.items() if value is not None}
        self.attachment.begin(**self._watched, hyperparameters=hyperparameters)

    def _log_output(self) -> None:
        output = self.engine.state.output
        self.attachment.log(output if isinstance(output, Mapping) else {"output": output}, Mode.TRAIN)

    def _log_metrics(self) -> None:
        state = self.engine.state
        self.attachment.log({**state.metrics, "epoch": state.epoch}, Mode.TRAIN)

    def _log_evaluator(self, evaluator: Engine, name: str) -> None:
        prefix = f"{name}/" if name else ""
        metrics = {f"{prefix}{metric}": value for metric, value in evaluator.state.metrics.items()}
        self.attachment.log(metrics, Mode.EVAL)

    def _interrupt(self) -> None:
        self._interrupted = True

    def _end(self, error: BaseException | None = None) -> None:
        self._drop_events()
        self.attachment.end(error)

    def _drop_events(self) -> None:
        while self._events:
            self._events.pop().remove()

    def close(self) -> None:
        """Leave the engine as it was."""
        self._end()
        self._started.remove()
        if getattr(self.engine.__dict__.get("run"), "__wrapped__", None) is not None:
            del self.engine.run


def _by_name(evaluators: Any) -> dict[str, Engine]:
    """Evaluators by name; a single one has none.

    Raises
    ------
    CaptureError
        Something among them is no engine.
    """
    if isinstance(evaluators, Engine):
        found = {"": evaluators}
    elif isinstance(evaluators, Mapping):
        found = {str(name): one for name, one in evaluators.items()}
    elif isinstance(evaluators, Sequence) and not isinstance(evaluators, str):
        found = {str(index): one for index, one in enumerate(evaluators)}
    else:
        found = {"": evaluators}
    for name, one in found.items():
        if not isinstance(one, Engine):
            raise CaptureError(
                f"evaluators {name!r} is of type {type(one).__name__}; expected an ignite Engine."
            )
    return found
