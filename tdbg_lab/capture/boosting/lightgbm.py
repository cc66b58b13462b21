"""LightGBM: `LightGBMCallback`, for ``lightgbm.train``, ``lightgbm.cv`` and the scikit-learn estimators."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.capture.boosting.callback import BoostingCallback
from tdbg_lab.capture.boosting.metrics import is_training_set, metric
from tdbg_lab.capture.boosting.model import Sample
from tdbg_lab.capture.boosting.sampling import chosen, fitting, numbers, rows_of, split
from tdbg_lab.capture.boosting.trees import LEAF, Tree
from tdbg_lab.capture.callers import caller_local
from tdbg_lab.capture.opening import default_place
from tdbg_lab.capture.training_scope import end_with
from tdbg_lab.errors import ConfigError, MissingDependencyError

try:
    import lightgbm
except ImportError as error:
    raise MissingDependencyError(
        "LightGBMCallback needs LightGBM, which is not installed; pip install 'tdbg-lab[lightgbm]'."
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from tdbg_lab.capture.boosting.model import Metric

__all__ = ["LightGBMCallback"]

_ORDER = 25
"""After LightGBM's own recording of metrics (20), before early stopping (30), which ends the round."""


class LightGBMCallback(BoostingCallback):
    """Records every boosting round of LightGBM into a run directory.

    ::

        callback = tdbg.LightGBMCallback("runs/first", train=(X, y), validation=(X_test, y_test))
        lightgbm.train(params, dataset, 200, valid_sets=[dataset], callbacks=[callback])
        LGBMClassifier().fit(X, y, callbacks=[tdbg.LightGBMCallback("runs/second")])
        callback.run.scalars("training-binary_logloss")

    See `BoostingCallback` for the arguments.
    """

    _framework = "lightgbm"
    order = _ORDER
    before_iteration = False

    def _check_data(self, data: Any, what: str) -> None:
        if isinstance(data, lightgbm.Dataset):
            raise ConfigError(f"{what} is a lightgbm.Dataset, which cannot be predicted; give (X, y) arrays.")
        split(data, what)

    def __call__(self, env: lightgbm.callback.CallbackEnv) -> None:
        """Record a round; called by LightGBM.

        Raises
        ------
        lightgbm.callback.EarlyStopException
            Somebody asked the training to stop.
        """
        if env.iteration == env.begin_iteration:
            self._start(env)
        if self._session is None:
            return
        results = env.evaluation_result_list or []
        stop = self._round([_metric(env.model, each) for each in results])
        if stop:
            self._end(None)
            raise lightgbm.callback.EarlyStopException(env.iteration, results)
        if env.iteration + 1 >= env.end_iteration:
            self._end(None)

    def begin_loop(self, booster: Any) -> None:
        """A loop has made a first round: make the run."""
        self._begin(LightGBMModel(booster), lightgbm.__version__, _plain(booster.params))

    def told_metrics(self, booster: Any, result: Any) -> list[Metric]:
        """What ``eval``, ``eval_train`` or ``eval_valid`` returns."""
        return [_metric(booster, each) for each in result]

    def _start(self, env: lightgbm.callback.CallbackEnv) -> None:
        """The first round is over: make the run. LightGBM has no word for the beginning."""
        model, known = None, _plain(env.params)
        booster: Any = env.model
        if isinstance(booster, lightgbm.Booster):
            try:
                model = LightGBMModel(booster)
                known = {**_plain(booster.params), **known}
            except Exception:
                if self._strict:
                    raise
        if env.begin_iteration == 0 and isinstance(booster, lightgbm.Booster):
            known["num_boost_round"] = env.end_iteration
        self._begin(model, lightgbm.__version__, known, place=default_place())
        scope = caller_local("callbacks_set", set)
        if scope is not None and self.handle is not None:
            alive = weakref.ref(booster)
            end_with(scope, self.handle, scope, ended_well=lambda: getattr(alive(), "best_iteration", 0) > 0)


def _metric(model: Any, result: Any) -> Metric:
    dataset, name, value, higher = tuple(result)[:4]
    if dataset == "cv_agg":  # cross-validation before LightGBM 4.6: "valid binary_logloss"
        dataset, _, name = name.partition(" ")
    train = dataset == getattr(model, "_train_data_name", None) or is_training_set(dataset)
    return metric(dataset, name, value, train=train, higher_is_better=bool(higher))


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that can be written down; an objective function by its name."""
    return {str(name): getattr(value, "__name__", value) for name, value in params.items()}


class LightGBMModel:
    """A LightGBM booster in training; nothing here changes it."""

    def __init__(self, booster: lightgbm.Booster) -> None:
        self._booster = booster
        self.feature_names = tuple(booster.feature_name())
        self._per_round = booster.num_model_per_iteration()
        self._cover = np.zeros(len(self.feature_names))
        self._covered = 0

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        return int(self._booster.current_iteration())

    @property
    def additive(self) -> bool:
        """Dropout and random forests weigh earlier trees anew."""
        boosting = {
            str(self._booster.params.get(name, "")) for name in ("boosting", "boosting_type", "boost")
        }
        return boosting.isdisjoint({"dart", "rf", "random_forest"})

    def importance(self) -> dict[str, NDArray[np.float64]]:
        """Importance by kind, each of shape ``(F,)``."""
        weight = self._booster.feature_importance("split", iteration=self.rounds).astype(np.float64)
        total_gain = self._booster.feature_importance("gain", iteration=self.rounds).astype(np.float64)
        self._follow_cover()
        splits = np.maximum(weight, 1)
        return {
            "weight": weight,
            "gain": total_gain / splits,
            "cover": self._cover / splits,
            "total_gain": total_gain,
            "total_cover": self._cover.copy(),
        }

    def _follow_cover(self) -> None:
        """Add the cover of the splits that came since the last time: LightGBM does not sum it."""
        for tree in self.trees(self._covered, self.rounds):
            inner = tree.feature != LEAF
            np.add.at(self._cover, tree.feature[inner], tree.cover[inner])
        self._covered = self.rounds

    def trees(self, first: int, last: int) -> list[Tree]:
        """Trees of some rounds."""
        if last <= first:
            return []
        dump = self._booster.dump_model(num_iteration=last - first, start_iteration=first)
        return [
            _tree(each["tree_structure"], i % self._per_round) for i, each in enumerate(dump["tree_info"])
        ]

    def sample(self, data: Any, what: str, rows: int, shap_rows: int) -> Sample:
        """Rows of ``(X, y)`` or ``X``."""
        features, given = split(data, what)
        fitting(features.shape[1], len(self.feature_names), what)
        picks = chosen(features.shape[0], rows)
        return Sample(rows_of(features, picks), numbers(given, picks), rows_of(features, picks[:shap_rows]))

    def predict(self, sample: Sample) -> NDArray[Any]:
        """What ``Booster.predict`` answers."""
        return np.asarray(self._booster.predict(sample.rows, num_iteration=self.rounds))

    def classes(self, predictions: NDArray[Any]) -> NDArray[np.int64] | None:
        """Class of each row, where the objective is a classification."""
        objective = str(self._booster.params.get("objective", ""))
        if objective in {"binary", "cross_entropy"}:
            return (predictions > 0.5).astype(np.int64)
        if predictions.ndim == 2 and objective.startswith(("multiclass", "softmax", "ova")):
            return np.asarray(predictions.argmax(axis=1), np.int64)
        return None

    def contributions(self, sample: Sample, first: int, last: int) -> NDArray[np.float64]:
        """SHAP values of some rounds; LightGBM keeps the base score in the first tree.

        They are asked of a copy of those rounds: a booster that explained once and then went on
        training ends the process when it is asked again (LightGBM 4.7 prepares its trees only the
        first time).
        """
        text = self._booster.model_to_string(start_iteration=first, num_iteration=last - first)
        part = lightgbm.Booster(model_str=text)
        found = np.asarray(part.predict(sample.shap_rows, pred_contrib=True))
        width = len(self.feature_names) + 1
        return found if found.shape[1] == width else found.reshape(len(found), -1, width)

    def training_metrics(self, sample: Sample | None) -> list[Metric]:  # noqa: ARG002
        """The metrics of the booster on all of its training data: it follows them anyway."""
        return [_metric(self._booster, each) for each in self._booster.eval_train()]


def _tree(root: Mapping[str, Any], group: int) -> Tree:
    """A tree of a dumped model, breadth first."""
    nodes: list[Mapping[str, Any]] = [root]
    children: list[tuple[int, int]] = []
    for node in nodes:
        if "split_feature" in node:
            children.append((len(nodes), len(nodes) + 1))
            nodes += [node["left_child"], node["right_child"]]
        else:
            children.append((LEAF, LEAF))
    pairs = np.array(children, np.int64)
    default_left = _column(nodes, "default_left")
    return Tree(
        group=group,
        feature=_column(nodes, "split_feature", LEAF).astype(np.int64),
        split=_column(nodes, "threshold"),
        yes=pairs[:, 0],
        no=pairs[:, 1],
        missing=np.where(default_left != 0, pairs[:, 0], pairs[:, 1]),
        gain=_column(nodes, "split_gain"),
        cover=np.maximum(_column(nodes, "internal_weight"), _column(nodes, "leaf_weight")),
        leaf=_column(nodes, "leaf_value"),
    )


def _column(nodes: Iterable[Mapping[str, Any]], name: str, default: float = 0.0) -> NDArray[np.float64]:
    """A number of every node; a text (a split by category) counts as missing."""
    values = (node.get(name, default) for node in nodes)
    return np.array([default if isinstance(one, str) else float(one) for one in values], np.float64)
