"""Train a small network on scikit-learn's digits with Keras, on the backend that KERAS_BACKEND names.

KERAS_BACKEND=jax python examples/keras_digits.py [runs/keras_digits]
"""

import sys

import keras
from sklearn.datasets import load_digits

import tdbg_lab as tdbg

keras.utils.set_random_seed(0)
digits = load_digits()
x, y = digits.data.astype("float32") / 16, digits.target

model = keras.Sequential(
    [
        keras.Input((64,)),
        keras.layers.Dense(64, activation="relu", name="hidden"),
        keras.layers.Dropout(0.2, name="dropout"),
        keras.layers.Dense(10, activation="softmax", name="digit"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])

callback = tdbg.KerasCallback(
    store=sys.argv[1] if len(sys.argv) > 1 else "runs/keras_digits", save_every=20, rules="default"
)
model.fit(x, y, batch_size=32, epochs=3, validation_split=0.2, verbose=2, callbacks=[callback])

run = tdbg.open_run(callback.run_path)
print(run.status, "after", run.last_step + 1, "steps;", len(run.tensor_names()), "tensors")
