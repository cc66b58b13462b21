"""``fit`` of Keras on the backend that KERAS_BACKEND names."""

from __future__ import annotations

import os

import numpy as np

from trainings.stopwatch import OURS, WARM_UP, Stopwatch, no_problems

ROWS, FEATURES, CLASSES = 256, 64, 10


class Keras:
    """A small classifier; epochs of 10 steps."""

    def __init__(self, arm, folder):
        import keras

        import tdbg_lab as tdbg

        one_thread()
        keras.utils.set_random_seed(0)
        random = np.random.default_rng(0)
        self.x = random.random((ROWS * 10, FEATURES), dtype=np.float32)
        self.y = random.integers(0, CLASSES, ROWS * 10)
        layers = [keras.layers.Dense(512, activation="relu") for _ in range(3)]
        self.model = keras.Sequential([keras.Input((FEATURES,)), *layers, keras.layers.Dense(CLASSES)])
        self.model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        self.own = []
        if arm in OURS:
            self.own = [tdbg.KerasCallback(folder / "run", save_every=OURS[arm], profiler=False)]
        elif arm == "tensorboard-10":
            self.own = [keras.callbacks.TensorBoard(folder / "board", histogram_freq=1)]

    def block(self, steps):
        """Seconds a step, after the warm-up."""
        watch = Stopwatch(steps)
        epochs = -(-(WARM_UP + steps) // 10)
        callbacks = [*self.own, watching(watch)]
        self.model.fit(self.x, self.y, batch_size=ROWS, epochs=epochs, verbose=0, callbacks=callbacks)
        return watch.spent

    def close(self):
        for one in self.own:
            if hasattr(one, "handle"):
                no_problems(one.handle)


def one_thread():
    """Let PyTorch compute in one thread, as in the other cases; the others take what they take."""
    if os.environ["KERAS_BACKEND"] == "torch":
        import torch

        torch.set_num_threads(1)


def watching(watch):
    """A callback that tells of every step."""
    import keras

    class Watching(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            watch.step()

    return Watching()
