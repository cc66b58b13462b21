"""`KerasCallback`: capture for ``fit``, ``evaluate`` and ``predict``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import keras

from tdbg_lab.capture.callers import caller_local
from tdbg_lab.capture.companions import check_rules
from tdbg_lab.capture.given import check_given
from tdbg_lab.capture.keras.hyperparameters import hyperparameters
from tdbg_lab.capture.keras.opening import open_keras
from tdbg_lab.capture.keras.scalars import LOSS_NAME
from tdbg_lab.capture.keras.session import KerasSession, supported_backend
from tdbg_lab.capture.of_keras import KERAS_2, is_of_keras_2
from tdbg_lab.capture.opening import accompany
from tdbg_lab.capture.training_scope import end_with
from tdbg_lab.config import CaptureConfig
from tdbg_lab.errors import CaptureError
from tdbg_lab.records import Kind, Mode
from tdbg_lab.store.remote import is_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from tdbg_lab.capture.handle import Handle
    from tdbg_lab.capture.opening import IfExists
    from tdbg_lab.capture.stopping import StopReason

__all__ = ["KerasCallback"]


class KerasCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Captures what happens inside a model while Keras trains it, on any of its backends.

    ``model.fit(..., callbacks=[KerasCallback(store="runs/first")])``. The run begins with the first
    ``fit``, ``evaluate`` or ``predict`` the callback is given to and ends with it; given to another
    one, it goes on with the same run.

    When a step raises, the run ends as failed at once. What else raises within ``fit`` (the data,
    another callback) Keras tells nobody: used as a context manager around ``fit`` the callback ends
    the run then, too.

    Parameters
    ----------
    store, save_every, collections, rules, actions, config, name, hyperparameters, tags, notes, if_exists
        As for `tdbg_lab.attach`.
    sample_rows, profiler, strict, checkpoint, storage_options
        As for `tdbg_lab.attach`.
    on_stop
        Called with the reason when a stop is requested. By default ``fit`` ends after the step, as
        with ``model.stop_training = True``; nothing is raised.

    Raises
    ------
    ConfigError
        A setting is wrong; the message says which one.
    CaptureError
        Keras uses a backend that does not train.
    """

    def __init__(
        self,
        store: str | Path | None = None,
        *,
        save_every: int | Literal["auto"] | None = None,
        collections: Any = None,
        rules: Any = None,
        actions: Any = (),
        config: CaptureConfig | Mapping[str, Any] | str | Path | None = None,
        name: str | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
        notes: str = "",
        if_exists: IfExists = "new",
        sample_rows: int | None = None,
        profiler: bool = True,
        strict: bool = False,
        checkpoint: Callable[[StopReason], object] | None = None,
        on_stop: Callable[[StopReason], object] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._settings = CaptureConfig.build(
            config, save_every=save_every, collections=collections, sample_rows=sample_rows
        )
        check_rules(rules)
        check_given(
            {
                "store": store,
                "name": name,
                "hyperparameters": hyperparameters,
                "tags": tags,
                "notes": notes,
                "if_exists": if_exists,
                "actions": actions,
            }
        )
        self._backend = supported_backend()
        self._store: str | Path | None = store
        self._known: dict[str, Any] = {"name": name, "tags": tags, "notes": notes}
        self._hyperparameters = dict(hyperparameters or {})
        self._if_exists: IfExists = if_exists
        self._rules = rules
        self._actions = actions
        self._profiler = profiler
        self._strict = strict
        self._storage_options = storage_options
        self._checkpoint = checkpoint
        self._on_stop = on_stop
        self._handle: Handle | None = None
        self._session: KerasSession | None = None
        self._depth = 0

    @property
    def handle(self) -> Handle:
        """The handle of the run, for ``record``, ``log`` and ``run``.

        Raises
        ------
        CaptureError
            Nothing has begun yet.
        """
        if self._handle is None:
            raise CaptureError("The callback has no run yet: it begins with fit, evaluate or predict.")
        return self._handle

    @property
    def run_path(self) -> Path:
        """The run directory; see `handle`."""
        return self.handle.run_path

    def detach(self) -> None:
        """End the capture now. Idempotent."""
        if self._handle is not None:
            self._handle.detach()
        self._depth = 0

    # -- around fit -------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._failed(error)
        else:
            self.detach()

    # -- begin and end ----------------------------------------------------------------------------

    def set_model(self, model: Any) -> None:
        """Keras tells what it trains.

        Raises
        ------
        CaptureError
            The model is one of Keras 2, which does not call us as Keras 3 does.
        """
        if is_of_keras_2(model):
            raise CaptureError(f"The callback was given to a model {KERAS_2}.")
        super().set_model(model)

    def _begin(self) -> None:
        model = self.model
        if self._handle is not None and self._handle.attached:
            self._depth += 1
            if self._session is not None and self._session.models.get("") is model:
                return
            self._handle.detach()
        self._depth = 1
        self._open(model)

    def _open(self, model: Any) -> None:
        again = self._handle is not None
        if self._handle is not None and not is_url(self._store or ""):
            self._store = self._handle.run_path  # beside an existing run it has another name
        handle, engine = open_keras(
            self._store,
            self._settings,
            {"": model},
            hyperparameters={**hyperparameters(model, self.params), **self._hyperparameters},
            known=self._known,
            if_exists="resume" if again else self._if_exists,
            phases=self._profiler,
            strict=self._strict,
            checkpoint=self._checkpoint,
            on_stop=self._stop,
            storage_options=self._storage_options,
        )
        self._handle = handle
        if not engine.open:  # everything is turned off
            return
        try:
            self._session = KerasSession(engine, handle, {"": model}, self._backend)
        except BaseException as error:
            handle.__exit__(type(error), error, None)
            raise
        self._session.failed = self._failed
        handle.adopt(self._session)
        container = caller_local("self", keras.callbacks.CallbackList)
        if container is not None:
            end_with(container, handle, container.callbacks)
        accompany(engine, self._rules, actions=self._actions, profiler=self._profiler)

    def _stop(self, reason: StopReason) -> None:
        if self._on_stop is not None:
            self._on_stop(reason)
        elif self._session is not None:  # on JAX, `self.model` would put the state of the step before back
            self._session.models[""].stop_training = True

    def _failed(self, error: BaseException) -> None:
        """End the run at once: Keras tells no callback that it raises."""
        if self._handle is not None:
            self._handle.__exit__(type(error), error, None)
        self._depth = 0

    def _end(self) -> None:
        self._depth = max(0, self._depth - 1)
        if not self._depth:
            self.detach()

    # -- what Keras calls -------------------------------------------------------------------------

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002, D102
        self._begin()

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002, D102
        self._depth = 1
        self._end()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002, D102
        session = self._session
        if session is not None and session.engine.open:
            session.scalars.new_epoch()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Log the metrics of the epoch: ``epoch/loss``, ``epoch/val_loss``, ..."""
        session = self._session
        if session is None or not session.engine.open:
            return
        values = {f"epoch/{name}": float(value) for name, value in (logs or {}).items() if _is_number(value)}
        step = max(0, session.engine.step - 1)
        session.engine.guard.run(
            "epochs", session.scalars.put, step, {"epoch/number": float(epoch), **values}
        )

    def on_test_begin(self, logs: Any = None) -> None:  # noqa: ARG002, D102
        self._begin()

    def on_test_end(self, logs: Any = None) -> None:
        """Log what the whole pass gave, in eval mode."""
        session = self._session
        if session is not None and session.engine.open:
            session.engine.guard.run("metrics", self._add_metrics, session, dict(logs or {}))
        self._end()

    @staticmethod
    def _add_metrics(session: KerasSession, logs: dict[str, Any]) -> None:
        engine = session.engine
        engine.enter_mode(Mode.EVAL)
        for name, value in logs.items():
            if _is_number(value):
                kind = Kind.LOSS if name == "loss" else Kind.SCALAR
                key, membership = engine.key(LOSS_NAME if name == "loss" else name, kind)
                if membership.mask & engine.mask:
                    engine.recorder.add_scalar(key, float(value))

    def on_predict_begin(self, logs: Any = None) -> None:  # noqa: ARG002, D102
        self._begin()

    def on_predict_end(self, logs: Any = None) -> None:  # noqa: ARG002, D102
        self._end()


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
