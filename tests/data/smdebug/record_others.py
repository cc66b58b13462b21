"""Record stores with smdebug's hooks for other frameworks: ``python record_others.py NAME [FOLDER]``.

Each framework wants an environment of its own, beside ``smdebug==1.0.34 protobuf==3.20.3
pandas<2.1 requests psutil`` on Python 3.11. What they were run with:

    xgboost       xgboost==1.5.2 numpy==1.23.5
    mxnet         mxnet==1.9.1 numpy==1.23.5
    tensorflow    tensorflow-cpu==2.12.1
    session, estimator    tensorflow==1.15.5 numpy==1.18.5 on Python 3.7

Beside each store, ``<store>.json`` says what smdebug's own reader makes of it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
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
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905 - Python 3.7
    hook.close()


def session(out: Path) -> None:
    """TensorFlow 1: a monitored session in two modes."""
    import smdebug.tensorflow as smd
    import tensorflow.compat.v1 as tf

    tf.set_random_seed(0)
    x = np.random.RandomState(0).normal(size=(4, 5)).astype(np.float32)
    given, wanted = tf.placeholder(tf.float32, (None, 5)), tf.placeholder(tf.int64, (None,))
    with tf.variable_scope("dense"):
        weight = tf.get_variable("weight", (5, 3))
        output = tf.nn.relu(tf.matmul(given, weight) + tf.get_variable("bias", (3,)), name="output")
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=output), name="loss"
    )
    hook = smd.SessionHook(
        str(out),
        save_config=smd.SaveConfig(save_interval=2),
        include_collections=["weights", "biases", "gradients", "losses", "outputs"],
    )
    hook.get_collection("outputs").add(output)
    hook.add_to_collection("losses", loss)
    train = hook.wrap_optimizer(tf.train.GradientDescentOptimizer(0.1)).minimize(loss)
    feed = {given: x, wanted: [0, 1, 2, 0]}
    with tf.train.MonitoredSession(hooks=[hook]) as opened:
        hook.set_mode(smd.modes.TRAIN)
        for _ in range(5):
            opened.run([loss, train], feed)
        hook.set_mode(smd.modes.EVAL)
        for _ in range(3):
            opened.run(loss, feed)


def estimator(out: Path) -> None:
    """TensorFlow 1: ``train`` and ``evaluate`` of an estimator, with shapes and reductions."""
    import smdebug.tensorflow as smd
    import tensorflow.compat.v1 as tf

    x = np.random.RandomState(0).normal(size=(8, 5)).astype(np.float32)
    hook = smd.EstimatorHook(
        str(out),
        save_config=smd.SaveConfig(save_interval=2),
        reduction_config=smd.ReductionConfig(reductions=["mean", "max"], abs_reductions=["mean"]),
        include_collections=["weights", "gradients", "losses", "optimizer_variables"],
    )
    hook.get_collection("losses").reduction_config = smd.ReductionConfig(save_raw_tensor=True)

    def model(features, labels, mode):
        logits = tf.layers.dense(features["x"], 3, name="dense")
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer = hook.wrap_optimizer(tf.train.AdamOptimizer())
        train = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    data = tf.estimator.inputs.numpy_input_fn({"x": x}, np.arange(8) % 3, batch_size=2, shuffle=False)
    config = tf.estimator.RunConfig(tf_random_seed=0, save_checkpoints_steps=None, save_checkpoints_secs=None)
    with tempfile.TemporaryDirectory() as folder:
        net = tf.estimator.Estimator(model, folder, config)
        hook.set_mode(smd.modes.TRAIN)
        net.train(data, hooks=[hook], steps=4)
        hook.set_mode(smd.modes.EVAL)
        net.evaluate(data, hooks=[hook], steps=2)


def main() -> None:
    records = (xgboost, mxnet, tensorflow, tensorflow_tape, session, estimator)
    record = {one.__name__: one for one in records}[sys.argv[1]]
    out = (Path(sys.argv[2]) if len(sys.argv) > 2 else HERE).absolute() / record.__name__
    shutil.rmtree(out, ignore_errors=True)
    record(out)
    out.with_suffix(".json").write_text(json.dumps(described(out), indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
