"""Keras, XGBoost and LightGBM in the third held-out set."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from benchmarks.detection.faults.sagemaker import DEAD
from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs import boosting, keras_nets
from benchmarks.detection.programs.held import trees
from benchmarks.detection.programs.keras_nets import option
from benchmarks.detection.programs.third import data
from benchmarks.detection.recipe import Recipe, fit_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["TASKS"]


def _arrays(recipe: Recipe) -> list[np.ndarray]:
    return [one.numpy() for pair in (recipe.train, recipe.held) for one in pair]


def _fit(recipe: Recipe, path: Path | None, seed: int) -> float:
    """Keras on PyTorch, with layers that the options' `layers` makes."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    import tdbg_lab as tdbg
    from benchmarks.detection.loop import QUIET

    keras.utils.set_random_seed(seed)
    option, (x, y, held_x, held_y) = recipe.options, _arrays(recipe)
    model = keras.Sequential([keras.Input(x.shape[1:]), *option["layers"](keras.layers, option)])
    for name in option.get("frozen", ()):
        model.get_layer(name).trainable = False
    optimizer = getattr(keras.optimizers, option["optimizer"])(option["rate"], **option.get("settings", {}))
    model.compile(optimizer, option["loss"])
    callbacks: list[Any] = (
        [] if path is None else [tdbg.KerasCallback(path, save_every=recipe.save_every, **QUIET)]
    )
    for name, step in option.get("killed", {}).items():
        callbacks.insert(0, keras_nets._killer(keras, model.get_layer(name), step))
    model.fit(x, y, batch_size=option["batch"], epochs=option["epochs"], verbose=0, callbacks=callbacks,
              validation_data=(held_x, held_y), shuffle=option.get("shuffle", True))  # fmt: skip
    recipe.steps = int(model.optimizer.iterations)
    told = torch.from_numpy(np.nan_to_num(model.predict(held_x, verbose=0)))
    return option["score"](told, recipe.held[1])


def _share(told: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((told.argmax(1) == wanted).float().mean())


def _looking(layers: Any, option: dict[str, Any]) -> list[Any]:
    act = option.get("act", "relu")
    start = option.get("start", "he_normal")
    return [
        layers.Reshape((8, 8, 1)),
        layers.Conv2D(12, 3, padding="same", activation=act, name="near", kernel_initializer=start),
        layers.MaxPooling2D(), layers.Flatten(),
        layers.Dense(48, activation=act, name="mix", kernel_initializer=start), layers.Dropout(0.3),
        layers.Dense(10, activation="softmax", name="head"),
    ]  # fmt: skip


def keras_looking(seed: int) -> Recipe:
    options = {"layers": _looking, "loss": "sparse_categorical_crossentropy", "optimizer": "Adam",
               "rate": 2e-3, "batch": 48, "epochs": 5, "score": _share}  # fmt: skip
    return Recipe(nn.Identity(), *data.rows_of_digits(), by_hand=_fit, options=options)


def _telling(layers: Any, option: dict[str, Any]) -> list[Any]:
    act = option.get("act", "swish")
    return [
        layers.Dense(48, name="first"), layers.BatchNormalization(name="norm"), layers.Activation(act),
        layers.Dense(24, activation=act, name="second"),
        layers.Dense(1, name="head", activation=option.get("end")),
    ]  # fmt: skip


def keras_telling(seed: int) -> Recipe:
    options = {"layers": _telling, "loss": "huber", "optimizer": "SGD", "rate": 0.03, "batch": 40,
               "settings": {"momentum": 0.9, "nesterov": True}, "epochs": 6, "score": fit_of}  # fmt: skip
    return Recipe(nn.Identity(), *data.pieces(), by_hand=_fit, options=options)


def _boost_numbers(recipe: Recipe, path: Path | None, seed: int) -> float:
    """XGBoost on numbers instead of classes."""
    import xgboost

    import tdbg_lab as tdbg
    from benchmarks.detection.loop import QUIET

    x, y, held_x, held_y = _arrays(recipe)
    train, test = xgboost.DMatrix(x, y), xgboost.DMatrix(held_x, held_y)
    settings = {"max_depth": 3, "eta": 0.15, "nthread": 1, "subsample": 0.9, "seed": seed} | recipe.options
    callbacks = [] if path is None else [
        tdbg.XGBoostCallback(path, train=train, validation=test, save_every=1, **QUIET)
    ]  # fmt: skip
    booster = xgboost.train(settings, train, recipe.steps, evals=[(train, "train"), (test, "test")],
                            callbacks=callbacks, verbose_eval=False)  # fmt: skip
    return fit_of(torch.from_numpy(booster.predict(test)), recipe.held[1])


def boosted_arctan(seed: int) -> Recipe:
    flat = [(x, y[:, 0]) for x, y in data.arctan()]
    return Recipe(nn.Identity(), *flat, by_hand=_boost_numbers, steps=40)


def boosted_clusters(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.clusters(), by_hand=boosting._boost, steps=15,
                  options={"max_depth": 4, "eta": 0.3, "tree_method": "hist"})  # fmt: skip


def light_malignant(seed: int) -> Recipe:
    """One of thirteen is what is looked for, and weighs more for it."""
    return Recipe(nn.Identity(), *data.malignant(), by_hand=trees._light, steps=25,
                  options={"num_leaves": 5, "class_weight": "balanced", "min_data_in_leaf": 5})  # fmt: skip


def light_terciles(seed: int) -> Recipe:
    """Little can be told: shallow trees, slowly."""
    return Recipe(nn.Identity(), *data.terciles(), by_hand=trees._light, steps=25,
                  options={"num_leaves": 4, "learning_rate": 0.06, "feature_fraction": 0.6})  # fmt: skip


def dart(recipe: Recipe) -> None:
    """Some of the earlier trees are left out of each round."""
    recipe.options |= {"booster": "dart", "rate_drop": 0.1}


def noisy_and_deep(recipe: Recipe) -> None:
    """Trees that learn noise by heart: the numbers are mixed up in a third of the rows."""
    x, y = recipe.train
    source = torch.Generator().manual_seed(7)
    wrong = torch.rand(len(y), generator=source) < 0.35
    y = y.clone()
    y[wrong] = y[torch.randperm(len(y), generator=source)][wrong]
    recipe.train = (x, y)
    recipe.options |= {"max_depth": 16, "min_child_weight": 0, "eta": 0.6, "lambda": 0, "subsample": 1.0}


def _known(change: Callable[[Recipe], None], *rules: str) -> Fault:
    return Fault(change.__name__, change, rules, "sagemaker")


TASKS = (
    Task("keras_looking", "keras", keras_looking, {},
         (option("dead_units", DEAD, "sagemaker", 50, "mix",
                 killed={"mix": 50}),
          option("symmetric", ("symmetric_initialisation", "poor_weight_initialization"), "setup",
                 start="zeros"))),
    Task("keras_telling", "keras", keras_telling, {},
         (option("rate_explodes", keras_nets.RATE, "sagemaker", rate=1e4),
          option("squashed_output", ("output_loss_mismatch", "wrong_loss", "saturated_activation"), "setup",
                 end="sigmoid"))),
    Task("boosted_arctan", "boosting", boosted_arctan, {"dart": dart},
         (_known(noisy_and_deep, "tree_depth", "overfit", "overtraining"),
          _known(boosting.leaked, "feature_importance_overweight", "overfit"))),
    Task("boosted_clusters", "boosting", boosted_clusters, {"shallow": boosting.shallow},
         (_known(trees.rare_class, "class_imbalance", "confusion"),)),
    Task("light_malignant", "boosting", light_malignant, {},
         (_known(boosting.leaked, "feature_importance_overweight", "overfit"),)),
    Task("light_terciles", "boosting", light_terciles, {"slow": trees.slow},
         (_known(trees.deep_light, "tree_depth", "overfit", "overtraining"),)),
)  # fmt: skip
