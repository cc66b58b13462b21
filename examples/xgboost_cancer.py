"""Watch XGBoost: metrics, importance, SHAP values and trees of every saved round, and who is predicted wrong.

    pip install 'tdbg-lab[xgboost]'
    python xgboost_cancer.py --rounds 60

The run shows in JupyterLab's Tensor Debugger like any other. LightGBM: tdbg.LightGBMCallback, the same arguments.
"""

import argparse

import numpy as np
import xgboost
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import tdbg_lab as tdbg


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--store", default="runs/cancer")
    options = parser.parse_args()

    data = load_breast_cancer()
    names = [str(name).replace(" ", "_") for name in data.feature_names]
    X_train, X_test, y_train, y_test = train_test_split(data.data, data.target, random_state=0)
    train = xgboost.DMatrix(X_train, y_train, feature_names=names)
    test = xgboost.DMatrix(X_test, y_test, feature_names=names)

    callback = tdbg.XGBoostCallback(
        options.store, train=train, validation=test, save_every=10, rules="default"
    )
    xgboost.train(
        {"objective": "binary:logistic", "max_depth": 3, "eta": 0.1, "nthread": 1},
        train,
        options.rounds,
        evals=[(train, "train"), (test, "test")],
        callbacks=[callback],
        verbose_eval=False,
    )

    run = callback.run
    losses = run.scalars("test-logloss", mode="eval").values
    print(f"{run.path}: {run.status}, loss on new data {losses[0]:.3f} -> {losses[-1]:.3f}")

    step = run.raw_steps("predictions")[-1]
    labels = run.tensor("labels").value(step, mode="eval")
    predicted = run.tensor("predicted_labels").value(step, mode="eval")
    confusion = np.zeros((2, 2), int)
    np.add.at(confusion, (labels.astype(int), predicted), 1)
    print(f"confusion at step {step}:\n{confusion}")

    shares = run.tensor("feature_importance/total_gain").value(step)
    for index in np.argsort(shares)[::-1][:3]:
        print(f"{shares[index]:6.1%} of the gain: {run.info.capture['features'][index]}")


if __name__ == "__main__":
    main()
