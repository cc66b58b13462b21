"""Models of Keras that a program trains without ``fit``: batch by batch, or in a loop of its own."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import pytest

import tdbg_lab as tdbg

pytestmark = [
    pytest.mark.skipif(find_spec("keras") is None, reason="keras is not installed"),
    pytest.mark.timeout(300),
]

BEFORE = """
import keras, numpy as np
keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(32, 6)).astype("float32")
y = (x[:, 0] > 0).astype("int32")
loss_of = keras.losses.BinaryCrossentropy(from_logits=True)

def made(name, n_in, n_out):
    hidden, out = keras.layers.Dense(8, "relu", name="hidden"), keras.layers.Dense(n_out, name="out")
    return keras.Sequential([keras.Input((n_in,)), hidden, out], name=name)

def tell(*models):
    weights = [one for model in models for one in model.get_weights()]
    print("weights", *(repr(float(np.abs(one).sum(dtype="float64"))) for one in weights))
"""

ONE = """
import tensorflow as tf
model, optimizer = made("model", 6, 1), keras.optimizers.Adam(0.01)

def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y[:, None], model(x, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_weights), model.trainable_weights))

for _ in range(7):
    step(x, y)
with tf.GradientTape() as tape:  # after training: what the output owes to the input
    tape.watch(inputs := tf.convert_to_tensor(x))
    output = model(inputs)
print("saliency", float(tf.reduce_sum(tape.gradient(output, inputs))))
tell(model)
"""

COMPILED = ONE.replace("def step", "@tf.function\ndef step").replace(
    "model.trainable_weights))\n", "model.trainable_weights))\n    return loss\n", 1
)

TWO = """
import tensorflow as tf
generator, critic = made("generator", 4, 6), made("critic", 6, 1)
opt_g, opt_c = keras.optimizers.Adam(0.01), keras.optimizers.Adam(0.01)
for step in range(7):
    noise = tf.random.stateless_normal((32, 4), seed=(0, step))
    with tf.GradientTape() as tape_g, tf.GradientTape() as tape_c:
        false, true = critic(generator(noise, training=True), training=True), critic(x, training=True)
        loss_g = loss_of(tf.ones_like(false), false)
        loss_c = loss_of(tf.ones_like(true), true) + loss_of(tf.zeros_like(false), false)
    for tape, loss, model, optimizer in ((tape_g, loss_g, generator, opt_g), (tape_c, loss_c, critic, opt_c)):
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_weights), model.trainable_weights))
tell(generator, critic)
"""

BATCHES = """
model = made("model", 6, 1)
model.compile("adam", loss_of, metrics=["accuracy"])
for _ in range(7):
    logs = model.train_on_batch(x, y[:, None])
print(logs)
tell(model)
"""

EPOCHS = """
import tensorflow as tf
model, optimizer = made("model", 6, 1), keras.optimizers.Adam(0.01)

@tf.function
def epoch(batches):
    for x, y in batches:
        with tf.GradientTape() as tape:
            loss = loss_of(y[:, None], model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_weights), model.trainable_weights))

epoch(tf.data.Dataset.from_tensor_slices((x, y)).batch(8))
tell(model)
"""

ON_PYTORCH = """
import torch
model, inputs, labels = made("model", 6, 1), torch.tensor(x), torch.tensor(y)[:, None].float()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(7):
    optimizer.zero_grad()
    torch.nn.functional.binary_cross_entropy_with_logits(model(inputs, training=True), labels).backward()
    optimizer.step()
    with torch.no_grad():
        model(inputs, training=False)
tell(model)
"""

BY_KERAS_ON_PYTORCH = """
import torch
encoder = made("encoder", 6, 4)
given = keras.Input((6,))
model = keras.Model(given, keras.layers.Dense(1, name="last")(encoder(given)))
optimizer = keras.optimizers.Adam(0.01)
inputs, labels = torch.tensor(x), torch.tensor(y)[:, None].float()
for _ in range(7):
    loss = loss_of(labels, model(inputs, training=True))
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        optimizer.apply([one.value.grad for one in model.trainable_weights], model.trainable_weights)
tell(model)
"""


TWO_ON_PYTORCH = """
import torch
generator, critic = made("generator", 4, 6), made("critic", 6, 1)
opt_g, opt_c = keras.optimizers.Adam(0.01), keras.optimizers.Adam(0.01)
true, ones, zeros = torch.tensor(x), torch.ones(32, 1), torch.zeros(32, 1)

def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return [one.value.grad for one in model.trainable_weights]

for step in range(7):
    noise = torch.randn(32, 4, generator=torch.Generator().manual_seed(step))
    false = generator(noise, training=True).detach()
    found = gradients(critic, loss_of(ones, critic(true)) + loss_of(zeros, critic(false)))
    with torch.no_grad():
        opt_c.apply(found, critic.trainable_weights)
    found = gradients(generator, loss_of(ones, critic(generator(noise, training=True))))
    with torch.no_grad():
        opt_g.apply(found, generator.trainable_weights)
tell(generator, critic)
"""


ONE_BY_ONE = """
import pathlib, runpy
for path in sorted(pathlib.Path().glob("train_*.py")):
    runpy.run_path(str(path))
    print("---")
"""

COMPARED = {"tensorflow": (ONE, TWO, COMPILED, EPOCHS), "torch": (ON_PYTORCH,)}


@pytest.fixture(scope="module")
def plain(tmp_path_factory, python_in):
    """What the programs that are compared print without us: one process for all of a backend."""

    @cache
    def plain(backend):
        folder = tmp_path_factory.mktemp("plain")
        for i, program in enumerate(COMPARED[backend]):  # files: AutoGraph reads their lines
            (folder / f"train_{i}.py").write_text(whole(backend, program))
        (folder / "train.py").write_text(ONE_BY_ONE)
        done = python_in(folder, "train.py", **settings(backend))
        assert done.returncode == 0, done.stderr
        return dict(zip(COMPARED[backend], done.stdout.split("---\n")[:-1], strict=True))

    return plain


def whole(backend, program):
    """The program as a whole; Keras would import TensorFlow for its seeds, and that takes long."""
    without = "import sys\nsys.modules['tensorflow'] = None\n"
    return BEFORE + program if backend == "tensorflow" else without + BEFORE + program


def settings(backend):
    return {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}


@pytest.fixture
def ran(tmp_path, python, plain):
    """What `tdbg run` says at the end of a program, which says the same as without where it is compared."""

    def ran(backend, program):
        if find_spec(backend) is None:
            pytest.skip(f"{backend} is not installed")
        (tmp_path / "train.py").write_text(whole(backend, program))
        options = ["--store", "run", "--save-every", "2", "--rules", "none", "--no-profiler"]
        result = python("-m", "tdbg_lab.run", *options, "train.py", **settings(backend))
        assert result.returncode == 0, result.stderr
        if program in COMPARED.get(backend, ()):
            assert result.stdout == plain(backend)[program]
        return result.stderr

    return ran


def test_a_loop_with_a_tape_is_captured_from_its_second_step(tmp_path, ran):
    assert f"tdbg: captured {tmp_path / 'run'}." in ran("tensorflow", ONE)
    run = tdbg.open_run(tmp_path / "run")
    assert (run.status, run.problems) == ("finished", [])
    assert run.scalars("loss/total").steps.tolist() == [1, 2, 3, 4, 5, 6]  # what follows is no step
    assert run.tensor("activation/hidden").steps(mode="train").tolist() == [2, 4, 6]
    assert run.tensor_names(kind="gradient") == [
        f"gradient/{layer}/{weight}" for layer in ("hidden", "out") for weight in ("kernel", "bias")
    ]


def test_two_models_that_are_trained_together_are_one_run(tmp_path, ran):
    ran("tensorflow", TWO)
    run = tdbg.open_run(tmp_path / "run")
    assert (run.last_step, run.problems) == (6, [])
    assert run.tensor_names(kind="loss") == ["loss/total/opt_g", "loss/total/opt_c"]
    names = run.tensor_names()
    for player in ("generator", "critic"):
        assert f"gradient/{player}/hidden/kernel" in names
        assert f"activation/{player}/hidden" in names
    assert "activation/critic/hidden:1" in names  # it is called twice
    assert "activation/critic/hidden:2" not in names  # and both tapes see it once


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_training_batch_by_batch_is_captured(tmp_path, ran, backend):
    ran(backend, BATCHES)
    run = tdbg.open_run(tmp_path / "run")
    assert len(run.scalars("loss/total").steps) == 7
    assert run.tensor("activation/hidden").steps(mode="train").tolist() == [0, 2, 4, 6]
    assert run.tensor("gradient/out/kernel").steps(mode="train").tolist() == [0, 2, 4, 6]


def test_steps_that_are_compiled_functions_are_captured_from_the_first(tmp_path, ran):
    assert f"tdbg: captured {tmp_path / 'run'}." in ran("tensorflow", COMPILED)
    run = tdbg.open_run(tmp_path / "run")
    assert (run.status, run.problems) == ("finished", [])
    assert run.scalars("loss/total").steps.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert run.tensor("activation/hidden").steps(mode="train").tolist() == [0, 2, 4, 6]
    assert run.tensor("gradient/out/kernel").steps(mode="train").tolist() == [0, 2, 4, 6]


def test_a_loop_that_cannot_be_seen_is_told(tmp_path, ran):
    assert "a loop that runs within one call of a tf.function is not seen" in ran("tensorflow", EPOCHS)
    assert not (tmp_path / "run").exists()


def test_a_loop_of_pytorch_around_a_model_of_keras_is_captured_from_its_first_step(tmp_path, ran):
    assert f"tdbg: captured {tmp_path / 'run'}." in ran("torch", ON_PYTORCH)
    run = tdbg.open_run(tmp_path / "run")
    assert (run.status, run.problems) == ("finished", [])
    assert run.scalars("loss/objective").steps.tolist() == [0, 1, 2, 3, 4, 5, 6]
    for name in ("activation/hidden", "hidden/kernel", "gradient/out/kernel", "optimizer/lr/0"):
        assert run.tensor(name).steps(mode="train").tolist() == [0, 2, 4, 6], name
    assert run.tensor("activation/hidden").steps(mode="eval").tolist()
    assert not [name for name in run.tensor_names() if "relu_0" in name], "the layer's output is that already"
    (key,) = run.tensors(regex="^activation/hidden$")
    assert "relu" in key.collections
    assert len(run.tensor("activation/hidden").stats(0).channel_mean) == 8


def test_a_loop_of_pytorch_with_an_optimizer_of_keras_is_captured_from_its_second_step(tmp_path, ran):
    ran("torch", BY_KERAS_ON_PYTORCH)
    run = tdbg.open_run(tmp_path / "run")
    assert (run.status, run.problems) == ("finished", [])
    assert run.scalars("loss/objective").steps.tolist() == [1, 2, 3, 4, 5, 6]
    for name in (
        "activation/encoder/hidden",
        "encoder/hidden/kernel",
        "gradient/last/kernel",
        "optimizer/lr/0",
    ):
        assert run.tensor(name).steps(mode="train").tolist() == [2, 4, 6], name


def test_two_models_of_keras_that_pytorch_trains_together_are_one_run(tmp_path, ran):
    ran("torch", TWO_ON_PYTORCH)
    run = tdbg.open_run(tmp_path / "run")
    assert (run.status, run.last_step, run.problems) == ("finished", 7, [])
    assert sorted(run.tensor_names(kind="loss")) == ["loss/objective/opt_c", "loss/objective/opt_g"]
    names = run.tensor_names()
    for player in ("generator", "critic"):
        assert f"gradient/{player}/hidden/kernel" in names
        assert f"activation/{player}/hidden" in names
