"""Capture of boosted trees: what XGBoost and LightGBM have in common, and a callback for each.

Importing this package imports neither of them.

Names of tensors, the same for both (``<d>`` a data set, ``<m>`` a metric, ``<f>`` a feature)::

    <d>-<m>                         a metric of an evaluation set, every round
    predictions, labels             of the rows of `train` (mode train) and `validation` (mode eval)
    predicted_labels                class of each row, where the objective is a classification
    feature_importance/<kind>       share of each feature, (F,), in the order of the features
    feature_importance/<kind>/<f>   the share of one feature
    full_shap/<f>, average_shap/<f> contributions of each feature to the margin, and their mean
    average_shap                    the same, (F + 1,), the bias last
    trees/...                       the trees of the round: one number a node, or one a tree
    hyperparameters/<name>          numbers among the hyper-parameters, once

A step is a boosting round. The names of the features stand in ``run.info.capture["features"]``.
"""

from __future__ import annotations

__all__ = ["CALLBACKS"]

CALLBACKS = {"xgboost": "XGBoostCallback", "lightgbm": "LightGBMCallback"}
"""The class that captures a library, by the package of the library."""
