"""Boosted trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs import data
from benchmarks.detection.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["TASKS"]


def _boost(recipe: Recipe, path: Path | None, seed: int) -> float:
    import xgboost

    import tdbg_lab as tdbg
    from benchmarks.detection.loop import QUIET

    (x, y), (held_x, held_y) = (tuple(one.numpy() for one in pair) for pair in (recipe.train, recipe.held))
    train, held = xgboost.DMatrix(x, y), xgboost.DMatrix(held_x, held_y)
    several = y.max() > 1
    settings = {"objective": "multi:softprob", "num_class": int(y.max()) + 1} if several else {
        "objective": "binary:logistic"
    }  # fmt: skip
    settings |= {"max_depth": 3, "eta": 0.2, "nthread": 1, "subsample": 0.8, "seed": seed} | recipe.options
    callbacks = [] if path is None else [
        tdbg.XGBoostCallback(path, train=train, validation=held, save_every=1, **QUIET)
    ]  # fmt: skip
    booster = xgboost.train(settings, train, recipe.steps, evals=[(train, "train"), (held, "test")],
                            callbacks=callbacks, verbose_eval=False)  # fmt: skip
    told = booster.predict(held)
    told = told.argmax(1) if several else told > 0.5
    return float(np.mean([np.mean(told[held_y == one] == one) for one in np.unique(held_y)]))


def boosted_cancer(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.bunch("breast_cancer"), by_hand=_boost, steps=40)


def boosted_digits(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.digits(), by_hand=_boost, steps=15)


def _noise(recipe: Recipe, share: float) -> None:
    """Some labels are wrong."""
    x, y = recipe.train
    source = torch.Generator().manual_seed(1)
    wrong = torch.rand(len(y), generator=source) < share
    y = y.clone()
    y[wrong] = y[torch.randperm(len(y), generator=source)][wrong]
    recipe.train = (x, y)


def too_deep(recipe: Recipe) -> None:
    """Trees that learn noise by heart."""
    _noise(recipe, 0.4)
    recipe.options |= {"max_depth": 14, "min_child_weight": 0, "eta": 0.5, "lambda": 0}


def leaked(recipe: Recipe) -> None:
    """A column that holds the label in training, and nothing afterwards."""
    x, y = recipe.train
    source = torch.Generator().manual_seed(2)
    told = y.float() + 0.05 * torch.randn(len(y), generator=source)
    recipe.train = (torch.cat([x, told[:, None]], 1), y)
    held = torch.randn(len(recipe.held[0]), 1, generator=source)
    recipe.held = (torch.cat([recipe.held[0], held], 1), recipe.held[1])


def rare(recipe: Recipe) -> None:
    """Hardly any row of the first class."""
    x, y = recipe.train
    keep = (y != 0) | (torch.cumsum(y == 0, 0) <= 4)
    recipe.train = (x[keep], y[keep])


def shallow(recipe: Recipe) -> None:
    recipe.options |= {"max_depth": 2, "eta": 0.3}


def _fault(change: Callable[[Recipe], None], *rules: str) -> Fault:
    return Fault(change.__name__, change, rules, "sagemaker")


TASKS = (
    Task("boosted_cancer", "boosting", boosted_cancer, {"shallow": shallow},
         (_fault(leaked, "feature_importance_overweight", "overfit"),)),
    Task("boosted_digits", "boosting", boosted_digits, {"shallow": shallow},
         (_fault(rare, "class_imbalance", "confusion"),
          _fault(too_deep, "tree_depth", "overfit", "overtraining"))),
)  # fmt: skip
