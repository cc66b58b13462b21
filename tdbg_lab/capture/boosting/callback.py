"""What the callbacks of both libraries share: their arguments, the beginning and the end of a run."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

from tdbg_lab.capture.boosting.collections import boosting_collections
from tdbg_lab.capture.boosting.session import BoostingSession, Data
from tdbg_lab.capture.companions import check_rules
from tdbg_lab.capture.given import check_given
from tdbg_lab.capture.opening import Place, RunFacts, accompany, open_handle
from tdbg_lab.config import CaptureConfig
from tdbg_lab.errors import CaptureError, ConfigError, TdbgError, TrainingStopped
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from tdbg_lab.capture.boosting.model import BoostedModel, Metric
    from tdbg_lab.capture.handle import Handle
    from tdbg_lab.capture.opening import IfExists
    from tdbg_lab.capture.stopping import StopReason
    from tdbg_lab.run import Run

__all__ = ["BoostingCallback"]

_log = logging.getLogger("tdbg_lab")
_MAX_NAMES = 10_000


class BoostingCallback:
    """Records every boosting round into a run directory. Nothing of it ever raises into training.

    Parameters
    ----------
    store
        Run directory; by default ``runs/<date and time>``. Each training makes a run.
    train, validation
        Data to predict and explain: ``(X, y)``, ``X``, or a ``DMatrix`` (XGBoost). None records
        metrics, importance and trees only.
    sample_rows, shap_rows
        Rows of them whose predictions and labels, and whose SHAP values are kept: evenly spread,
        the same ones at every step.
    save_every
        Distance of the saved rounds, 10 unless `config` says otherwise. Metrics are kept always.
    collections
        What to capture: as for `tdbg_lab.attach`, with the names metrics, losses,
        hyperparameters, feature_importance, predictions, labels, average_shap, full_shap, trees.
    rules, actions, config, name, hyperparameters, tags, notes, if_exists, profiler, strict, checkpoint,
    on_stop, storage_options
        As for `tdbg_lab.attach`; hyper-parameters of the library are added to those given.

    Raises
    ------
    ConfigError
        A setting is wrong; the message says which one.
    """

    _framework = ""

    def __init__(
        self,
        store: str | Path | None = None,
        *,
        train: Any = None,
        validation: Any = None,
        sample_rows: int = 1024,
        shap_rows: int = 128,
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
        profiler: bool = True,
        strict: bool = False,
        checkpoint: Callable[[StopReason], object] | None = None,
        on_stop: Callable[[StopReason], object] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        _check_rows("sample_rows", sample_rows)
        _check_rows("shap_rows", shap_rows)
        self._settings = CaptureConfig.build(
            config, save_every=save_every, collections=collections, defaults=boosting_collections()
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
        self._store = store
        self._given = {Mode.TRAIN: ("train", train), Mode.EVAL: ("validation", validation)}
        for what, data in self._given.values():
            if data is not None:
                self._check_data(data, what)
        self._rows = sample_rows, min(shap_rows, sample_rows)
        self._hyperparameters = dict(hyperparameters or {})
        self._facts = RunFacts(name=name, tags=tuple(tags), notes=notes, framework=self._framework)
        self._rules = rules
        self._actions = actions
        self._if_exists = if_exists
        self._profiler = profiler
        self._strict = strict
        self._checkpoint = checkpoint
        self._on_stop = on_stop
        self._storage_options = storage_options
        self._session: BoostingSession | None = None
        self.handle: Handle | None = None
        """The handle of the latest training; None before the first."""

    # -- what the user asks -----------------------------------------------------------------------

    @property
    def run_path(self) -> Path:
        """Run directory of the latest training.

        Raises
        ------
        CaptureError
            There was none yet.
        """
        return self._opened().run_path

    @property
    def run(self) -> Run:
        """Run of the latest training, as it stands now.

        Raises
        ------
        CaptureError
            There was none yet.
        """
        return self._opened().run

    def _opened(self) -> Handle:
        if self.handle is None:
            raise CaptureError(f"{self!r} has seen no training yet: pass it to one with callbacks=[...].")
        return self.handle

    def __repr__(self) -> str:
        state = "no training yet" if self.handle is None else self.handle.status()
        return f"<{type(self).__name__}: {state}>"

    def close(self) -> None:
        """End the run, where the training did not come to its end. Idempotent."""
        self._end(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(error)

    def __getstate__(self) -> dict[str, Any]:
        """A copy for another process or estimator records a run of its own."""
        return {**self.__dict__, "_session": None, "handle": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Settings do not change and data are shared: estimators copy their callbacks freely."""
        twin = self.__class__.__new__(self.__class__)
        twin.__dict__.update(self.__getstate__())
        return twin

    # -- for loops, which call no callback ---------------------------------------------------------

    def begin_loop(self, booster: Any) -> None:
        """A loop of the program's own has made a first round of `booster`: make the run."""
        raise NotImplementedError

    def told_metrics(self, booster: Any, result: Any) -> list[Metric]:
        """Metrics that a method of `booster` has told."""
        raise NotImplementedError

    def record_round(self, metrics: Sequence[Metric]) -> TrainingStopped | None:
        """Record a round of a loop; what the loop is to end with, when somebody asked it to stop."""
        session = self._session
        if session is None or not session.round(metrics):
            return None
        self._end(None)
        return session.stopped

    # -- what the libraries' own callbacks call ---------------------------------------------------

    def _check_data(self, data: Any, what: str) -> None:
        """Refuse data of a wrong type at once."""
        raise NotImplementedError

    def _begin(
        self,
        model: BoostedModel | None,
        version: str,
        hyperparameters: Mapping[str, Any],
        *,
        place: Place | None = None,
        store: str | Path | None = None,
    ) -> None:
        """A training begins."""
        self._end(None)
        try:
            self._open(model, version, hyperparameters, place or Place(), store or self._store)
        except Exception as error:
            self._end(error)
            if self._strict:
                raise
            text = str(error) if isinstance(error, TdbgError) else f"{type(error).__name__}: {error}"
            _log.warning("tdbg-lab: this training is not recorded. Cause: %s", text)

    def _open(
        self,
        model: BoostedModel | None,
        version: str,
        hyperparameters: Mapping[str, Any],
        place: Place,
        store: str | Path | None,
    ) -> None:
        known = {**hyperparameters, **self._hyperparameters}
        features = list(model.feature_names[:_MAX_NAMES]) if model is not None else []
        facts = replace(
            self._facts,
            hyperparameters=known,
            framework_version=version,
            capture={"features": features, "aliases": {}},
        )
        self.handle, engine = open_handle(
            store,
            self._settings,
            facts,
            place=place,
            if_exists=self._if_exists,
            phases=self._profiler,
            strict=self._strict,
            checkpoint=self._checkpoint,
            on_stop=self._on_stop,
            storage_options=self._storage_options,
        )
        data = {mode: Data(what, given) for mode, (what, given) in self._given.items() if given is not None}
        self._session = BoostingSession(
            engine,
            self.handle,
            model,
            data,
            rows=self._rows[0],
            shap_rows=self._rows[1],
            chief=place.rank == 0,
        )
        self._session.begin(known)
        accompany(engine, self._rules, actions=self._actions, profiler=self._profiler, place=place)

    def _round(self, metrics: Sequence[Metric]) -> bool:
        """A round is complete; True when the training is to stop."""
        return self._session is not None and self._session.round(metrics)

    def _end(self, error: BaseException | None) -> None:
        """The training is over. Idempotent."""
        session, self._session = self._session, None
        if session is None or self.handle is None:
            return
        if error is None:
            self.handle.detach()
        else:
            self.handle.__exit__(type(error), error, None)


def _check_rows(argument: str, rows: Any) -> None:
    if not isinstance(rows, int) or rows < 1:
        raise ConfigError(f"{argument} is {rows!r}; expected a number of rows, at least 1.")
