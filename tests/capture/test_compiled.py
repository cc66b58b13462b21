"""Compiled models: saved steps run eagerly and are seen, the others stay compiled."""

from __future__ import annotations

import gc
import shutil

import psutil
import pytest
import torch
from capture_training import batch
from torch import nn
from torch._dynamo.utils import counters

pytestmark = [
    pytest.mark.skipif(not hasattr(torch.compiler, "set_stance"), reason="needs set_stance"),
    pytest.mark.filterwarnings(
        "ignore:The .grad attribute of a Tensor"
    ),  # the compiler's own, without us too
    pytest.mark.filterwarnings("ignore:.*[Pp]rofiler record function"),
]


class Counting:
    """A backend that counts compilations and runs of compiled graphs."""

    def __init__(self):
        self.compiled = self.runs = 0

    def __call__(self, graph, _inputs):
        self.compiled += 1

        def run(*args):
            self.runs += 1
            return graph.forward(*args)

        return run


class First(nn.Linear):  # of our own: PyTorch skips the forward of its own classes
    def forward(self, x):
        return nn.functional.linear(x, self.weight, self.bias)


class Small(nn.Module):  # not a Sequential: PyTorch does not compile those in place
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = First(64, 8), nn.ReLU(), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.act(self.first(x.flatten(1))))


def train(call, optimizer, steps):
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(call(x), y).backward()
        optimizer.step()


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("given", ["wrapper", "inner", "in place"])
def test_saved_steps_of_a_compiled_model_are_captured_and_the_others_stay_compiled(attach, given, fullgraph):
    backend = Counting()
    model = Small()
    if given == "in place":
        model.compile(backend=backend, fullgraph=fullgraph)
        call = model
    else:
        call = torch.compile(model, backend=backend, fullgraph=fullgraph)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(call if given == "wrapper" else model, optimizer=optimizer, save_every=3)
    train(call, optimizer, 9)
    handle.detach()
    run = handle.run
    assert run.steps(tensor="gradient/first.weight").tolist() == [0, 3, 6]
    assert run.steps(tensor="activation/first").tolist() == [0, 3, 6]
    assert backend.compiled == 1, "toggling compiles nothing again"
    assert backend.runs == 6
    train(call, optimizer, 2)
    assert backend.compiled <= 2, "once more at most, because hooks have gone"
    assert backend.runs == 8
    assert not handle.problems


def compiled_frames():
    return counters["frames"]["total"], counters["stats"]["unique_graphs"]


@pytest.mark.parametrize("order", ["before", "after", "warm"])
@pytest.mark.parametrize("place", ["module", "in place", "region", "region in place"])
def test_nothing_is_compiled_again_over_many_steps(attach, place, order):
    backend, model = Counting(), Small()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    handle = attach(model, optimizer=optimizer, save_every=4) if order == "after" else None
    call = model
    if place == "module":
        call = torch.compile(model, backend=backend)
    elif place == "in place":
        model.compile(backend=backend)
    elif place == "region":
        model.first = torch.compile(model.first, backend=backend)
    else:
        model.first.compile(backend=backend)
    if order == "warm":
        train(call, optimizer, 3)
    if handle is None:
        handle = attach(model, optimizer=optimizer, save_every=4)
    train(call, optimizer, 10)
    before = compiled_frames(), backend.compiled
    train(call, optimizer, 50)
    assert (compiled_frames(), backend.compiled) == before
    handle.detach()
    names = handle.run.tensor_names(kind="activation")
    assert "activation/act" in names
    assert "activation/first" in names
    assert handle.run.steps(tensor="activation/first").tolist() == list(range(0, 60, 4))
    assert backend.runs >= 45
    assert not handle.problems


def stepper(model, optimizer, criterion, kind, backend):
    """A training step whose forward pass, or all of it, is inside one compiled function."""

    def value_of(x, y):
        return criterion(model(x), y)

    if kind == "forward and loss":
        value_of = torch.compile(value_of, backend=backend, fullgraph=True)

    def step(x, y):
        optimizer.zero_grad()
        value = value_of(x, y)
        value.backward()
        optimizer.step()
        return value

    return torch.compile(step, backend=backend) if kind == "whole step" else step


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("kind", ["forward and loss", "whole step"])
def test_a_compiled_step_function_is_seen_on_saved_steps_and_says_what_is_not(attach, kind, optimizer):
    backend = Counting()
    model, criterion = Small(), nn.CrossEntropyLoss()
    optimizer = getattr(torch.optim, optimizer)(model.parameters(), lr=0.01)
    handle = attach(model, optimizer=optimizer, loss=criterion, save_every=5)
    step = stepper(model, optimizer, criterion, kind, backend)
    for index in range(11):
        step(*batch(index))
    before = compiled_frames(), backend.compiled
    for index in range(11, 61):
        step(*batch(index))
    assert handle.step == 61
    assert (compiled_frames()[1], backend.compiled) == (before[0][1], before[1])
    handle.detach()
    run, saved = handle.run, list(range(0, 61, 5))
    for name in ("activation/first", "gradient/first.weight", "first.weight", "loss/CrossEntropyLoss"):
        assert run.steps(tensor=name).tolist() == saved, name
    (problem,) = handle.problems
    assert not problem.off
    assert problem.message == (
        "a loss is computed inside compiled code, where hooks do not fire: it is seen on saved steps only"
    )
    reason = run.tensor("tdbg/problem/compiled losses").stats(problem.step).reasons[0]
    assert problem.message in reason
    assert problem.message in handle.status()


def test_a_compiled_optimizer_step_is_counted_and_its_gradients_are_seen(attach):
    backend, model = Counting(), Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    move = torch.compile(optimizer.step, backend=backend)
    handle = attach(model, optimizer=optimizer, save_every=2)
    for index in range(9):
        x, y = batch(index)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        move()
    assert handle.step == 9
    assert backend.runs > 0
    handle.detach()
    assert handle.run.steps(tensor="gradient/first.weight").tolist() == [0, 2, 4, 6, 8]
    assert handle.run.steps(tensor="optimizer/update_ratio/first.weight").tolist() == [0, 2, 4, 6, 8]


def test_a_compiled_loss_is_seen_on_saved_steps(attach):
    model, criterion = Small(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, loss=criterion, save_every=3)
    value_of = torch.compile(criterion, backend=Counting())
    for index in range(7):
        x, y = batch(index)
        optimizer.zero_grad()
        value_of(model(x), y).backward()
        optimizer.step()
    handle.detach()
    assert handle.run.steps(tensor="loss/CrossEntropyLoss").tolist() == [0, 3, 6]
    assert handle.run.steps(tensor="activation/first").tolist() == [0, 3, 6]


def test_evaluation_of_a_compiled_model_is_seen_when_its_pass_is_saved(attach):
    backend, model = Counting(), Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    call = torch.compile(model, backend=backend)
    handle = attach(call, optimizer=optimizer, save_every=4)
    for index in range(8):
        call.train()
        train(call, optimizer, 1)
        call.eval()
        with torch.no_grad():
            call(batch(index)[0])
    handle.detach()
    steps = handle.run.steps(mode="eval", tensor="activation/first").tolist()
    assert len(steps) == 2
    assert steps[1] - steps[0] == 4
    assert backend.runs == 12


def test_forwards_of_a_model_compiled_in_place_are_seen_without_compiling_our_hooks(attach):
    """PyTorch calls hooks of such a model one by one, and compiles those that it may look into."""
    backend, model, criterion = Counting(), Small(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.compile(backend=backend)
    frames = compiled_frames()[0]
    handle = attach(model, optimizer=optimizer, loss=criterion, save_every=4)
    for index in range(9):
        x, y = batch(index)
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            criterion(model(x), y)
        model.train()
    assert compiled_frames()[0] - frames == 2, "its forward, trained and evaluated"
    handle.detach()
    run = handle.run
    assert run.steps(tensor="check/batch").tolist() == list(range(9))
    assert run.steps(tensor="activation/first", mode="train").tolist() == [0, 4, 8]
    assert len(run.steps(tensor="loss/CrossEntropyLoss", mode="train")) == 9
    assert len(run.steps(tensor="loss/CrossEntropyLoss", mode="eval")) == 9
    assert {one.probe for one in handle.problems} <= {"compiled evaluation"}


@pytest.mark.parametrize("order", ["compiled first", "attached first"])
def test_a_model_of_pytorchs_own_classes_is_compiled_as_often_as_without_us(attach, order):
    """Up to PyTorch 2.13 it leaves those alone in place, unless hooks hang on them."""

    def go(capture):
        torch.compiler.reset()  # else it knows from before what to leave alone
        torch.manual_seed(3)
        backend = Counting()
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if order == "compiled first":
            model.compile(backend=backend)
        handle = attach(model, optimizer=optimizer, save_every=3) if capture else None
        if order == "attached first":
            model.compile(backend=backend)
        train(model, optimizer, 9)
        if handle is not None:
            handle.detach()
            assert handle.run.steps(tensor="activation/1").tolist() == [0, 3, 6]
            assert handle.run.steps(tensor="gradient/1.weight").tolist() == [0, 3, 6]
            assert not handle.problems
        return backend.compiled

    assert go(capture=True) == go(capture=False)


def test_a_stance_of_the_user_is_left_alone(attach):
    from torch._dynamo import eval_frame

    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, save_every=2)
    torch.compiler.set_stance("eager_on_recompile")
    try:
        train(model, optimizer, 5)
        handle.detach()
        assert eval_frame._stance.stance == "eager_on_recompile"
    finally:
        torch.compiler.set_stance("default")


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_handles_the_last_one_gives_the_stance_back(attach, tmp_path, first):
    from torch._dynamo import eval_frame

    models = [Small(), Small()]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    handles = [
        attach(models[i], optimizer=optimizers[i], store=tmp_path / str(i)) for i in range(len(models))
    ]
    for model in models:
        model(torch.ones(2, 64))  # a step that is saved is under way
    assert eval_frame._stance.stance == "force_eager"
    handles.pop(first).detach()
    assert eval_frame._stance.stance == "force_eager"
    handles.pop().detach()
    assert eval_frame._stance.stance == "default"


def test_with_run_eager_off_everything_stays_compiled(attach):
    backend, model = Counting(), Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    call = torch.compile(model, backend=backend)
    handle = attach(call, optimizer=optimizer, config={"run_eager": False})
    train(call, optimizer, 5)
    handle.detach()
    assert backend.runs == 5
    assert "activation/first" not in handle.run.tensor_names()
    assert handle.run.steps(tensor="gradient/first.weight").tolist() == [0, 1, 2, 3, 4]


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("whole", [False, True])
def test_a_model_compiled_with_aot_autograd_trains_to_the_same_bits(attach, whole):
    def go(capture):
        torch._dynamo.reset()
        torch.manual_seed(3)
        model, criterion = Small(), nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # Adam rounds otherwise when compiled
        call = model if whole else torch.compile(model, backend="aot_eager")
        handle = attach(call, optimizer=optimizer, loss=criterion, save_every=3) if capture else None
        kind = "whole step" if whole else ""
        step = stepper(call, optimizer, criterion, kind, "aot_eager")
        losses = [step(*batch(index)).item() for index in range(9)]
        if handle:
            handle.detach()
        return losses, weights(model)

    bare, seen = go(capture=False), go(capture=True)
    assert bare[0] == seen[0]
    for name, value in bare[1].items():
        assert torch.equal(value, seen[1][name]), name


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_inductor_steps_that_are_not_saved_compute_what_they_compute_without_capture(attach):
    """Saved steps round as eager ones do, so nothing is saved after the first two steps here."""

    def go(capture):
        torch._dynamo.reset()
        torch.manual_seed(3)
        model = Small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        call = torch.compile(model)
        x, y = batch(0)
        for index in range(8):
            if index == 2 and capture:
                start = {"save_every": 100, "collections": {"activations": {"save": {"steps": [50]}}}}
                capture = attach(call, optimizer=optimizer, **start)
            optimizer.zero_grad()
            value = nn.functional.cross_entropy(call(x), y)
            value.backward()
            optimizer.step()
        if capture:
            capture.detach()
            assert capture.run.steps(tensor="gradient/first.weight").tolist() == [0]
        return weights(model)

    bare, seen = go(capture=False), go(capture=True)
    for name, value in bare.items():
        assert torch.equal(value, seen[name]), name


def test_memory_does_not_grow_with_the_steps_of_a_compiled_model(attach):
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    call = torch.compile(model, backend=Counting())
    handle = attach(call, optimizer=optimizer, save_every=3, strict=False)
    train(call, optimizer, 60)
    gc.collect()
    count, used = len(gc.get_objects()), psutil.Process().memory_info().rss
    train(call, optimizer, 150)
    gc.collect()
    assert len(gc.get_objects()) - count < 3000
    assert psutil.Process().memory_info().rss - used < 30 * 2**20
    handle.detach()
