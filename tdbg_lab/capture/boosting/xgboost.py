"""XGBoost: `XGBoostCallback`, for ``xgboost.train``, ``xgboost.cv`` and the scikit-learn estimators."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.capture.boosting.callback import BoostingCallback
from tdbg_lab.capture.boosting.metrics import metric
from tdbg_lab.capture.boosting.model import IMPORTANCE_KINDS, Sample
from tdbg_lab.capture.boosting.sampling import chosen, fitting, numbers, rows_of, split
from tdbg_lab.capture.boosting.trees import LEAF, Tree, grown
from tdbg_lab.capture.callers import caller_frame, caller_local
from tdbg_lab.capture.opening import Place
from tdbg_lab.capture.training_scope import end_with
from tdbg_lab.errors import ConfigError, MissingDependencyError
from tdbg_lab.store.remote import is_url

try:
    import xgboost
    from xgboost import collective
except ImportError as error:
    raise MissingDependencyError(
        "XGBoostCallback needs XGBoost, which is not installed; pip install 'tdbg-lab[xgboost]'."
    ) from error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tdbg_lab.capture.boosting.model import Metric

__all__ = ["XGBoostCallback"]

_log = logging.getLogger("tdbg_lab")
_SHOWN = ("learner_train_param", "tree_train_param", "gbtree_train_param", "gblinear_train_param")
_ALIASES = {"learning_rate", "reg_alpha", "reg_lambda", "min_split_loss", "updater_seq"}


class XGBoostCallback(BoostingCallback, xgboost.callback.TrainingCallback):
    """Records every boosting round of XGBoost into a run directory.

    ::

        callback = tdbg.XGBoostCallback("runs/first", train=dtrain, validation=(X_test, y_test))
        xgboost.train(params, dtrain, 200, evals=[(dtrain, "train")], callbacks=[callback])
        XGBClassifier(callbacks=[tdbg.XGBoostCallback("runs/second", train=(X, y))]).fit(X, y)
        callback.run.scalars("train-logloss")

    See `BoostingCallback` for the arguments.
    """

    _framework = "xgboost"
    _added: str | None = None
    """A metric that is no loss of this training, see `_added_metric`."""

    def _check_data(self, data: Any, what: str) -> None:
        if isinstance(data, xgboost.DMatrix):
            return
        split(data, what)

    def before_training(self, model: Any) -> Any:
        """Make the run; called by XGBoost."""
        place = Place(collective.get_rank(), collective.get_world_size())
        self._added = _added_metric()
        boosted = self._model(model, alone=place.world_size == 1)
        if place.world_size == 1:
            self._start(boosted, place, None)
        else:
            self._start_together(boosted, place)
        container = caller_local("self", xgboost.callback.CallbackContainer)
        if container is not None and self.handle is not None:
            end_with(container, self.handle, container.callbacks)
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Record a round; called by XGBoost. True ends the training."""
        found = [] if self._session is None else _latest(evals_log, self._added)
        return self._round(found)

    def after_training(self, model: Any) -> Any:
        """Close the run; called by XGBoost."""
        self._end(None)
        return model

    def begin_loop(self, booster: Any) -> None:
        """A loop has made a first round: make the run."""
        self._start(self._model(booster, alone=True), Place(), None)

    def told_metrics(self, booster: Any, result: Any) -> list[Metric]:  # noqa: ARG002
        """What ``eval_set`` says."""
        return _evaluated(str(result))

    def _model(self, booster: Any, *, alone: bool) -> XGBoostModel | None:
        """The model; None of cross-validation, or where it does not say what it is."""
        if not isinstance(booster, xgboost.Booster):
            return None
        try:
            return XGBoostModel(booster, alone=alone, added=self._added)
        except Exception as error:
            if self._strict:
                raise
            _log.warning("tdbg-lab: only metrics are recorded, the booster cannot be read: %s", error)
            return None

    def _start(self, model: XGBoostModel | None, place: Place, store: str | None) -> None:
        known = {} if model is None else model.hyperparameters()
        planned = caller_local("num_boost_round", int)
        if model is not None and not model.rounds and planned is not None:
            known["num_boost_round"] = planned
        self._begin(model, xgboost.__version__, known, place=place, store=store)

    def _where(self) -> str:
        """What the other processes open: the address, or the directory that it became."""
        address = self._store is not None and is_url(self._store)
        return str(self._store if address else self.run_path.absolute())

    def _start_together(self, model: XGBoostModel | None, place: Place) -> None:
        """The first process makes the directory and tells the others which one it became.

        Making a ``DMatrix`` is a collective call, so data count only where every process has some
        that fit.
        """
        path = ""
        if place.rank == 0:
            self._start(model, place, None)
            path = self._where() if self._session is not None else ""
        path = collective.broadcast(path, 0)
        if place.rank and path:
            self._start(model, place, path)
        for mode, (what, data) in self._given.items():
            usable = model is not None and self._session is not None and _fits(model, data, what)
            everywhere = collective.allreduce(np.array([usable], np.int32), collective.Op.MIN)[0]
            if not everywhere and self._session is not None:
                self._session.leave_out(mode)


def _added_metric() -> str | None:
    """The metric that XGBoost adds where the objective is a function: it is that of another one."""
    train = caller_frame("params", dict, most=4)
    if train is None or train.f_locals.get("obj") is None:
        return None
    params = train.f_locals["params"]
    return None if params.get("objective") or params.get("eval_metric") else "rmse"


def _metric(dataset: str, name: str, value: float, added: str | None) -> Metric:
    return metric(dataset, name, value, higher_is_better=True if name == added else None)


def _fits(model: XGBoostModel, data: Any, what: str) -> bool:
    if data is None:
        return False
    try:
        model.check(data, what)
    except ConfigError as error:
        _log.warning("tdbg-lab: %s", error)
        return False
    return True


def _latest(evals_log: Mapping[str, Any], added: str | None) -> list[Metric]:
    """The metrics of the latest round; of cross-validation the means, and the deviations as scalars."""
    found = []
    for dataset, metrics in evals_log.items():
        for name, values in metrics.items():
            value = values[-1]
            if isinstance(value, (tuple, list)):
                found.append(metric(dataset, f"{name}-std", value[1], higher_is_better=True))
                value = value[0]
            found.append(_metric(dataset, name, value, added))
    return found


class XGBoostModel:
    """An XGBoost booster in training; nothing here changes it.

    Parameters
    ----------
    added
        A metric that is no loss of this training, see `_added_metric`.
    alone
        Whether this process trains alone. Among several, slicing and evaluating a booster are
        collective calls, which must not depend on what one process records.
    """

    def __init__(self, booster: xgboost.Booster, *, alone: bool = True, added: str | None = None) -> None:
        self._booster = booster
        self._added = added
        self._alone = alone
        self._config = json.loads(booster.save_config())["learner"]
        self._kind = self._config["gradient_booster"]["name"]
        self._objective = str(self._config["objective"]["name"])
        names = booster.feature_names or [f"f{i}" for i in range(booster.num_features())]
        self.feature_names = tuple(str(name) for name in names)
        self._base: NDArray[np.float64] | None = None

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        return int(self._booster.num_boosted_rounds())

    @property
    def additive(self) -> bool:
        """Dropout changes earlier trees, a linear model has none."""
        return bool(self._kind == "gbtree") and self._alone

    def hyperparameters(self) -> dict[str, float | int | str]:
        """Every parameter in force, the defaults too, under its first name."""
        found: dict[str, float | int | str] = {"objective": self._objective}
        config = self._config
        for group in _SHOWN:
            for source in (config, config["gradient_booster"], config["gradient_booster"].get("gbtree", {})):
                found.update({k: _plain(v) for k, v in source.get(group, {}).items() if k not in _ALIASES})
        for group in config.get("objective", {}).values():  # its own: scale_pos_weight, quantile_alpha
            if isinstance(group, dict):
                found.update({k: _plain(v) for k, v in group.items() if not isinstance(v, dict | list)})
        return found

    def importance(self) -> dict[str, NDArray[np.float64]]:
        """Importance by kind, each of shape ``(F,)``; a linear model has its weights only."""
        place = {name: i for i, name in enumerate(self.feature_names)}
        found = {}
        for kind in IMPORTANCE_KINDS if self._kind != "gblinear" else ("weight",):
            values = np.zeros(len(place))
            for name, score in self._booster.get_score(importance_type=kind).items():
                values[place[name]] = np.abs(score).sum() if isinstance(score, list) else score
            found[kind] = values
        return found

    def trees(self, first: int, last: int) -> list[Tree]:
        """Trees of some rounds."""
        if self._kind == "gblinear":
            return []
        booster = self._booster[first:last] if self._alone else self._booster
        saved = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]
        model = saved.get("gbtree", saved)["model"]
        found = list(zip(model["trees"], model["tree_info"], strict=True))
        if not self._alone:
            per_round = len(found) // max(1, self.rounds)
            found = found[first * per_round : last * per_round]
        return [_tree(tree, group) for tree, group in found]

    def check(self, data: Any, what: str) -> None:
        """Check that data can be sampled.

        Raises
        ------
        ConfigError
            They cannot.
        """
        matrix = isinstance(data, xgboost.DMatrix)
        fitting(data.num_col() if matrix else split(data, what)[0].shape[1], len(self.feature_names), what)
        if isinstance(data, xgboost.QuantileDMatrix):
            raise ConfigError(
                f"{what} is a {type(data).__name__}, whose rows cannot be picked; give (X, y) or a DMatrix."
            )

    def sample(self, data: Any, what: str, rows: int, shap_rows: int) -> Sample:
        """Rows of a ``DMatrix``, or of ``(X, y)``, as a ``DMatrix`` of our own."""
        self.check(data, what)
        if isinstance(
            data, xgboost.DMatrix
        ):  # rows of our own: predicting never touches what training caches
            matrix = data.slice(chosen(data.num_row(), rows).astype(np.int32), allow_groups=True)
            labels = matrix.get_label() if matrix.get_label().size else None
        else:
            features, given = split(data, what)
            picks = chosen(features.shape[0], rows)
            labels = numbers(given, picks)
            matrix = self._matrix(rows_of(features, picks), labels)
        if labels is not None and labels.size != matrix.num_row():  # several targets a row
            labels = labels.reshape(matrix.num_row(), -1)
        return Sample(
            matrix, labels, matrix.slice(np.arange(min(shap_rows, matrix.num_row()), dtype=np.int32))
        )

    def _matrix(self, features: Any, labels: Any) -> xgboost.DMatrix:
        if hasattr(features, "iloc"):
            return xgboost.DMatrix(features, label=labels, enable_categorical=True)
        booster = self._booster
        return xgboost.DMatrix(
            features, label=labels, feature_names=booster.feature_names, feature_types=booster.feature_types
        )

    def predict(self, sample: Sample) -> NDArray[Any]:
        """What ``Booster.predict`` answers."""
        return np.asarray(self._booster.predict(sample.rows))

    def classes(self, predictions: NDArray[Any]) -> NDArray[np.int64] | None:
        """Class of each row, where the objective starts with ``binary:`` or ``multi:``."""
        if self._objective.startswith("binary:"):
            threshold = 0.0 if self._objective == "binary:logitraw" else 0.5
            return (predictions > threshold).astype(np.int64)
        if self._objective.startswith("multi:"):
            return (predictions.argmax(axis=1) if predictions.ndim == 2 else predictions).astype(np.int64)
        return None

    def contributions(self, sample: Sample, first: int, last: int) -> NDArray[np.float64]:
        """SHAP values of some rounds; the base score counts with the first of them."""
        matrix = sample.shap_rows
        if first == 0:
            return _contributions(self._booster, matrix, (0, last) if self.additive else (0, 0))
        part = _contributions(self._booster[first:last], matrix, (0, 0))
        if self._base is None:
            self._base = self._base_of(matrix, last)
        part[..., -1] -= self._base
        return part

    def _base_of(self, matrix: xgboost.DMatrix, last: int) -> NDArray[np.float64]:
        """Margin of no trees: what two parts have in common that the whole has once."""
        one, rest, whole = (
            self._booster.predict(matrix, output_margin=True, iteration_range=part).astype(np.float64)
            for part in ((0, 1), (1, last), (0, last))
        )
        return np.asarray(one + rest - whole)

    def training_metrics(self, sample: Sample | None) -> list[Metric]:
        """The metrics of the booster on the sample of the training data."""
        if not self._alone or sample is None or sample.labels is None or sample.rows.get_group().size > 1:
            return []
        return _evaluated(self._booster.eval_set([(sample.rows, "train")], 0), self._added)


def _evaluated(text: str, added: str | None = None) -> list[Metric]:
    """Metrics of ``[3]<tab>train-logloss:0.5<tab>...``, as ``eval_set`` says them."""
    found = []
    for part in text.split("\t")[1:]:
        name, _, value = part.rpartition(":")
        dataset, _, of = name.partition("-")
        found.append(_metric(dataset, of, float(value), added))
    return found


def _contributions(
    booster: xgboost.Booster, matrix: xgboost.DMatrix, rounds: tuple[int, int]
) -> NDArray[np.float64]:
    return booster.predict(matrix, pred_contribs=True, iteration_range=rounds).astype(np.float64)


def _plain(text: Any) -> float | int | str:
    """A number as a number."""
    for kind in (int, float):
        try:
            return kind(text)
        except (TypeError, ValueError):
            continue
    return str(text)


def _tree(saved: Mapping[str, Any], group: int) -> Tree:
    """A tree of a saved model."""
    left, right = np.array(saved["left_children"]), np.array(saved["right_children"])
    order, place = grown(np.stack([left, right], axis=1))
    is_leaf = left[order] < 0
    yes, no = place[left[order]], place[right[order]]
    conditions = np.array(saved["split_conditions"], np.float32)[order].astype(np.float64)
    by_category = np.array(saved.get("split_type") or np.zeros(len(left)))[order] == 1
    several = int(saved["tree_param"].get("size_leaf_vector", 1)) > 1
    return Tree(
        group=int(group),
        feature=np.where(is_leaf, LEAF, np.array(saved["split_indices"])[order]),
        split=np.where(is_leaf | by_category, 0.0, conditions),
        yes=np.where(is_leaf, LEAF, yes),
        no=np.where(is_leaf, LEAF, no),
        missing=np.where(is_leaf, LEAF, np.where(np.array(saved["default_left"])[order] != 0, yes, no)),
        gain=np.where(is_leaf, 0.0, np.array(saved["loss_changes"], np.float64)[order]),
        cover=np.array(saved["sum_hessian"], np.float64)[order],
        leaf=np.where(is_leaf & ~np.bool_(several), conditions, 0.0),
    )
