"""`xgboost.train` with metrics of the training data."""

from __future__ import annotations

import numpy as np

from trainings.peers import wandb_run
from trainings.stopwatch import OURS, WARM_UP, Stopwatch, no_problems

KINDS = ("weight", "gain", "cover", "total_gain", "total_cover")
SAMPLE, EXPLAINED = 1024, 128
"""Rows that are predicted, rows that SHAP values are computed of: what our callback takes."""


class XGBoost:
    """A training anew for each block."""

    def __init__(self, arm, folder):
        import xgboost

        self.arm, self.folder = arm, folder
        self.x = np.random.default_rng(0).normal(size=(10_000, 30))
        self.y = (self.x[:, 0] * self.x[:, 1] > 0).astype(int)
        self.matrix = xgboost.DMatrix(self.x, self.y)
        self.run = wandb_run(folder) if arm == "wandb-metrics" else None

    def block(self, steps):
        """Seconds a round, after the warm-up."""
        import xgboost

        watch = Stopwatch(steps)
        own = self._own()
        parameters = {"objective": "binary:logistic", "nthread": 1, "max_depth": 6}
        xgboost.train(
            parameters,
            self.matrix,
            num_boost_round=WARM_UP + steps,
            evals=[(self.matrix, "train")],
            verbose_eval=False,
            callbacks=[*own, told(lambda *_: watch.step())],
        )
        for callback in own:
            if self.arm in OURS:
                no_problems(callback.handle)
        return watch.spent

    def _own(self):
        if self.arm in OURS:
            import tdbg_lab as tdbg

            every = OURS[self.arm]
            store, train = self.folder / "run", (self.x, self.y)
            return [tdbg.XGBoostCallback(store, train=train, save_every=every, profiler=False)]
        if self.arm == "by-hand-10":
            return [told(self._by_hand())]
        if self.run is not None:
            from wandb.integration.xgboost import WandbCallback

            return [WandbCallback(log_feature_importance=False)]
        return []

    def _by_hand(self):
        """The same with XGBoost's own functions and numpy's files."""
        import xgboost

        sample, explained = xgboost.DMatrix(self.x[:SAMPLE]), xgboost.DMatrix(self.x[:EXPLAINED])

        def record(model, turn, _log):
            if turn % 10:
                return
            arrays = {"predictions": model.predict(sample), "labels": self.y[:SAMPLE]}
            arrays["shap"] = model.predict(explained, pred_contribs=True)
            for kind in KINDS:
                arrays[kind] = np.array(list(model.get_score(importance_type=kind).values()))
            np.savez(self.folder / f"{turn}.npz", **arrays)
            model[turn].trees_to_dataframe().to_csv(self.folder / f"trees-{turn}.csv")

        return record

    def close(self):
        if self.run is not None:
            self.run.finish()


def told(call):
    """A callback that calls `call` after every round."""
    import xgboost

    class Told(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            call(model, epoch, evals_log)
            return False

    return Told()
