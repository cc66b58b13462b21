"""Code written after the predecessor's documentation, with only its import changed, on every backend."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import pytest

import tdbg_lab.smdebug.tensorflow as smd
from checks.training import data, noisy, only, optimized, plain, same, state
from tdbg_lab.records import RunStatus
from tdbg_lab.run import open_run
from tdbg_lab.smdebug.exceptions import SMDebugNotImplementedError, SMDebugTypeError

if TYPE_CHECKING:
    from pathlib import Path

EVERY_SECOND = smd.SaveConfig(save_interval=2)
NAMES = {
    "weights": ["first/weights/first/kernel:0", "last/weights/last/kernel:0"],
    "biases": ["first/weights/first/bias:0", "last/weights/last/bias:0"],
    "gradients": [
        f"gradients/{one}Grad" for one in ("first/bias", "first/kernel", "last/bias", "last/kernel")
    ],
    "layers": ["first/inputs", "first/outputs", "last/inputs", "last/outputs"],
    "inputs": ["inputs"],
    "outputs": ["labels", "predictions"],
    "losses": ["loss", "val_loss"],
    "metrics": ["batch", "mae", "val_mae"],
}


def trained(make: Any, hooks: list[Any], **options: Any) -> keras.Model:
    x, y = data(48)
    keras.utils.set_random_seed(0)
    model = make()
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
    model.fit(x, y, batch_size=16, epochs=2, verbose=0, callbacks=hooks, **options)
    return model


def check_hook_saves_losses_and_metrics_by_default(folder: Path) -> None:
    hook = smd.KerasHook(folder / "run", save_config=EVERY_SECOND)
    trained(plain, [hook])
    hook.close()
    trial = smd.create_trial(folder / "run")
    assert trial.tensor_names() == ["batch", "loss", "mae"]
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 2, 4]  # no more than asked, at the end of an epoch either
    assert hook.has_default_hook_configuration()
    assert open_run(folder / "run").status is RunStatus.FINISHED


def check_names_steps_and_modes_of_fit_are_the_documented_ones(folder: Path) -> None:
    x, y = data(48)
    hook = smd.KerasHook(folder / "run", save_all=True, save_config=EVERY_SECOND)
    model = trained(plain, [hook], validation_data=(x[:32], y[:32]))
    prediction = model.predict(x, batch_size=48, verbose=0, callbacks=[hook])
    hook.close()
    assert hook._guard.problems == {}
    trial = smd.create_trial(folder / "run")
    assert trial.modes() == [smd.modes.TRAIN, smd.modes.EVAL, smd.modes.PREDICT]
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 2, 4]
    assert trial.steps() == [0, 2, 3, 6, 8, 10]  # epochs of three batches, with two of validation
    for collection, names in NAMES.items():
        assert trial.tensor_names(collection=collection) == names, collection
    optimizer = trial.tensor_names(collection="optimizer_variables")
    assert {"Adam/iter:0", "Adam/first/kernel/m:0", "Adam/last/bias/v:0"} <= set(optimizer)
    assert trial.tensor("gradients/first/kernelGrad").steps(mode=smd.modes.EVAL) == []
    assert trial.inputs(0) == ["inputs"]
    assert trial.labels(0) == ["labels"]
    assert trial.predictions(10) == ["predictions"]
    np.testing.assert_array_equal(trial.tensor("predictions").value(0, mode=smd.modes.PREDICT), prediction)
    kernel = keras.ops.convert_to_numpy(model.layers[0].kernel)
    saved = trial.tensor("first/weights/first/kernel:0")
    np.testing.assert_array_equal(saved.value(0, mode=smd.modes.PREDICT), kernel)
    np.testing.assert_array_equal(trial.tensor("inputs").value(10), x)
    outputs = trial.tensor("first/outputs").value(10)
    assert trial.tensor("first/outputs").reduction_value(10, "mean", abs=True) == np.abs(outputs).mean()


@optimized
def check_training_is_bitwise_the_same_with_a_hook(folder: Path) -> None:
    hook = smd.KerasHook(folder / "run", save_all=True, save_config=smd.SaveConfig(save_interval=1))
    bare, hooked = trained(noisy, []), trained(noisy, [hook])
    hook.close()
    assert hook._guard.problems == {}
    assert same(state(bare), state(hooked))
    assert smd.create_trial(folder / "run").tensor("norm/outputs").steps() == list(range(6))


def check_collections_of_layers_variables_and_patterns_are_saved(folder: Path) -> None:
    only_norms = smd.ReductionConfig(norms=["l2"], reductions=["min"])
    hook = smd.KerasHook(
        folder / "run",
        include_regex="last/weights/.*kernel",
        include_collections=["one_layer", "one_weight"],
        reduction_config=only_norms,
        save_config=EVERY_SECOND,
    )
    keras.utils.set_random_seed(0)
    model = plain()
    hook.get_collection("one_layer").add_keras_layer(model.layers[0], inputs=True, outputs=False)
    hook.get_collection("one_weight").add(model.layers[0].bias)
    with pytest.raises(SMDebugTypeError, match="takes a variable"):
        hook.get_collection("one_weight").add("first")
    trained(lambda: model, [hook])
    hook.close()
    trial = smd.create_trial(folder / "run")
    assert trial.tensor_names(collection="one_layer") == ["first/inputs"]
    assert "first/weights/first/bias:0" in trial.tensor_names(collection="one_weight")
    assert trial.tensor_names(collection="default") == ["last/weights/last/kernel:0"]
    assert set(trial.tensor("first/inputs").reduction_values(2)) == {("l2", False), ("min", False)}


def check_a_json_file_makes_the_hook_and_get_hook_finds_it(folder: Path) -> None:
    path = folder / "hook.json"
    parameters = {"save_interval": "3", "train.save_steps": "1"}
    gradients = {"CollectionName": "gradients", "CollectionParameters": {"save_interval": "2"}}
    path.write_text(
        json.dumps(
            {
                "LocalPath": str(folder / "run"),
                "HookParameters": parameters,
                "CollectionConfigurations": [gradients],
            }
        )
    )
    smd.del_hook()
    assert smd.get_hook("keras") is None
    hook = smd.get_hook("keras", str(path), create_if_not_exists=True)
    assert isinstance(hook, smd.KerasHook)
    assert smd.get_hook() is hook
    trained(plain, [hook])
    hook.close()
    smd.del_hook()
    trial = smd.create_trial(folder / "run")
    assert trial.tensor("loss").steps(mode=smd.modes.TRAIN) == [0, 1, 3]
    assert trial.tensor("gradients/last/biasGrad").steps(mode=smd.modes.TRAIN) == [0, 1, 2, 4]


def check_hooks_for_sessions_say_what_to_use(folder: Path) -> None:
    for kind in (smd.SessionHook, smd.EstimatorHook):
        with pytest.raises(SMDebugNotImplementedError, match=f"{kind.__name__} is for sessions.*KerasHook"):
            kind(out_dir=folder)


def check_a_stop_request_ends_fit(folder: Path) -> None:
    hook = smd.KerasHook(folder / "run", save_config=smd.SaveConfig(save_interval=1))

    class Ask(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if batch == 1:
                open_run(folder / "run").request_stop("enough")
                hook._recording._control._next_s = 0.0

    trained(plain, [hook, Ask()])
    assert open_run(folder / "run").status is RunStatus.STOPPED
    assert hook.mode_steps[smd.modes.TRAIN] == 1


@only("tensorflow")
def check_a_loop_with_tapes_is_recorded_and_the_same(folder: Path) -> None:
    import tensorflow as tf

    x, y = data()

    def train(hook: smd.KerasHook | None, *, register: bool = False) -> list[np.ndarray]:
        keras.utils.set_random_seed(0)
        model = plain()
        optimizer = keras.optimizers.Adam(0.1)
        if hook is not None:
            hook.wrap_optimizer(optimizer)
            if register:
                hook.register_model(model)
        for _ in range(5):
            tape = tf.GradientTape()
            with hook.wrap_tape(tape) if hook else tape as seen:
                predicted = model(x, training=True)
                loss = tf.reduce_mean((predicted - y) ** 2)
            assert seen is tape
            gradients = seen.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            if hook is not None:
                hook.save_tensor("error", tf.abs(loss), "metrics")
                hook.record_tensor_value("worst", tf.reduce_max(predicted))
                if not register:
                    hook.save_tape_logs(x, predicted)
        if hook is not None:
            hook.close()
            assert hook._guard.problems == {}
        return [np.asarray(one) for one in model.get_weights()]

    bare = train(None)
    loose = train(smd.KerasHook(folder / "loose", save_all=True, save_config=EVERY_SECOND))
    known = train(smd.KerasHook(folder / "known", save_all=True, save_config=EVERY_SECOND), register=True)
    assert same(bare, loose)
    assert same(bare, known)
    trial = smd.create_trial(folder / "known")
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 2, 4]
    assert trial.tensor_names(collection="weights") == ["weights/first/kernel:0", "weights/last/kernel:0"]
    assert "gradients/first/kernelGrad" in trial.tensor_names(collection="gradients")
    assert trial.tensor_names(collection="metrics") == ["error", "worst"]
    assert "Adam/first/kernel/m:0" in trial.tensor_names(collection="optimizer_variables")
    for name in ("loss", "first/outputs", "inputs", "predictions", "error"):
        assert trial.tensor(name).steps() == [0, 2, 4], name
    unregistered = smd.create_trial(folder / "loose")
    assert len(unregistered.tensor_names(collection="gradients")) == 4
    for one in (trial, unregistered):
        assert one.tensor_names(collection="inputs") == ["inputs"]
        assert np.array_equal(one.tensor("inputs").value(2), x)


@only("tensorflow")
def check_tapes_within_functions_are_recorded_and_the_same(folder: Path) -> None:
    import tensorflow as tf

    x, y = data()

    def train(hook: smd.KerasHook | None) -> list[np.ndarray]:
        keras.utils.set_random_seed(0)
        model, optimizer = noisy(), keras.optimizers.Adam(0.1)
        if hook is not None:
            hook.register_model(model)
            hook.wrap_optimizer(optimizer)

        @tf.function
        def step(x: Any, y: Any) -> Any:
            tape = tf.GradientTape()
            with hook.wrap_tape(tape) if hook else tape as seen:
                loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
            optimizer.apply(seen.gradient(loss, model.trainable_variables), model.trainable_variables)
            return loss

        for _ in range(5):
            step(x, y)
        if hook is not None:
            hook.close()
            assert hook._guard.problems == {}
        return [np.asarray(one) for one in model.get_weights()]

    assert same(train(None), train(smd.KerasHook(folder / "run", save_all=True, save_config=EVERY_SECOND)))
    trial = smd.create_trial(folder / "run")
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 2, 4]
    for name in ("loss", "first/outputs", "weights/first/kernel:0", "Adam/first/kernel/m:0"):
        assert trial.tensor(name).steps() == [0, 2, 4], name
    assert trial.tensor("gradients/first/kernelGrad").steps() == [0, 2, 4]


@only("tensorflow")
def check_tapes_that_cannot_be_looked_at_are_said_and_counted(folder: Path) -> None:
    import tensorflow as tf

    model, (x, y) = plain(), data()
    hook = smd.KerasHook(folder / "run", save_all=True, save_config=smd.SaveConfig(save_interval=1))

    @tf.function
    def step() -> Any:
        with hook.wrap_tape(tf.GradientTape()) as tape, hook.wrap_tape(tf.GradientTape()) as other:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        return [one.gradient(loss, model.trainable_variables) for one in (tape, other)]

    assert len(step()) == 2
    assert hook.mode_steps[smd.modes.TRAIN] == 1
    hook.close()
    assert "records several tapes in one call" in hook._guard.problems["tape"].message
