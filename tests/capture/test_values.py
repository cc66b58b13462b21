"""What is captured is what was there: at the right moment, under the right name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import torch
from capture_training import Net, batch, train
from torch import nn

from tdbg_lab.errors import CaptureError


def l2(run, name, step, mode=None):
    return run.tensor(name).stats(step, mode=mode).l2[0]


def norm(tensor):
    return float(tensor.detach().double().norm())


def test_weights_and_gradients_are_those_of_the_step_before_its_update(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    weights, grads = [], []
    optimizer.register_step_pre_hook(
        lambda *_: weights.append(norm(model.conv.weight)) or grads.append(norm(model.conv.weight.grad))
    )
    train(model, optimizer, 3)
    handle.detach()
    run = handle.run
    assert [l2(run, "conv.weight", s) for s in range(3)] == pytest.approx(weights)
    assert [l2(run, "gradient/conv.weight", s) for s in range(3)] == pytest.approx(grads)
    assert run.steps().tolist() == [0, 1, 2]


def test_output_before_in_place_relu_is_captured_as_it_left_its_module(attach):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(inplace=True), nn.Linear(16, 3))
    handle = attach(model)
    x = torch.randn(8, 4)
    linear = (x @ model[0].weight.T + model[0].bias).detach()
    model(x)
    handle.detach()
    stats = handle.run.tensor("activation/0").stats(0)
    assert stats.min[0] == pytest.approx(float(linear.min()), rel=1e-4)
    assert stats.min[0] < 0
    assert handle.run.tensor("activation/1").stats(0).min[0] == 0.0
    assert len(stats.channel_zero_frac) == 16


class PassesOn(nn.Module):
    """Gives what came in beside what it computes, as layers of sentence encoders do."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(10, 4))

    def forward(self, words):
        vectors = self.weight[words["ids"]]
        return {**words, "vectors": vectors, "best": vectors.argmax(dim=-1)}


def test_whole_numbers_that_a_layer_passes_on_are_no_activations(attach):
    model = nn.Sequential(PassesOn())
    handle = attach(model)
    ids = torch.tensor([[1, 2, 3], [4, 5, 0]])
    model({"ids": ids, "segments": torch.zeros_like(ids), "mask": ids > 0})
    handle.detach()
    activations = handle.run.tensor_names(kind="activation")
    assert activations == ["activation/0"]
    assert handle.run.tensor("activation/0").key.shape == (2, 3, 4)


def test_unit_that_never_fires_shows_in_its_channel(attach):
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    with torch.no_grad():
        model[0].bias[1] = -1e6
    handle = attach(model)
    model(torch.rand(16, 4))
    handle.detach()
    assert handle.run.tensor("activation/1").stats(0).channel_zero_frac[1] == 1.0


class Flattening(nn.Module):
    """Hands on what its convolution returns, changed in between or not."""

    def __init__(self, factor):
        super().__init__()
        self.conv, self.keep, self.flat = nn.Conv2d(1, 6, 1), nn.Identity(), nn.Flatten()
        self.factor = factor

    def forward(self, x):
        h = self.conv(x)
        with torch.no_grad():
            if self.factor != 1:
                h.mul_(self.factor)
        return self.flat(self.keep(h)).sum()


@pytest.mark.parametrize("factor", [1, 2])
def test_output_that_was_handed_on_is_measured_again_only_when_it_changed(attach, factor, monkeypatch):
    from tdbg_lab.capture.pytorch import last_measured

    measured = []
    honest = last_measured.record_one
    monkeypatch.setattr(last_measured, "record_one", lambda *args: measured.append(1) or honest(*args))
    handle = attach(model := Flattening(factor))
    x = torch.rand(2, 1, 40, 40)
    model(x)
    handle.detach()
    stats = {name: handle.run.tensor(f"activation/{name}").stats(0) for name in ("conv", "keep", "flat")}
    assert stats["keep"].l2[0] == stats["flat"].l2[0] == pytest.approx(factor * stats["conv"].l2[0])
    assert stats["flat"].hist_counts.sum() == 2 * 6 * 40 * 40
    assert [len(one.channel_mean) for one in stats.values()] == [6, 6, 0]
    assert len(measured) == 2  # the channels of the identity are wanted, those of 9600 units are not


@dataclass
class Output:
    logits: torch.Tensor
    hidden: tuple[torch.Tensor, ...] = ()
    loss: torch.Tensor | None = None


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


class Parts(nn.Module):
    """Leaf that returns what it is told to."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, x, *, scale=1.0):
        return self.make(x * scale)


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda x: x, 1),
        (lambda x: (x, x + 1), 2),
        (lambda x: [x, [x, (x,)]], 3),
        (lambda x: {"a": x, "b": {"c": x}}, 2),
        (lambda x: Pair(x, x), 2),
        (lambda x: Output(x, (x, x)), 3),
        (lambda x: None, 0),
        (lambda x: "text", 0),
        (lambda x: (x, None, 3), 1),
        (lambda x: x.to_sparse(), 1),
        (lambda x: x.long(), 1),
        (lambda x: x.bfloat16(), 1),
        (lambda x: x[:0], 1),
    ],
    ids=str,
)
def test_every_shape_of_output_is_understood(attach, make, count):
    model = nn.Sequential()
    model.add_module("parts", Parts(make))
    handle = attach(model)
    model(torch.ones(2, 3))
    handle.detach()
    expected = [f"activation/parts{f':{i}' if i else ''}" for i in range(count)]
    assert handle.run.tensor_names(kind="activation") == expected
    assert not handle.problems


def test_model_output_with_loss_gives_the_loss_a_name(attach):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(3, 2)

        def forward(self, x, labels=None):
            logits = self.body(x)
            return Output(logits, (), nn.functional.cross_entropy(logits, labels))

    model = Model()
    handle = attach(model)
    out = model(torch.randn(4, 3), labels=torch.tensor([0, 1, 1, 0]))
    handle.detach()
    assert handle.run.scalars("loss/Model").values.tolist() == pytest.approx([out.loss.item()])


def test_loss_of_a_module_within_the_model_is_not_recorded_twice(attach):
    class Model(nn.Module):
        def __init__(self, scale):
            super().__init__()
            self.body, self.criterion, self.scale = nn.Linear(3, 2), nn.CrossEntropyLoss(), scale

        def forward(self, x, labels=None):
            logits = self.body(x)
            loss = self.criterion(logits, labels)
            return {"logits": logits, "loss": loss if self.scale == 1 else loss * self.scale}

    for scale, names in ((1, ["loss/CrossEntropyLoss"]), (2, ["loss/CrossEntropyLoss", "loss/Model"])):
        model = Model(scale)
        handle = attach(model)
        model(torch.randn(4, 3), labels=torch.tensor([0, 1, 1, 0]))
        handle.detach()
        assert handle.run.tensor_names(kind="loss") == names


def test_keyword_inputs_are_captured(attach):
    class Wrap(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Bilinear(2, 3, 4)

        def forward(self, x):
            return self.inner(input1=x[:, :2], input2=x[:, :3])

    model = Wrap()
    handle = attach(model, collections={"inputs": True})
    model(torch.randn(5, 3))
    handle.detach()
    shapes = {key.name: key.shape for key in handle.run.tensors(kind="input")}
    assert shapes == {"input/inner": (5, 2), "input/inner:1": (5, 3)}


def test_module_used_twice_has_a_series_per_call(attach):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(self.linear(x))

    model = Twice()
    handle = attach(model)
    for _ in range(2):
        model(torch.randn(2, 4))
    handle.detach()
    assert handle.run.tensor_names(kind="activation") == ["activation/linear", "activation/linear:1"]


def test_shared_parameter_has_one_row_and_its_other_name_is_noted(attach):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(10, 4)
            self.head = nn.Linear(4, 10, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(self.embed(x))

    model = Tied()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    model(torch.tensor([[1, 2]])).sum().backward()
    optimizer.step()
    handle.detach()
    assert handle.run.tensor_names(kind="weight") == ["embed.weight"]
    assert handle.run.tensor_names(kind="gradient") == ["gradient/embed.weight"]
    assert handle.run.info.capture["aliases"] == {"head.weight": "embed.weight"}


def test_frozen_parameter_is_written_once_and_again_when_it_changes(attach):
    model = Net()
    model.conv.requires_grad_(False)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    handle = attach(model, optimizer=optimizer)
    train(model, optimizer, 3)
    with torch.no_grad():
        model.conv.weight.mul_(2)
    train(model, optimizer, 2)
    handle.detach()
    assert handle.run.steps(tensor="conv.weight").tolist() == [0, 3]
    assert "gradient/conv.weight" not in handle.run.tensor_names()
    assert handle.run.steps(tensor="head.weight").tolist() == [0, 1, 2, 3, 4]


def test_whole_attention_and_leaf_model_are_captured(attach):
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    handle = attach(attention)
    x = torch.randn(2, 3, 8)
    attention(x, x, x)
    handle.detach()
    names = handle.run.tensor_names(kind="activation")
    assert names == ["activation/MultiheadAttention", "activation/MultiheadAttention:1"]


def test_wrapped_model_has_the_names_of_the_model(attach):
    model = nn.DataParallel(Net())  # without a GPU it calls what it wraps
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    train(model, optimizer, 1)
    handle.detach()
    assert "conv.weight" in handle.run.tensor_names()
    assert "activation/conv" in handle.run.tensor_names()


def test_several_models_and_optimizers_are_told_apart(attach):
    models = {"generator": nn.Linear(2, 4), "critic": nn.Linear(4, 1)}
    optimizers = {name: torch.optim.SGD(m.parameters(), lr=0.1) for name, m in models.items()}
    handle = attach(models, optimizer=optimizers)
    for _ in range(3):
        fake = models["generator"](torch.randn(3, 2))
        optimizers["critic"].zero_grad()
        models["critic"](fake.detach()).mean().backward()
        optimizers["critic"].step()
        optimizers["generator"].zero_grad()
        models["critic"](fake).mean().neg().backward()
        optimizers["generator"].step()
    assert handle.step == 3
    handle.detach()
    names = handle.run.tensor_names()
    assert {"generator.weight", "critic.weight", "activation/generator", "optimizer/lr/critic.0"} <= set(
        names
    )
    assert handle.run.steps(tensor="gradient/generator.weight").tolist() == [0, 1, 2]
    assert handle.run.tensor("gradient/critic.weight").stats(0).count[0] == 4


def test_two_handles_on_two_models_do_not_mix(tmp_path, attach):
    first, second = Net(), nn.Linear(3, 2)
    one = attach(first, store=tmp_path / "one")
    two = attach(second, store=tmp_path / "two")
    first(batch()[0])
    second(torch.randn(1, 3))
    one.detach()
    second(torch.randn(1, 3))
    two.detach()
    assert "activation/conv" in one.run.tensor_names()
    assert two.run.tensor_names(kind="activation") == ["activation/Linear"]
    assert two.run.steps(tensor="activation/Linear").tolist() == [0, 1]


def test_update_ratio_is_the_relative_change_of_the_weights(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    before = model.head.weight.detach().clone()
    train(model, optimizer, 1)
    handle.detach()
    expected = norm(model.head.weight - before) / norm(before)
    assert handle.run.scalars("optimizer/update_ratio/head.weight").values[0] == pytest.approx(
        expected, rel=1e-4
    )
    total = sum(norm(p.grad) ** 2 for p in model.parameters()) ** 0.5
    assert handle.run.scalars("optimizer/grad_norm").values[0] == pytest.approx(total, rel=1e-4)
    assert handle.run.scalars("optimizer/lr/0").values.tolist() == [0.1]


def test_update_ratios_of_a_step_whose_closure_computes_the_gradients(attach):
    """Before it nobody has a gradient where the program clears them, as Lightning does after a validation."""
    model = nn.ModuleDict({"used": nn.Linear(3, 1), "unused": nn.Linear(3, 1)})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    moved = []

    def closure():
        optimizer.zero_grad()
        loss = model["used"](torch.ones(4, 3)).square().mean()
        loss.backward()
        return loss

    with attach(model, optimizer=optimizer) as handle:
        for _ in range(3):
            before = model["used"].weight.detach().clone()
            optimizer.step(closure)
            moved.append(norm(model["used"].weight - before) / norm(before))
            optimizer.zero_grad()
    run = handle.run
    ratios = run.scalars("optimizer/update_ratio/used.weight")
    assert ratios.steps.tolist() == [0, 1, 2]
    assert ratios.values == pytest.approx(moved)
    assert "optimizer/update_ratio/unused.weight" not in run.tensor_names()


def test_update_ratio_of_a_large_parameter_is_estimated_closely(attach):
    torch.manual_seed(0)
    model = nn.Linear(700, 700)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    handle = attach(model, optimizer=optimizer)
    before = model.weight.detach().clone()
    model(torch.randn(4, 700)).square().mean().backward()
    optimizer.step()
    handle.detach()
    expected = norm(model.weight - before) / norm(before)
    assert handle.run.scalars("optimizer/update_ratio/weight").values[0] == pytest.approx(expected, rel=0.02)


def test_raw_values_and_labels_are_the_same_evenly_spread_rows(attach):
    model = nn.Linear(3, 2)
    latent = {
        "name": "latent",
        "tensors": ["latent", "activation/Linear"],
        "values": "both",
        "sample_rows": 4,
    }
    handle = attach(model, collections=[latent])
    x = torch.arange(30.0).reshape(10, 3)
    out = model(x)
    handle.record("latent", x, labels=torch.arange(10))
    handle.detach()
    run = handle.run
    np.testing.assert_array_equal(run.tensor("latent").labels(0), [0, 2, 5, 7])
    np.testing.assert_array_equal(run.tensor("latent").value(0), x[[0, 2, 5, 7]])
    np.testing.assert_array_equal(run.tensor("activation/Linear").value(0), out.detach()[[0, 2, 5, 7]])
    assert run.tensor("latent").stats(0).count[0] == 30


def test_recorded_arrays_numbers_and_bfloat16_are_taken(attach):
    handle = attach(nn.Linear(2, 2), collections=["custom", "scalars"])
    handle.record("array", np.arange(6.0).reshape(3, 2), labels=["a", "b", "c"])
    handle.record("half", torch.ones(4, dtype=torch.bfloat16))
    handle.record("number", 3.5)
    handle.log({"val/accuracy": torch.tensor(0.5, requires_grad=True)}, lr=0.1, bad=float("nan"))
    handle.detach()
    run = handle.run
    assert run.tensor("array").labels(0).tolist() == [0, 1, 2]
    assert run.tensor("array").value(0).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert run.tensor("half").value(0).tolist() == [1, 1, 1, 1]
    assert run.scalars("val/accuracy").values.tolist() == [0.5]
    assert np.isnan(run.scalars("bad").values[0])
    assert not handle.problems


def test_what_a_loop_of_ones_own_records_is_of_the_kind_it_says(attach):
    handle = attach(collections=["weights", {"name": "gradients", "save": 2}, "custom"])
    for step in range(3):
        handle.record("w", np.ones((2, 2)), kind="weight")
        handle.record("gradient/w", np.full((2, 2), 1.0 + step), kind="gradient")
        handle.record("codes", np.ones((2, 2)))
        handle.advance()
    with pytest.raises(CaptureError, match="kind is 'gradients'; expected one of custom, weight, bias"):
        handle.record("gradient/w", np.ones(2), kind="gradients")
    handle.detach()
    run = handle.run
    assert [key.name for key in run.tensors(kind="weight")] == ["w"]
    assert [key.name for key in run.tensors(collection="gradients")] == ["gradient/w"]
    assert run.tensor("gradient/w").steps().tolist() == [0, 2]
    assert run.tensor("gradient/w").stats(2).mean[0] == 3
    assert [key.name for key in run.tensors(kind="custom")] == ["codes"]


def test_what_cannot_be_recorded_is_said(attach):
    handle = attach(nn.Linear(2, 2), collections=["custom"], strict=False)
    handle.record("text", "abc")
    handle.record("rows", torch.ones(3, 2), labels=[1])
    handle.record("number", 2.0, labels=[1])
    handle.detach()
    told = {one.probe: one.message for one in handle.problems}
    assert told.keys() == {"record/text", "record/rows/labels"}
    assert told["record/rows/labels"] == "the labels of rows are left out: there are 1 for 3 rows"
    assert told["record/text"].startswith("text is recorded without numbers: ")
    assert handle.run.tensor("rows").labels(0) is None
    assert handle.run.tensor("rows").value(0).shape == (3, 2)


def test_outputs_of_rectifiers_are_marked_whatever_their_modules_are_called(attach):
    model = nn.Sequential(
        nn.Linear(4, 3), nn.ReLU(), nn.ReLU6(), nn.Threshold(0, 0), nn.Threshold(0.5, 0), nn.LeakyReLU()
    )
    handle = attach(model, collections=["default", "inputs"])
    model(torch.rand(16, 4))
    handle.detach()
    marked = {key.name for key in handle.run.tensors(collection="relu")}
    assert marked == {"activation/1", "activation/2", "activation/3"}
    assert handle.run.tensor("activation/1").key.collections == ("activations", "relu")


def test_parameter_whose_memory_was_given_back_crashes_nothing(attach):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, strict=False)
    model(torch.ones(4, 3)).sum().backward()
    frozen = model[0].weight
    frozen.grad = None  # the optimizer leaves it alone
    frozen.untyped_storage().resize_(0)
    optimizer.step()
    handle.detach()
    assert "given back" in handle.run.tensor("0.weight").stats(0).reason(0)
    assert handle.run.tensor("1.weight").stats(0).count.tolist() == [6]


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_arrays_of_types_that_numpy_does_not_know_are_kept_as_float32(attach, name):
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    handle = attach(nn.Linear(2, 2), collections=["custom"])
    handle.record("half", np.array([[1.0, -2.0]], dtype))
    handle.detach()
    assert handle.run.tensor("half").value(0).tolist() == [[1.0, -2.0]]
    assert not handle.problems
