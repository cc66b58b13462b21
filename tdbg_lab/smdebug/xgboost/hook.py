"""The hook for XGBoost: a callback of ``xgboost.train`` and of the scikit-learn estimators.

===========================================  ===================================================
``train-logloss``                            metric of an evaluation set
``hyperparameters/<name>``                   at the first saved step
``predictions``, ``labels``                  of the validation data, else of the training data
``feature_importance/<kind>/<feature>``      share of a feature; five kinds
``average_shap/<feature>``                   mean absolute SHAP value, ``full_shap/<feature>`` of each row
``trees/<column>``                           the trees of the round, column by column
===========================================  ===================================================

A step is a boosting round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tdbg_lab.errors import MissingDependencyError, TrainingStopped
from tdbg_lab.records import Kind
from tdbg_lab.smdebug.core.collection import SCALAR_COLLECTIONS, CollectionKeys
from tdbg_lab.smdebug.core.hook import BaseHook
from tdbg_lab.stats import summarize
from tdbg_lab.stats.block import scalar_block

try:
    import xgboost
except ImportError as error:
    raise MissingDependencyError(
        "This hook needs XGBoost, which is not installed: pip install 'tdbg-lab[xgboost]'."
    ) from error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Hook"]

_IMPORTANCE = ("weight", "gain", "cover", "total_gain", "total_cover")


class Hook(BaseHook, xgboost.callback.TrainingCallback):
    """Saves every tenth boosting round; arguments as `BaseHook`, and some of its own.

    ::

        hook = Hook(out_dir="runs/first", train_data=dtrain, validation_data=dtest)
        xgboost.train(params, dtrain, evals=[(dtest, "validation")], callbacks=[hook])

    Parameters
    ----------
    hyperparameters
        Parameters of the booster.
    train_data, validation_data
        ``DMatrix`` to predict and to explain; the second when there is one. Both are attributes too.
    """

    framework = "xgboost"
    default_interval = 10
    always_saved = (CollectionKeys.METRICS,)
    default_collections: ClassVar[Mapping[str, Sequence[str]]] = {
        CollectionKeys.ALL: [".*"],
        CollectionKeys.DEFAULT: [],
        CollectionKeys.HYPERPARAMETERS: ["^hyperparameters/.*$"],
        CollectionKeys.METRICS: ["^[a-zA-Z_]+-[a-zA-Z0-9_@.]+$"],
        CollectionKeys.LOSSES: ["^[a-zA-Z_]+-.+(?<!(auc|map))$"],
        CollectionKeys.PREDICTIONS: ["^predictions$"],
        CollectionKeys.LABELS: ["^labels$"],
        CollectionKeys.FEATURE_IMPORTANCE: ["^feature_importance/.*"],
        CollectionKeys.AVERAGE_SHAP: ["^average_shap/(?!bias$).*"],
        CollectionKeys.FULL_SHAP: ["^full_shap/(?!bias$).*"],
        CollectionKeys.TREES: ["^trees/.*"],
    }

    def __init__(
        self,
        *args: Any,
        hyperparameters: Mapping[str, Any] | None = None,
        train_data: Any = None,
        validation_data: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.hyperparameters = dict(hyperparameters or {})
        self.train_data = train_data
        self.validation_data = validation_data

    # -- what XGBoost calls ------------------------------------------------------------------------

    def after_iteration(self, model: Any, _epoch: int, evals_log: Mapping[str, Any]) -> bool:
        """Save a round. True ends the training, because somebody asked for it."""
        self._begin_step()
        if self._due:
            self._guard.run("metrics", self._metrics, evals_log)
            for collection, save in (
                (CollectionKeys.HYPERPARAMETERS, self._hyperparameters),
                (CollectionKeys.PREDICTIONS, self._predictions),
                (CollectionKeys.LABELS, self._labels),
                (CollectionKeys.FEATURE_IMPORTANCE, self._importance),
                (CollectionKeys.AVERAGE_SHAP, self._shap),
                (CollectionKeys.FULL_SHAP, self._shap),
                (CollectionKeys.TREES, self._trees),
            ):
                if collection in self._due:
                    self._guard.run(collection, save, model)
        self._guard.run("step", self._end_step)
        try:
            if self._recording is not None:
                self._recording.poll_stop(self.step)
        except TrainingStopped:  # XGBoost ends the training itself, in its own way
            return True
        return False

    def after_training(self, model: Any) -> Any:
        """Close the run."""
        self.close()
        return model

    # -- what is saved -----------------------------------------------------------------------------

    def _put(self, name: str, values: Any, kind: Kind) -> None:
        decision = self._decision(name)
        array = np.atleast_1d(np.asarray(values))
        if not decision or self._recording is None or not array.size or array.dtype.kind not in "biuf":
            return
        members = self._members_of(name)
        if CollectionKeys.LOSSES in members:
            kind = Kind.LOSS
        single = array.size == 1 and SCALAR_COLLECTIONS.intersection(members)
        block = scalar_block([float(array[0])]) if single else summarize([array])
        self._recording.hold(self._key(name, kind, str(array.dtype), array.shape), block, 0, array, decision)

    def _metrics(self, evals_log: Mapping[str, Any]) -> None:
        for dataset, metrics in evals_log.items():
            for name, values in metrics.items():
                value = values[-1][0] if isinstance(values[-1], tuple) else values[-1]
                self._put(f"{dataset}-{name}", np.float64(value), Kind.SCALAR)

    def _hyperparameters(self, _model: Any) -> None:
        for name, value in self.hyperparameters.items():
            if isinstance(value, (int, float)):
                self._put(f"hyperparameters/{name}", np.float64(value), Kind.SCALAR)

    @property
    def _data(self) -> Any:
        return self.train_data if self.validation_data is None else self.validation_data

    def _predictions(self, model: Any) -> None:
        if self._data is not None:
            self._put("predictions", model.predict(self._data), Kind.CUSTOM)

    def _labels(self, _model: Any) -> None:
        if self._data is not None:
            self._put("labels", self._data.get_label(), Kind.CUSTOM)

    def _features(self, model: Any) -> list[str]:
        return [str(name) for name in model.feature_names or (f"f{i}" for i in range(model.num_features()))]

    def _importance(self, model: Any) -> None:
        for kind in _IMPORTANCE:
            scores = model.get_score(importance_type=kind)
            total = sum(scores.values()) or 1.0
            for name in self._features(model):
                share = np.float64(scores.get(name, 0.0) / total)
                self._put(f"feature_importance/{kind}/{name}", share, Kind.SCALAR)

    def _shap(self, model: Any) -> None:
        if self._data is None:
            return
        values = np.asarray(model.predict(self._data, pred_contribs=True))
        for place, name in enumerate([*self._features(model), "bias"]):
            of = values[..., place]
            self._put(f"average_shap/{name}", np.float64(np.abs(of).mean()), Kind.SCALAR)
            self._put(f"full_shap/{name}", of, Kind.CUSTOM)

    def _trees(self, model: Any) -> None:
        frame = model[model.num_boosted_rounds() - 1 :].trees_to_dataframe()
        for column in frame.columns:
            if frame[column].dtype.kind in "biuf":
                self._put(f"trees/{column}", frame[column].to_numpy(), Kind.CUSTOM)
