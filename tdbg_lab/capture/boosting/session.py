"""What is recorded of a round, whichever library boosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from tdbg_lab.capture.boosting.model import IMPORTANCE_KINDS
from tdbg_lab.capture.boosting.shap import Contributions
from tdbg_lab.capture.boosting.trees import columns
from tdbg_lab.capture.values import dtype_text
from tdbg_lab.errors import TrainingStopped
from tdbg_lab.records import Kind, Mode
from tdbg_lab.stats import summarize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.boosting.model import BoostedModel, Metric, Sample
    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.handle import Handle

__all__ = ["BoostingSession", "Data"]

_MAX_FEATURE_ROWS = 256
_CHEAP_KINDS = {"loss", "scalar"}


class Data:
    """What the user gave for one mode, and the sample that is made of it when it is first needed."""

    __slots__ = ("contributions", "given", "sample", "what")

    def __init__(self, what: str, given: Any) -> None:
        self.what = what
        self.given = given
        self.sample: Sample | None = None
        self.contributions = Contributions()


class BoostingSession:
    """Records the rounds of one training.

    Parameters
    ----------
    model
        None when there is no single model (cross-validation): only metrics are recorded.
    data
        What to predict and explain, by mode.
    rows, shap_rows
        Rows of it to predict, and to explain.
    chief
        Whether this process writes what is the same in all of them.
    """

    def __init__(
        self,
        engine: Engine,
        handle: Handle,
        model: BoostedModel | None,
        data: Mapping[Mode, Data],
        *,
        rows: int,
        shap_rows: int,
        chief: bool,
    ) -> None:
        self.stopped: TrainingStopped | None = None
        """What a loop is to end with."""
        self._engine = engine
        self._handle = ref(handle)
        self._model = model
        self._data = dict(data)
        self._explained = next(iter(data), None)
        self._limits = rows, shap_rows
        self._chief = chief
        names = () if model is None else model.feature_names
        self._listed = names if len(names) <= _MAX_FEATURE_ROWS else ()
        self._groups = self._masks(names)
        engine.rootless = True
        engine.between = "boosting"
        engine.costly = sum(
            1 << i for i, one in enumerate(engine.plan.collections) if not _CHEAP_KINDS.issuperset(one.kinds)
        )

    @property
    def step(self) -> int:
        """The round that is to come."""
        return self._engine.step

    def begin(self, hyperparameters: Mapping[str, Any]) -> None:
        """Record what is known before the first round."""
        engine = self._engine
        if self._chief and self._due("hyperparameters"):
            numbers = {
                f"hyperparameters/{name}": np.float64(value)
                for name, value in hyperparameters.items()
                if isinstance(value, (int, float))
            }
            engine.guard.run("hyperparameters", self._add, numbers)
        if engine.phases is not None:
            engine.guard.run("spans", engine.phases.begin, "boosting", engine.step)

    def leave_out(self, mode: Mode) -> None:
        """Predict and explain nothing in this mode."""
        self._data.pop(mode, None)
        self._explained = next(iter(self._data), None)

    def round(self, metrics: Sequence[Metric]) -> bool:
        """A round is complete; True when somebody asked to stop.

        Whatever fails in here is a problem of the capture, never of the training.
        """
        engine, handle = self._engine, self._handle()
        if handle is None or not engine.open:
            return False
        engine.guard.run("boosting", self._round, metrics)
        try:
            handle.at_step_end()
        except TrainingStopped as stopped:  # the library ends the training itself, in its own way
            self.stopped = stopped
            return True
        return False

    def _round(self, metrics: Sequence[Metric]) -> None:
        engine = self._engine
        run = engine.guard.run
        saves = bool(engine.mask & engine.costly)
        if saves and engine.phases is not None:
            run("spans", engine.phases.switch, "capture", engine.step)
        others = dict.fromkeys(one.mode for one in metrics if one.mode is not Mode.TRAIN)
        if saves:
            others.update(dict.fromkeys(mode for mode in self._data if mode is not Mode.TRAIN))
        for mode in others:
            engine.enter_mode(mode, measured=True)
            self._mode(mode, metrics)
        engine.enter_train_step()
        self._mode(Mode.TRAIN, metrics)
        if saves and self._model is not None:
            self._structure(self._model)
        engine.close_step()

    def _mode(self, mode: Mode, metrics: Iterable[Metric]) -> None:
        engine, model = self._engine, self._model
        run = engine.guard.run
        found = [one for one in metrics if one.mode is mode]
        if self._chief:
            for one in found:
                run(f"metric/{one.name}", self._number, one)
        if model is None or not engine.mask & engine.costly:
            return
        data = self._data.get(mode)
        if data is not None and data.sample is None:
            run(f"{data.what} data", self._draw, model, data)
        sample = None if data is None else data.sample
        if mode is Mode.TRAIN and not found and self._chief:
            run("training metrics", self._training_metrics, model, sample)
        if sample is None or data is None:
            return
        if self._due("predictions", "labels"):
            run("predictions", self._predict, model, sample)
        if mode is self._explained and self._due("full_shap", "average_shap"):
            run("shap", self._explain, model, data, sample)

    # -- the model --------------------------------------------------------------------------------

    def _structure(self, model: BoostedModel) -> None:
        """What only the model itself is needed for."""
        if not self._chief:
            return
        if self._due("feature_importance"):
            self._engine.guard.run("feature_importance", self._importance, model)
        if self._due("trees"):
            self._engine.guard.run("trees", self._trees, model)

    def _importance(self, model: BoostedModel) -> None:
        found: dict[str, NDArray[Any] | np.float64] = {}
        for kind, values in model.importance().items():
            total = np.abs(values).sum()
            shares = values / total if total else values
            found[f"feature_importance/{kind}"] = shares
            found.update(self._by_feature(f"feature_importance/{kind}", self._listed, shares))
        self._add(found)

    def _trees(self, model: BoostedModel) -> None:
        rounds = model.rounds
        trees = model.trees(rounds - 1, rounds)
        if trees:
            self._add({f"trees/{name}": values for name, values in columns(trees).items()})

    # -- the data ---------------------------------------------------------------------------------

    def _draw(self, model: BoostedModel, data: Data) -> None:
        data.sample = model.sample(data.given, data.what, *self._limits)
        data.given = None

    def _training_metrics(self, model: BoostedModel, sample: Sample | None) -> None:
        for one in model.training_metrics(sample):
            self._number(one)

    def _predict(self, model: BoostedModel, sample: Sample) -> None:
        predictions = model.predict(sample)
        classes = model.classes(predictions)
        labels = sample.labels
        self._add({"predictions": predictions}, labels)
        if classes is not None:
            self._add({"predicted_labels": classes}, labels)
        if labels is not None:
            self._add({"labels": labels})

    def _explain(self, model: BoostedModel, data: Data, sample: Sample) -> None:
        values = data.contributions.upto_now(model, sample)
        mean = values.reshape(-1, values.shape[-1]).mean(axis=0)
        names = (*self._listed, "bias") if self._listed else ()
        found = {"average_shap": mean, **self._by_feature("average_shap", names, mean)}
        if names:
            found.update(self._by_feature("full_shap", names, np.moveaxis(values, -1, 0)))
        else:
            found["full_shap"] = values
        self._add(found)

    @staticmethod
    def _by_feature(name: str, features: Sequence[str], values: NDArray[Any]) -> dict[str, Any]:
        return {f"{name}/{feature}": values[i] for i, feature in enumerate(features)}

    # -- rows -------------------------------------------------------------------------------------

    def _masks(self, names: Sequence[str]) -> dict[str, int]:
        """Which collections want something of each group of tensors."""
        listed = ("", *(f"/{name}" for name in (*self._listed, "bias") if names))
        groups = {
            "hyperparameters": ["hyperparameters/eta"],
            "predictions": ["predictions", "predicted_labels"],
            "labels": ["labels"],
            "trees": ["trees/depth", "trees/leaves", "trees/Node", "trees/Leaf", "trees/Split"],
            "feature_importance": [
                f"feature_importance/{kind}{f}" for kind in IMPORTANCE_KINDS for f in listed
            ],
            "average_shap": [f"average_shap{f}" for f in listed],
            "full_shap": [f"full_shap{f}" for f in listed],
        }
        masks = dict.fromkeys(groups, 0)
        for group, tensors in groups.items():
            for tensor in tensors:
                masks[group] |= self._engine.plan.membership(tensor, Kind.CUSTOM).mask
        return masks

    def _due(self, *groups: str) -> bool:
        return any(self._groups[group] & self._engine.mask for group in groups)

    def _number(self, one: Metric) -> None:
        engine = self._engine
        key, membership = engine.key(one.name, one.kind)
        if membership.mask & engine.mask:
            engine.recorder.add_scalar(key, one.value)

    def _add(self, tensors: Mapping[str, Any], labels: NDArray[Any] | None = None) -> None:
        """Record tensors, single numbers without a raw value, in one pass."""
        engine = self._engine
        keys, arrays = [], []
        for name, value in tensors.items():
            array: Any = value if isinstance(value, np.generic) else np.asarray(value)
            key, membership = engine.key(name, Kind.CUSTOM, dtype=dtype_text(array.dtype), shape=array.shape)
            if not membership.mask & engine.mask:
                continue
            if not array.ndim:
                engine.recorder.add_scalar(key, float(array))
                continue
            if membership.stats_mask & engine.mask:
                keys.append(key)
                arrays.append(np.asarray(array))
            if membership.raw_mask & engine.mask:
                engine.recorder.add_raw(name, np.array(array, copy=True))
                if labels is not None:
                    engine.recorder.add_raw(f"{name}/labels", labels)
        if keys:
            engine.recorder.add(keys, summarize(arrays))
