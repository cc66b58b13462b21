"""Several trainings of one process: which of them are one run, and which are runs of their own."""

from __future__ import annotations

import copy
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from small_trainings import batch, everywhere, net, steps, train
from torch import nn
from torch.nn import functional

import tdbg_lab as tdbg
from tdbg_lab.capture.auto import AutoWatch
from tdbg_lab.capture.auto.living import Living


def test_second_training_in_the_same_process_is_a_second_run(watched):
    criterion = nn.CrossEntropyLoss()

    def program():
        kept = []
        for width in (8, 5):
            kept.append(model := net(width))
            steps(model, torch.optim.SGD(model.parameters(), lr=0.1), criterion)

    first, second = watched(program)
    for run in (first, second):
        everywhere(run, "activation/0", "loss/CrossEntropyLoss")
        assert not [name for name in run.tensor_names() if name.endswith(":1")]
    assert (first.path.name, second.path.name) == ("auto", "auto-2")


def test_run_of_a_model_that_is_gone_is_closed_before_the_end(watched):
    def program():
        train()
        gc.collect()
        assert tdbg.open_run("runs/auto").status == "finished"

    watched(program)


class Renewed(nn.Module):
    """Makes a layer anew in each forward, which is no good idea and often done."""

    def __init__(self):
        super().__init__()
        self.layers = net()

    def forward(self, x):
        return nn.LayerNorm(3)(self.layers(x))


def test_layer_that_is_made_anew_in_each_forward_is_not_searched_for_each_time(watched, monkeypatch):
    searches, now = [], Living.now
    monkeypatch.setattr(Living, "now", lambda: searches.append(1) or now())

    def program():
        model = Renewed()
        steps(model, torch.optim.SGD(model.parameters(), lr=0.1), nn.CrossEntropyLoss(), n=100)
        other = net()  # a later training is found all the same
        steps(other, torch.optim.SGD(other.parameters(), lr=0.1), nn.CrossEntropyLoss())

    first, second = watched(program)
    assert (first.last_step, second.last_step) == (99, 3)
    assert len(searches) < 40


def test_program_that_makes_model_after_model_is_not_searched_for_ever(tmp_path, monkeypatch):
    """Each search looks at every object of the process."""
    searches, now = [], Living.now
    monkeypatch.setattr(Living, "now", lambda: searches.append(1) or now())
    watch = AutoWatch({"store": tmp_path / "run", "profiler": False, "strict": True}, most=2)
    watch.start()
    try:
        for _ in range(8):
            train(n=5)
    finally:
        watch.stop()
    assert len(watch.run_paths) == 2
    assert "later trainings were left alone" in watch.summary()
    assert len(searches) == 3  # one for each that is captured, and one for the first beyond


def test_optimizer_made_after_the_first_call_is_found(watched):
    def program():
        model, criterion = net(), nn.CrossEntropyLoss()
        model(batch()[0])
        steps(model, torch.optim.SGD(model.parameters(), lr=0.1), criterion)

    (run,) = watched(program)
    everywhere(run, "activation/0", "gradient/0.weight")


def test_second_optimizer_of_the_same_model_goes_on_in_the_run(watched):
    def program():
        model, criterion = net(), nn.CrossEntropyLoss()
        for rate in (0.1, 0.01):
            steps(model, torch.optim.SGD(model.parameters(), lr=rate), criterion)

    (run,) = watched(program)
    everywhere(run, "activation/0", "loss/CrossEntropyLoss", n=8)


def test_optimizers_that_follow_each_other_on_one_model_are_no_players(watched):
    losses = []

    def program():
        torch.manual_seed(0)
        model, x = net(), torch.randn(6, 4)

        def closure():
            second.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss

        first = torch.optim.Adam(model.parameters())
        for _ in range(3):
            first.zero_grad()
            losses.append(closure_of(model, x))
            first.step()
        second = torch.optim.LBFGS(model.parameters(), max_iter=3)
        for _ in range(3):
            second.step(closure)

    def closure_of(model, x):
        loss = model(x).square().mean()
        loss.backward()
        return loss.item()

    (run,) = watched(program)
    assert run.tensor_names(kind="loss") == ["loss/objective"]
    values = run.scalars("loss/objective").values
    assert values[:3].tolist() == pytest.approx(losses)
    assert len(values) >= 5
    assert (values[3:] <= values[2]).all()


def test_training_of_copies_that_belong_to_no_model_is_told_at_the_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    watch = AutoWatch({"store": "runs/auto"})
    watch.start()
    try:
        model, (x, y) = net(), batch()
        copies = {
            name: torch.stack([one.detach()] * 2).requires_grad_() for name, one in model.named_parameters()
        }
        optimizer = torch.optim.SGD(copies.values(), lr=0.1)
        both = torch.func.vmap(lambda values: torch.func.functional_call(model, values, (x,)))(copies)
        sum(functional.cross_entropy(one, y) for one in both).backward()
        optimizer.step()
    finally:
        watch.stop()
    assert watch.run_paths == []
    assert watch.summary().startswith(
        "nothing to attach to: SGD moves tensors that are parameters of no model of the program: tensors of"
    )
    assert "tdbg_lab.attach(model)" in watch.summary()


def test_trainings_in_threads_are_a_run_each_with_their_own_losses(watched):
    """As a search over hyper-parameters with ``n_jobs=2`` makes them."""
    meet, x = threading.Barrier(2, timeout=60), torch.zeros(6, 4)

    def train_beside(width, loss_of):
        model = net(width)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            meet.wait()  # both threads are at the same place of the step
            output = model(x)
            meet.wait()
            loss = loss_of(output)
            meet.wait()
            loss.backward()
            meet.wait()
            optimizer.step()

    def program():
        criterion = nn.CrossEntropyLoss()
        losses = (
            lambda output: criterion(output, torch.zeros(6).long()),
            lambda output: 0 * output.sum() + 7,
        )
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(train_beside, (3, 5), losses))

    runs = watched(program)
    assert sorted(run.path.name for run in runs) == ["auto", "auto-2"]
    by_width = {run.tensors(kind="weight")[0].shape[0]: run for run in runs}
    assert by_width[3].tensor_names(kind="loss") == ["loss/CrossEntropyLoss"]
    assert by_width[5].tensor_names(kind="loss") == ["loss/objective"]
    assert by_width[5].scalars("loss/objective").values.tolist() == [7, 7, 7, 7]
    for run in runs:
        assert run.status == "finished"
        everywhere(run, "activation/0", "0.weight", "gradient/2.bias", *run.tensor_names(kind="loss"))


def test_training_that_copies_its_model_for_each_task_goes_on_alone(watched):
    """As meta-learning does: each task has a copy of the model, trained by an optimizer of its own."""

    def program():
        model = net()
        meta = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            for _ in range(2):
                learner = copy.deepcopy(model)
                inner = torch.optim.SGD(learner.parameters(), lr=0.1)
                for _ in range(3):
                    x, y = batch()
                    inner.zero_grad()
                    functional.cross_entropy(learner(x), y).backward()
                    inner.step()
                for own, other in zip(model.parameters(), learner.parameters(), strict=True):
                    own.grad = other.grad.clone()
            meta.step()

    whole, *tasks = watched(program)
    assert len(tasks) == 1  # that of the copies before the first step of the model itself
    assert len(whole.steps(tensor="model.0.weight")) >= 6


@pytest.mark.filterwarnings("error")
def test_weights_that_a_training_computes_are_no_model_of_their_own(watched, monkeypatch):
    """As meta-learning by gradients of gradients does: a task's weights are results, not parameters."""
    searches, now = [], Living.now
    monkeypatch.setattr(Living, "now", lambda: searches.append(1) or now())

    def program():
        model = net()
        meta = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(20):
            learner, values = net(), [value.clone() for value in model.parameters()]
            places = [(part, name) for part in learner for name in part._parameters]
            for n in range(3):
                for (part, name), value in zip(places, values, strict=True):
                    part._parameters[name] = value
                x, y = batch()
                loss = functional.cross_entropy(learner(x), y)
                if n < 2:
                    moves = torch.autograd.grad(loss, values, create_graph=True)
                    values = [value - 0.1 * move for value, move in zip(values, moves, strict=True)]
            meta.zero_grad()
            loss.backward()
            meta.step()

    (run,) = watched(program)
    assert len(run.scalars("loss/objective").values) == 20
    assert len(searches) < 10


def test_copies_of_a_model_that_does_not_go_on_are_trainings_of_their_own(watched):
    def program():
        base = train()
        for _ in range(3):
            fold = copy.deepcopy(base)
            optimizer = torch.optim.SGD(fold.parameters(), lr=0.1)
            steps(fold, optimizer, nn.CrossEntropyLoss())

    assert len(watched(program)) == 4
