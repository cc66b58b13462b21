"""Record stores with smdebug's hooks for other frameworks: ``python record_others.py NAME [FOLDER]``.

Each framework wants an environment of its own, beside ``smdebug==1.0.34 protobuf==3.20.3
pandas<2.1 requests psutil`` on Python 3.11. What they were run with:

    xgboost       xgboost==1.5.2 numpy==1.23.5
    mxnet         mxnet==1.9.1 numpy==1.23.5
    tensorflow    tensorflow-cpu==2.12.1

Beside each store, ``<store>.json`` says what smdebug's own reader makes of it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from record import HERE, described

EVERYTHING = [
    *("metrics", "losses", "predictions", "labels", "feature_importance"),
    *("average_shap", "full_shap", "trees", "hyperparameters"),
]


def xgboost(out: Path) -> None:
    """Every collection of boosted trees, at every second round."""
    import xgboost as xgb
    from smdebug.xgboost import Hook, SaveConfig

    x = np.random.default_rng(0).normal(size=(20, 3)).round(3)
    train = xgb.DMatrix(x, (x[:, 0] * x[:, 1] > 0).astype(int))
    validation = xgb.DMatrix(x[:5], (x[:5, 0] * x[:5, 1] > 0).astype(int))
    parameters = {"objective": "binary:logistic", "max_depth": 2, "eval_metric": ["logloss", "auc"]}
    hook = Hook(
        str(out),
        save_config=SaveConfig(save_interval=2),
        include_collections=EVERYTHING,
        hyperparameters=parameters,
        train_data=train,
        validation_data=validation,
    )
    xgb.train(
        parameters,
        train,
        num_boost_round=5,
        evals=[(train, "train"), (validation, "validation")],
        callbacks=[hook],
        verbose_eval=False,
    )


def mxnet(out: Path) -> None:
    """A small net of Gluon in two modes; its loss has a number for each sample."""
    import mxnet as mx
    from mxnet import autograd, gluon
    from smdebug.mxnet import Hook, SaveConfig, modes

    mx.random.seed(0)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(2, 3, activation="relu"), gluon.nn.Dense(3))
    net.initialize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    hook = Hook(
        str(out),
        save_config=SaveConfig(save_interval=1),
        include_collections=["weights", "biases", "gradients", "losses", "convolutions"],
    )
    hook.get_collection("convolutions").include("relu_output|conv0_output")
    hook.register_block(net)
    hook.register_block(loss)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    x = mx.nd.array(np.random.default_rng(0).normal(size=(4, 1, 4, 4)))
    y = mx.nd.array([0, 1, 2, 0])
    for step in range(3):
        hook.set_mode(modes.TRAIN)
        with autograd.record():
            value = loss(net(x), y)
        value.backward()
        trainer.step(4)
        if step == 1:
            hook.set_mode(modes.EVAL)
            loss(net(x), y).wait_to_read()
    hook.close()


def tensorflow(out: Path) -> None:
    """``fit`` and ``evaluate`` of a small Keras model, with everything that the hook knows."""
    import smdebug.tensorflow as smd
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    layers = [tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(3)]
    model = tf.keras.Sequential([tf.keras.Input((5,)), *layers])
    hook = smd.KerasHook(
        str(out),
        save_config=smd.SaveConfig(save_interval=2),
        include_collections=["weights", "biases", "gradients", "layers", "optimizer_variables"],
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(hook.wrap_optimizer(tf.keras.optimizers.legacy.Adam()), loss, metrics=["accuracy"])
    x = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
    y = np.arange(12) % 3
    model.fit(x, y, batch_size=4, epochs=2, verbose=0, callbacks=[hook])
    model.evaluate(x, y, batch_size=4, verbose=0, callbacks=[hook])
    hook.close()


def tensorflow_tape(out: Path) -> None:
    """A loop of one's own around a wrapped gradient tape."""
    import smdebug.tensorflow as smd
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.Input((5,)), tf.keras.layers.Dense(3)])
    hook = smd.KerasHook(
        str(out),
        save_config=smd.SaveConfig(save_interval=1),
        include_collections=["weights", "biases", "gradients", "losses", "optimizer_variables"],
    )
    optimizer = hook.wrap_optimizer(tf.keras.optimizers.legacy.Adam())
    losses = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    for _ in range(3):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = losses([0, 1, 2, 0], model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    hook.close()


def main() -> None:
    records = (xgboost, mxnet, tensorflow, tensorflow_tape)
    record = {one.__name__: one for one in records}[sys.argv[1]]
    out = (Path(sys.argv[2]) if len(sys.argv) > 2 else HERE).absolute() / record.__name__
    shutil.rmtree(out, ignore_errors=True)
    record(out)
    out.with_suffix(".json").write_text(json.dumps(described(out), indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
