"""The many ways to train: mixed precision, clipping, checkpointing, functions over modules, adapters."""

from __future__ import annotations

import gc
import math
import weakref

import pytest
import torch
from capture_training import Net, batch, train
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.utils.checkpoint import checkpoint

from tdbg_lab.errors import CaptureError


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.act(self.first(x.flatten(1))))


def compare(attach, go):
    """Train without and with capture: the same bits; gives the handle."""
    torch.manual_seed(1)
    bare = go(None)
    torch.manual_seed(1)
    handles = []

    def hang(model, **more):
        handles.append(attach(model, **more))

    seen = go(hang)
    handles[0].detach()
    for name, value in bare.state_dict().items():
        assert torch.equal(value, seen.state_dict()[name]), name
    assert not handles[0].problems
    return handles[0]


# -- tensors that are not yet, or no rectangle ------------------------------------------------------


def test_a_nested_tensor_is_measured_and_its_ragged_dimension_told(attach):
    values = torch.randn(8, 4)

    def go(hang):
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if hang:
            hang(model, optimizer=optimizer)
        for _ in range(3):
            nested = torch.nested.nested_tensor([values[:3], values[3:]], layout=torch.jagged)
            optimizer.zero_grad()
            model(nested).values().square().mean().backward()
            optimizer.step()
        return model

    run = compare(attach, go).run
    (key,) = run.tensors(kind="activation")
    assert key.shape == (2, -1, 3)
    assert run.stats(key.name, "count")["count"].tolist() == [24, 24, 24]


def test_a_lazy_layer_may_be_held_by_an_optimizer_before_it_is_called(attach):
    def go(hang):
        model = nn.Sequential(nn.LazyLinear(5), nn.ReLU(), nn.LazyLinear(3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if hang:
            hang(model, optimizer=optimizer)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).square().mean().backward()
            optimizer.step()
        return model

    run = compare(attach, go).run
    assert run.tensor("gradient/0.weight").steps().tolist() == [0, 1, 2]
    assert run.tensor("0.weight").steps().tolist() == [0, 1, 2]


# -- precision ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_outputs_have_their_type_and_gradients_are_unscaled(attach, dtype):
    def go(hang):
        model = Small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        if hang:
            hang(model, optimizer=optimizer)
        for step in range(4):
            x, y = batch(step)
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=dtype):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return model

    run = compare(attach, go).run
    assert run.tensors(regex="^activation/first$")[0].dtype == str(dtype).rpartition(".")[2]
    torch.manual_seed(1)
    model = Small()
    with torch.autocast("cpu", dtype=dtype):
        loss = F.cross_entropy(model(batch(0)[0]), batch(0)[1])
    loss.backward()
    l2 = run.stats("gradient/first.weight", "l2", steps=(0, 0)).l2[0]
    assert l2 == pytest.approx(model.first.weight.grad.norm().item(), rel=0.02), "not 1024 times as much"


def test_channels_last_is_seen_and_trains_to_the_same_bits(attach):
    def go(hang):
        model = Net().to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        if hang:
            hang(model, optimizer=optimizer)
        for step in range(3):
            x, y = batch(step)
            optimizer.zero_grad()
            F.cross_entropy(model(x.contiguous(memory_format=torch.channels_last)), y).backward()
            optimizer.step()
        return model

    row = compare(attach, go).run.tensor("activation/conv").stats(1)
    assert len(row.channel_mean) == 4


# -- accumulation, clipping -----------------------------------------------------------------------


def clipped(hang, clip, *, micros=1):
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if hang:
        hang(model, optimizer=optimizer, save_every=2)
    norms = []
    for step in range(5):
        optimizer.zero_grad()
        for micro in range(micros):
            x, y = batch(step * micros + micro)
            (F.cross_entropy(model(x), y) / micros).backward()
        norms.append(clip(model))
        optimizer.step()
    return model, norms


@pytest.mark.parametrize("how", ["list", "generator", "value", "infinity norm"])
def test_norms_before_and_after_clipping_are_seen_whoever_imported_the_function_when(attach, how):
    clips = {
        "list": lambda m: clip_grad_norm_(list(m.parameters()), 0.1),
        "generator": lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), max_norm=0.1),
        "value": lambda m: clip_grad_value_(m.parameters(), 0.01),
        "infinity norm": lambda m: clip_grad_norm_(parameters=m.parameters(), max_norm=0.01, norm_type="inf"),
    }
    told = []

    def go(hang):
        model, norms = clipped(hang, clips[how], micros=2)
        told.append(norms)
        return model

    before = [cell.cell_contents for cell in clip_grad_norm_.__closure__]
    run = compare(attach, go).run
    assert [cell.cell_contents for cell in clip_grad_norm_.__closure__] == before, "given back"
    assert told[0] == told[1], "what clipping returns is the same"
    full, small = (run.scalars(f"optimizer/grad_norm{suffix}") for suffix in ("", "_clipped"))
    assert full.steps.tolist() == small.steps.tolist() == [0, 2, 4]
    assert (full.values > 1.5 * small.values).all()
    if how in ("list", "generator"):
        assert full.values.tolist() == pytest.approx([one.item() for one in told[0][::2]], rel=1e-5)
        assert small.values.tolist() == pytest.approx([0.1] * 3, rel=1e-3)


def test_without_clipping_there_is_one_norm(attach):
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer) as handle:
        train(model, optimizer, 2)
    assert handle.run.tensor_names(regex="grad_norm") == ["optimizer/grad_norm"]


def test_norms_of_two_clipped_optimizers_are_told_apart(attach):
    one, two = Small(), Small()
    optimizers = {n: torch.optim.SGD(m.parameters(), lr=0.1) for n, m in (("one", one), ("two", two))}
    handle = attach({"one": one, "two": two}, optimizer=optimizers)
    for step in range(2):
        x, y = batch(step)
        for name, model in (("one", one), ("two", two)):
            optimizers[name].zero_grad()
            (F.cross_entropy(model(x), y) * (10 if name == "two" else 1)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizers[name].step()
    handle.detach()
    full = {n: handle.run.scalars(f"optimizer/grad_norm/{n}").values for n in optimizers}
    assert (full["two"] > 3 * full["one"]).all()
    assert handle.run.scalars("optimizer/grad_norm_clipped/two").values.tolist() == pytest.approx(
        [0.1, 0.1], rel=1e-3
    )


def test_clipping_of_a_dead_handle_is_not_watched(attach):
    original = [cell.cell_contents for cell in clip_grad_norm_.__closure__]
    model = Small()
    handle = weakref.ref(attach(model))
    del model
    gc.collect()
    assert handle() is None
    assert [cell.cell_contents for cell in clip_grad_norm_.__closure__] == original


# -- checkpointing --------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [False, True], ids=["part", "root"])
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_recomputed_forward_is_recorded_once(attach, reentrant, whole):
    class Parts(Small):
        def forward(self, x):
            x = x.flatten(1)
            if not whole:
                x = checkpoint(lambda v: F.relu(self.act(self.first(v))), x, use_reentrant=reentrant)
            else:
                x = F.relu(self.act(self.first(x)))
            return self.last(x)

    def go(hang):
        model = Parts()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if hang:
            hang(model, optimizer=optimizer)
        for step in range(3):
            x, y = batch(step)
            x.requires_grad_()
            optimizer.zero_grad()
            out = checkpoint(model, x, use_reentrant=reentrant) if whole else model(x)
            F.cross_entropy(out, y).backward()
            optimizer.step()
        return model

    handle = compare(attach, go)
    names = handle.run.tensor_names(kind="activation")
    assert sorted(names) == [f"activation/{one}" for one in ("act", "first", "last", "relu_0")]
    counts = handle.run.stats("activation/first", "count")
    assert counts["count"].tolist() == [64, 64, 64]
    assert handle.step == 3


# -- functions over modules -----------------------------------------------------------------------


def test_a_model_under_functional_call_grad_and_vmap_is_seen(attach):
    model = Small()
    weights = {name: value.detach() for name, value in model.named_parameters()}
    x, y = batch(0)

    def loss(weights, x, y):
        return F.cross_entropy(torch.func.functional_call(model, weights, (x[None],)), y[None])

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    bare = each(weights, x, y)
    handle = attach(model)
    seen = each(weights, x, y)
    assert all(torch.equal(bare[name], seen[name]) for name in bare)
    handle.detach()
    assert not handle.problems
    row = handle.run.tensor("activation/first").stats(0)
    assert row.count[0] == 8 * 8, "all samples that vmap went over"
    assert not any(row.reasons)
    assert row.l2[0] == pytest.approx(model.first(x.flatten(1)).norm().item(), rel=1e-5)


def test_an_optimizer_of_other_tensors_is_said(attach):
    model = nn.Linear(3, 2)
    weights = {name: value.detach().clone().requires_grad_() for name, value in model.named_parameters()}
    optimizer = torch.optim.Adam(list(weights.values()))
    handle = attach(model, optimizer=optimizer)
    torch.func.functional_call(model, weights, (torch.randn(5, 3),)).sum().backward()
    optimizer.step()
    handle.detach()
    (problem,) = handle.problems
    assert "Adam updates 2 tensors of which none is a parameter of the model" in problem.message


def test_functions_over_modules_are_measured_without_a_word(attach, caplog):
    model = nn.Linear(3, 2)
    weights, x = dict(model.named_parameters()), torch.randn(5, 3)

    def loss(weights, row):
        return torch.func.functional_call(model, weights, (row,)).sum()

    handle = attach(model)
    torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, x)
    handle.detach()
    assert not handle.problems
    assert not caplog.records
    row = handle.run.tensor("activation/Linear").stats(0)
    assert row.count[0] == 5 * 2
    assert row.l2[0] == pytest.approx(model(x).norm().item(), rel=1e-5)


def test_vmap_over_another_axis_gives_rows_of_samples(attach):
    model = nn.Sequential(nn.Linear(4, 5))
    x = torch.randn(4, 7)
    with attach(model) as handle:
        torch.func.vmap(model, in_dims=1)(x)
    (key,) = handle.run.tensors(regex="^activation/0$")
    assert key.shape == (7, 5)


# -- parts that are frozen, adapters, several networks -----------------------------------------------


def test_lora_shows_what_learns_and_writes_the_frozen_base_once(attach):
    peft = pytest.importorskip("peft")

    def go(hang):
        config = peft.LoraConfig(r=2, target_modules=["first", "last"], init_lora_weights=True)
        model = peft.get_peft_model(Small(), config)
        optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=0.01)
        if hang:
            hang(model, optimizer=optimizer)
        train(model, optimizer, 3)
        return model

    run = compare(attach, go).run
    base = [one for one in run.tensor_names(kind="weight") if one.endswith("first.base_layer.weight")]
    assert run.steps(tensor=base[0]).tolist() == [0]
    gradients = run.tensor_names(kind="gradient")
    assert gradients
    assert all("lora_" in one for one in gradients)
    assert run.steps(tensor=gradients[0]).tolist() == [0, 1, 2]


def test_both_networks_of_a_gan_have_gradients(attach):
    generator, critic = nn.Linear(4, 6), nn.Linear(6, 1)
    optimizers = {
        "generator": torch.optim.Adam(generator.parameters(), lr=0.01),
        "critic": torch.optim.Adam(critic.parameters(), lr=0.01),
    }
    handle = attach({"generator": generator, "critic": critic}, optimizer=optimizers)
    for step in range(4):
        z = torch.randn(5, 4, generator=torch.Generator().manual_seed(step))
        optimizers["critic"].zero_grad()
        (critic(generator(z).detach()).mean() - critic(torch.ones(5, 6)).mean()).backward()
        optimizers["critic"].step()
        optimizers["generator"].zero_grad()
        (-critic(generator(z)).mean()).backward()
        optimizers["generator"].step()
    handle.detach()
    assert handle.step == 4
    for name in ("gradient/generator.weight", "gradient/critic.weight", "activation/critic"):
        assert handle.run.steps(tensor=name).tolist() == [0, 1, 2, 3], name
    assert not handle.problems


def test_a_gradient_penalty_leaks_nothing(attach):
    """Second derivatives with hooks that hold gradients leak; these are forward hooks."""
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    handle = attach(model, optimizer=optimizer)
    alive = []
    for step in range(3):
        x, _ = batch(step)
        x.requires_grad_()
        optimizer.zero_grad()
        out = model(x)
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        ((slope.norm() - 1) ** 2 + out.mean()).backward()
        alive.append(weakref.ref(out))
        optimizer.step()
        del out, slope, x
    gc.collect()
    assert all(one() is None for one in alive)
    handle.detach()
    assert handle.run.steps(tensor="gradient/first.weight").tolist() == [0, 1, 2]


def test_a_closure_of_lbfgs_counts_one_step(attach):
    def go(hang):
        model = Small()
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
        if hang:
            hang(model, optimizer=optimizer)
        x, y = batch(0)

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return model

    handle = compare(attach, go)
    assert handle.step == 3
    assert handle.run.steps(tensor="gradient/first.weight").tolist() == [0, 1, 2]
    batches = handle.run.scalars("check/batch")  # always the same, whatever number of passes it took
    assert batches.steps.tolist() == [0, 1, 2]
    assert len(set(batches.values)) == 1


# -- what cannot be seen ----------------------------------------------------------------------------


def test_a_traced_part_is_seen_from_outside_and_its_parameters_too(attach):
    model = nn.Sequential(nn.Flatten(), torch.jit.trace(Small(), torch.zeros(2, 64)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer) as handle:
        train(model, optimizer, 2)
    for name in ("activation/0", "1.first.weight", "gradient/1.first.weight"):
        assert handle.run.steps(tensor=name).tolist() == [0, 1], name


def test_a_scripted_part_is_said_and_its_parameters_seen(attach):
    model = nn.Sequential(nn.Flatten(), torch.jit.script(Small()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer) as handle:
        train(model, optimizer, 2)
    for name in ("activation/0", "1.first.weight", "gradient/1.first.weight"):
        assert handle.run.steps(tensor=name).tolist() == [0, 1], name
    (problem,) = handle.problems
    assert "compiled by TorchScript" in problem.message
    assert "1.first" in problem.message


def test_a_model_or_loss_of_torchscript_is_refused_with_what_to_do(attach):
    compiled = torch.jit.trace(nn.Linear(3, 2), torch.zeros(1, 3))
    with pytest.raises(
        CaptureError, match=r"model is compiled by TorchScript .*torch.nn.Sequential\(model\)"
    ):
        attach(compiled)
    with pytest.raises(CaptureError, match=r"loss is compiled by TorchScript"):
        attach(nn.Linear(3, 2), loss=compiled)


def test_a_model_that_calls_no_layer_says_that_their_outputs_are_not_seen(attach):
    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(64, 3)

        def forward(self, x):
            return x.flatten(1) @ self.layer.weight.T

    model = Around()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer) as handle:
        train(model, optimizer, 2)
    (problem,) = handle.problems
    assert problem.message.startswith("no layer of Around is called in its forward")
    assert handle.run.steps(tensor="gradient/layer.weight").tolist() == [0, 1]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_cuda_graph_is_captured_undisturbed_and_said_to_be_unseen(attach):
    model = Small().cuda()
    x = torch.randn(8, 1, 8, 8, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        model(x)
    torch.cuda.current_stream().wait_stream(side)
    handle = attach(model)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(x)
    graph.replay()
    assert math.isfinite(out.sum().item())
    assert any("CUDA graph" in one.message for one in handle.problems)
