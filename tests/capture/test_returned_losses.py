"""Losses of evaluations that functions of the program's own compute."""

from __future__ import annotations

import contextlib
import sys
import threading
from types import SimpleNamespace

import pytest
import torch
from loss_training import LOSS, step, told
from torch import nn
from torch.nn import functional as F

from tdbg_lab.capture.returns import RETURNS, Returns


class Profiled:
    """Tells what functions return as ``sys.monitoring`` does, by a profile function: slowly."""

    events = SimpleNamespace(PY_RETURN=1)
    DISABLE = object()

    def __init__(self):
        self.tools, self.callback, self.codes, self.off, self.all = {}, None, [], [], False

    def get_tool(self, tool):
        return self.tools.get(tool)

    def use_tool_id(self, tool, name):
        self.tools[tool] = name

    def free_tool_id(self, tool):
        del self.tools[tool]

    def register_callback(self, _tool, _event, callback):
        self.callback = callback

    def set_events(self, _tool, events):
        self.all = bool(events)
        self.look()

    def set_local_events(self, _tool, code, events):
        self.codes = [one for one in self.codes if one is not code] + [code] * bool(events)
        self.look()

    def look(self):
        wanted = self.all or self.codes
        threading.setprofile(self.seen if wanted else None)
        sys.setprofile(self.seen if wanted else None)

    def seen(self, frame, event, arg):
        code = frame.f_code
        place = code, frame.f_lasti
        if event != "return" or place in self.off or not (self.all or any(one is code for one in self.codes)):
            return
        if self.callback(code, 0, arg) is self.DISABLE:
            self.off.append(place)


@pytest.fixture(autouse=True)
def monitoring(monkeypatch):
    """Python's, or what stands for it on Python 3.11."""
    real = getattr(sys, "monitoring", None)
    if real is None:
        monkeypatch.setattr(RETURNS, "_monitoring", Profiled())
        monkeypatch.setattr(RETURNS, "_tool", None)
    yield RETURNS._monitoring
    assert not RETURNS._asked


class Autoencoder(nn.Module):
    """A variational one, as in the examples of PyTorch."""

    def __init__(self):
        super().__init__()
        self.body, self.mean, self.spread, self.back = (
            nn.Linear(*size) for size in ((4, 8), (8, 2), (8, 2), (2, 4))
        )

    def forward(self, x):
        hidden = torch.relu(self.body(x))
        mean, spread = self.mean(hidden), self.spread(hidden)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * spread) if self.training else mean
        return torch.sigmoid(self.back(z)), mean, spread


def parts(x, result):
    again, mean, spread = result
    return (
        F.binary_cross_entropy(again, x, reduction="sum"),
        -0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum(),
    )


def both(x, result):
    of_pixels, divergence = parts(x, result)
    return of_pixels + divergence


def with_parts(x, result):
    of_pixels, divergence = parts(x, result)
    return of_pixels + divergence, of_pixels, divergence


def by_name(x, result):
    of_pixels, divergence = parts(x, result)
    return {"divergence": divergence, "total": of_pixels + divergence}


def batch(seed, n=6):
    return torch.rand(n, 4, generator=torch.Generator().manual_seed(seed))


def made():
    torch.manual_seed(0)
    model = Autoencoder()
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def number(loss):
    if isinstance(loss, tuple):
        return loss[0]
    return loss["total"] if isinstance(loss, dict) else loss


def train(model, optimizer, loss_of, steps=4):
    model.train()
    return [step(optimizer, number(loss_of(x, model(x)))) for x in map(batch, range(steps))]


def evaluate(model, loss_of, seeds=(50, 51)):
    model.eval()
    with torch.no_grad():
        return [number(loss_of(x, model(x))).item() for x in map(batch, seeds)]


@pytest.mark.parametrize("loss_of", [both, with_parts, by_name])
def test_evaluation_tells_what_the_function_returns(attach, loss_of):
    model, optimizer = made()
    losses, evaluated = [], []
    with attach(model, optimizer=optimizer) as handle:
        for _ in range(2):
            losses += train(model, optimizer, loss_of)
            evaluated.append(sum(evaluate(model, loss_of)) / 2)
    assert told(handle.run, mode="train") == pytest.approx(losses)
    assert told(handle.run) == pytest.approx(evaluated)
    assert handle.run.tensor_names(kind="loss") == [LOSS]
    assert not handle.problems


def test_a_loss_that_is_scaled_or_defined_anew_in_each_step(attach):
    model, optimizer = made()

    def new(scale):
        def loss_of(x, result):
            return both(x, result) / len(x) * scale

        return loss_of

    with attach(model, optimizer=optimizer) as handle:
        for _ in range(4):
            losses = train(model, optimizer, lambda x, result: 3 * new(2)(x, result), 1)
        evaluated = evaluate(model, new(2))
    assert told(handle.run, mode="train")[-1] == pytest.approx(losses[0])
    assert told(handle.run) == pytest.approx([3 * sum(evaluated) / 2])


def test_a_loss_of_which_a_part_grows_is_what_its_function_returns(attach):
    """As a divergence that is made to count more and more."""
    model, optimizer = made()
    weight = 0.0

    def growing(x, result):
        of_pixels, divergence = parts(x, result)
        return of_pixels + weight * divergence

    with attach(model, optimizer=optimizer) as handle:
        for _ in range(6):
            weight += 0.2
            train(model, optimizer, growing, 1)
        evaluated = evaluate(model, growing)
    assert told(handle.run) == pytest.approx([sum(evaluated) / 2])


def test_a_sum_of_what_functions_return(attach):
    model, optimizer = made()

    def of_pixels(x, result):
        return F.binary_cross_entropy(result[0], x)

    def divergence(_, result):
        return result[1].square().mean() / 100

    evaluated = []
    with attach(model, optimizer=optimizer) as handle:
        for seed in range(4):
            x = batch(seed)
            result = model(x)
            optimizer.zero_grad()
            (of_pixels(x, result) + 0.5 * divergence(x, result)).backward()
            optimizer.step()
        model.eval()
        for seed in (50, 51):
            with torch.no_grad():
                x = batch(seed)
                result = model(x)
                evaluated.append((of_pixels(x, result) + 0.5 * divergence(x, result)).item())
    assert told(handle.run) == pytest.approx([sum(evaluated) / 2])


def test_a_step_that_is_evaluated_too_tells_its_loss(attach):
    """Where nothing within it does."""
    model, optimizer = made()

    def step(x):
        return (model(x)[0] - x).square().mul(2).mean()

    with attach(model, optimizer=optimizer) as handle:
        for seed in range(4):
            optimizer.zero_grad()
            step(batch(seed)).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            evaluated = [step(batch(seed)).item() for seed in (50, 51)]
    assert told(handle.run) == pytest.approx([sum(evaluated) / 2])


def test_losses_of_rows_of_which_the_program_takes_the_mean(attach):
    """As a flow tells the likelihood of each row, and the smaller it is the worse."""
    model, optimizer = made()

    def likelihood(x, result):
        return -(result[0] - x).square().mul(2).mean(1)

    with attach(model, optimizer=optimizer) as handle:
        for seed in range(4):
            x = batch(seed)
            loss = -torch.mean(likelihood(x, model(x)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            evaluated = [-likelihood(x, model(x)).mean().item() for x in (batch(50), batch(51, 3))]
    assert told(handle.run, mode="train")[-1] == pytest.approx(loss.item())
    assert told(handle.run) == pytest.approx([sum(evaluated) / 2])


def test_functions_that_return_other_numbers_are_no_trouble(attach):
    model, optimizer = made()

    def with_counts(x, result):
        loss = both(x, result)
        return loss, torch.tensor(len(x)), loss > 1, torch.tensor(1j), None, {"loss": loss}

    with attach(model, optimizer=optimizer) as handle:
        train(model, optimizer, with_counts)
        evaluated = evaluate(model, with_counts)
    assert told(handle.run) == pytest.approx([sum(evaluated) / 2])
    assert not handle.problems


class Own(nn.Module):
    """A loss module that nobody has given."""

    def forward(self, x, result):
        return both(x, result)


def test_inner_function_is_asked_as_a_whole_step_is_not_evaluated(attach):
    model, optimizer = made()
    criterion = Own()

    def step(x):
        return criterion(x, model(x))

    with attach(model, optimizer=optimizer) as handle:
        for seed in range(4):
            optimizer.zero_grad()
            step(batch(seed)).backward()
            optimizer.step()
        evaluated = evaluate(model, criterion)
    assert told(handle.run) == pytest.approx([sum(evaluated) / 2])


def test_function_that_is_called_for_other_things_too_is_not_asked(attach):
    model, optimizer = made()

    def mean(values):
        return values.mean()

    def distance(x, result):
        mean(result[0].detach())
        return mean((result[0] - x).square() * 2)

    with attach(model, optimizer=optimizer) as handle:
        train(model, optimizer, distance)
        model.eval()
        with torch.no_grad():
            x = batch(50)
            result = model(x)
            mean(result[1])
            expected = distance(x, result).item()
    assert told(handle.run) == pytest.approx([expected])


def test_what_takes_part_in_a_loss_is_none(attach):
    model, optimizer = made()
    with attach(model, optimizer=optimizer) as handle:
        train(model, optimizer, lambda x, result: parts(x, result)[0] + parts(x, result)[1], 12)
        assert not RETURNS._asked
        evaluate(model, lambda x, result: parts(x, result)[0])
    assert not told(handle.run)


def test_nothing_is_heard_while_a_model_is_trained_and_afterwards(attach):
    model, optimizer = made()
    with attach(model, optimizer=optimizer):
        train(model, optimizer, both)
        assert not RETURNS._asked
        evaluate(model, both)
        assert list(RETURNS._asked) == [id(both.__code__)]
        train(model, optimizer, both, 1)
        assert not RETURNS._asked
        evaluate(model, both)


def test_weights_are_the_same_bit_for_bit(attach):
    bare, watched = made(), made()
    torch.manual_seed(1)
    for _ in range(2):
        train(*bare, both)
        evaluate(bare[0], both)
    torch.manual_seed(1)
    with attach(watched[0], optimizer=watched[1]):
        for _ in range(2):
            train(*watched, both)
            evaluate(watched[0], both)
    assert all(map(torch.equal, bare[0].parameters(), watched[0].parameters()))


@pytest.mark.filterwarnings("ignore:Guards may run slower")
def test_a_compiled_training_is_not_in_the_way(attach):
    """On Python 3.11 PyTorch compiles nothing while a profile function is set."""
    if isinstance(RETURNS._monitoring, Profiled):
        pytest.skip("asks for the real sys.monitoring")
    model, optimizer = made()
    compiled = torch.compile(model, backend="aot_eager")
    with attach(compiled, optimizer=optimizer, save_every=10) as handle:
        train(compiled, optimizer, both, 12)
        evaluate(compiled, both)
    assert torch.compiler.is_compiling() is False
    assert not handle.problems


class Listener:
    def __init__(self):
        self.heard = []

    def returned(self, code, value):
        if code in OF_NUMBERS:
            self.heard.append(value)
        return code is not three.__code__


def one():
    return 1


def two():
    return 2


def three():
    return 3


OF_NUMBERS = [function.__code__ for function in (one, two, three)]


@pytest.fixture
def returns(monitoring):
    """A number of its own for each test."""
    made = Returns(monitoring)
    yield made
    if made._tool is not None:
        monitoring.register_callback(made._tool, monitoring.events.PY_RETURN, None)
        monitoring.free_tool_id(made._tool)


def test_listeners_hear_what_they_asked_for(returns):
    first, second = Listener(), Listener()
    assert returns.hear(one.__code__, first)
    assert returns.hear(None, second)
    one(), two()
    returns.forget(one.__code__, first)
    one()
    returns.forget(None, second)
    returns.forget(None, second)
    two()
    assert first.heard == [1]
    assert second.heard == [1, 2, 1]


def test_what_nobody_wants_is_not_told_again(returns):
    first, second = Listener(), Listener()
    returns.hear(None, first)
    three(), three(), one(), one()
    returns.forget(None, first)
    returns.hear(None, second)
    three(), one()
    returns.forget(None, second)
    assert first.heard == [3, 1, 1]
    assert second.heard == [1]


def test_listener_that_is_gone_has_left(returns):
    listener = Listener()
    returns.hear(one.__code__, listener)
    del listener
    assert not returns._asked


def test_without_monitoring_or_without_room_nothing_is_heard(monitoring):
    assert not Returns(None).hear(one.__code__, Listener())
    with contextlib.ExitStack() as taken:
        for tool in range(1, 5):
            if monitoring.get_tool(tool) is None:
                monitoring.use_tool_id(tool, "another")
                taken.callback(monitoring.free_tool_id, tool)
        assert not Returns(monitoring).hear(one.__code__, Listener())
