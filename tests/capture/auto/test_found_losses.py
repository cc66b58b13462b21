"""Losses of PyTorch are found as they are computed, and what they compare."""

from __future__ import annotations

import copy
import gc

import pytest
import torch
from small_trainings import batch, everywhere, net, steps, train
from torch import nn
from torch.nn import functional

import tdbg_lab as tdbg


def test_loss_by_a_function_is_what_backward_is_called_on(watched):
    losses = []

    def program():
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            x, y = batch()
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            losses.append(loss.item())
            optimizer.step()

    (run,) = watched(program)
    assert run.scalars("loss/objective").values.tolist() == pytest.approx(losses)


@pytest.mark.parametrize("evaluates", [True, False])
def test_loss_of_a_student_is_not_its_teachers(watched, evaluates):
    """The teacher, trained before, is asked between the student's forward and its backward."""
    losses = []

    def program():
        teacher = train()
        teacher.train(not evaluates)
        torch.manual_seed(1)
        student = net(5)
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for _ in range(4):
            x, _ = batch()
            told = student(x).log_softmax(1)
            with torch.no_grad():
                wanted = teacher(x).softmax(1)
            loss = functional.kl_div(told, wanted, reduction="batchmean")
            optimizer.zero_grad()
            loss.backward()
            losses.append(loss.item())
            optimizer.step()

    taught, run = watched(program)
    assert run.scalars("loss/objective").values.tolist() == pytest.approx(losses)
    assert taught.tensor_names(kind="loss") == ["loss/CrossEntropyLoss"]
    assert not evaluates or taught.steps(mode="train").tolist() == [0, 1, 2, 3]


def test_loss_of_a_module_is_not_recorded_twice(watched):
    (run,) = watched(train)
    assert run.tensor_names(kind="loss") == ["loss/CrossEntropyLoss"]


def test_losses_made_anew_for_each_step_share_one_name(watched):
    def program():
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            steps(model, optimizer, nn.CrossEntropyLoss(), 1)

    (run,) = watched(program)
    assert run.tensor_names(kind="loss") == ["loss/CrossEntropyLoss"]
    everywhere(run, "loss/CrossEntropyLoss")


@pytest.mark.parametrize("reshaped", [False, True])
def test_functional_cross_entropy_has_the_facts_of_its_module(watched, reshaped):
    def program(loss):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (3, 2)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        weight = torch.tensor([0.5, 2.0])
        for _ in range(4):
            optimizer.zero_grad()
            out = model(torch.randn(6, 4))
            y = torch.randint(0, 2, (6, 3))
            y[0, 0] = -1
            out, y = (out.view(-1, 2), y.view(-1)) if reshaped else (out.transpose(1, 2), y)
            (3.0 * loss(out, y, weight)).backward()
            optimizer.step()

    def by_module(out, y, weight):
        return nn.CrossEntropyLoss(weight=weight, ignore_index=-1)(out, y)

    def by_function(out, y, weight):
        return functional.cross_entropy(out, y, weight=weight, ignore_index=-1)

    found = []
    for loss, name in ((by_module, "CrossEntropyLoss"), (by_function, "objective")):
        (run,) = watched(program, loss)
        keys = run.tensors(kind="check", regex=f"^check/loss/{name}/")
        found.append({key.name.rpartition("/")[2]: run.scalars(key.name).values.tolist() for key in keys})
    module, function = found
    assert {"hits", "entropy", "ignored", "prediction_max", "kind"} <= set(module)
    # In another layout what the model gave is not known to be what the loss was given.
    same = set(module) if reshaped else {"hits", "entropy", "ignored"}
    assert same <= set(function)
    for fact in same:
        assert function[fact] == pytest.approx(module[fact]), fact


@pytest.mark.parametrize(
    "loss",
    [
        functional.mse_loss,
        functional.binary_cross_entropy_with_logits,
        lambda x, y: functional.binary_cross_entropy(x.sigmoid(), y),
        lambda x, y: functional.huber_loss(x, y, reduction="none").sum() / 8,
    ],
)
def test_facts_of_functions_are_of_what_they_compare(watched, loss):
    targets = []

    def program():
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            x, y = torch.randn(8, 4), torch.randint(0, 2, (8, 1)).float()
            targets.append(y.square().mean().sqrt().item())
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()

    (run,) = watched(program)
    assert run.scalars("check/loss/objective/target_size").values.tolist() == pytest.approx(targets)


def test_facts_of_two_losses_of_a_class_are_of_one_of_them(watched):
    def program():
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        first, second = nn.CrossEntropyLoss(), nn.CrossEntropyLoss()
        for _ in range(4):
            out = model(torch.randn(8, 4))
            optimizer.zero_grad()
            (first(out, torch.zeros(8).long()) + second(out, torch.ones(8).long())).backward()
            optimizer.step()

    (run,) = watched(program)
    assert run.scalars("check/loss/CrossEntropyLoss/target_max").values.tolist() == [0.0] * 4


@pytest.mark.parametrize("loss", [functional.cross_entropy, nn.CrossEntropyLoss()])
def test_untouched_program_that_gives_probabilities_for_logits_is_found(watched, loss):
    def program():
        torch.manual_seed(0)
        x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
        model = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10), nn.Softmax(1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(12):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()

    (run,) = watched(program)
    (found,) = [one for one in tdbg.run_rules(run.path) if one.rule == "wrong_output"]
    assert "softmax" in found.message


def test_sum_of_losses_is_not_taken_for_one_of_them(watched):
    def program():
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            x = torch.randn(8, 4)
            optimizer.zero_grad()
            (functional.mse_loss(model(x), x[:, :1]) + model.weight.square().sum()).backward()
            optimizer.step()

    (run,) = watched(program)
    assert run.tensors(kind="check", regex="^check/loss/") == []


@pytest.mark.parametrize("copied", [False, True])
def test_loss_of_a_temperature_is_its_own(watched, copied):
    """SAC moves the weight of its entropy by an optimizer of its own: a number that belongs to no model."""
    losses = []

    def program():
        torch.manual_seed(0)
        actor, critic = net(), net(5)
        log_alpha = torch.zeros(1, requires_grad=True)
        acts = torch.optim.SGD(actor.parameters(), lr=0.1)
        judges = torch.optim.SGD(critic.parameters(), lr=0.1)
        heats = torch.optim.SGD([log_alpha], lr=0.1)
        spare = copy.deepcopy(judges) if copied else None
        for _ in range(4):
            of_step = []
            for model, optimizer in ((critic, judges), (actor, acts)):
                loss = model(batch()[0]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                of_step.append(loss.item())
            loss = (log_alpha.exp() * (loss.detach() + 1)).mean()
            heats.zero_grad()
            loss.backward()
            heats.step()
            losses.append([*of_step, loss.item()])
        assert spare is None or not spare.state

    (run,) = watched(program)
    assert len(run.tensor_names(kind="loss")) == 3
    for name, wanted in zip(("judges", "acts", "heats"), zip(*losses, strict=True), strict=True):
        found = run.scalars(f"loss/objective/{name}")
        assert found.steps.tolist() == [0, 1, 2, 3]
        assert found.values.tolist() == pytest.approx(wanted)


class Unheard(nn.Linear):
    """Calls no hook, as the models of GPyTorch do not."""

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


@pytest.mark.parametrize("how", ["plain", "accumulated", "scaled"])
def test_first_loss_is_there_where_a_training_is_found_as_its_optimizer_steps(watched, how):
    losses = []
    passes = 2 if how == "accumulated" else 1

    def program():
        torch.manual_seed(0)
        model = Unheard(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, enabled=how == "scaled")
        for _ in range(4):
            optimizer.zero_grad()
            parts = []
            for _ in range(passes):
                x, _ = batch()
                loss = model(x[:, :4]).square().mean()
                scaler.scale(loss / passes if passes > 1 else loss).backward()
                parts.append(loss.item())
            losses.append(sum(parts) / passes)
            scaler.step(optimizer)
            scaler.update()

    (run,) = watched(program)
    assert run.scalars("loss/objective").steps.tolist() == [0, 1, 2, 3]
    assert run.scalars("loss/objective").values[0] == pytest.approx(losses[0])


class Overlap(nn.Module):
    """A loss of the program's own, which its name does not tell."""

    def forward(self, x, y):
        likely = x.softmax(1).gather(1, y[:, None])
        return 1 - 2 * likely.sum() / (len(y) + likely.square().sum())


class Doubled(nn.Module):
    """Put around a loss."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, y):
        return 2 * self.inner(x, y)


@pytest.mark.parametrize("criterion", [Overlap(), Doubled(Overlap()), Doubled(nn.CrossEntropyLoss())])
def test_module_that_turns_out_to_be_the_loss_tells_that_of_evaluations(watched, criterion):
    losses, evaluated = [], []
    noise = nn.Identity()  # holds no parameters either

    def program():
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model.train()
            for _ in range(4):
                x, y = batch()
                optimizer.zero_grad()
                loss = criterion(model(noise(x)), y)
                loss.backward()
                losses.append(loss.item())
                optimizer.step()
            model.eval()
            with torch.no_grad():
                values = [criterion(model(noise(x)), y).item() for x, y in (batch(), batch())]
            evaluated.append(sum(values) / 2)

    (run,) = watched(program)
    assert run.scalars("loss/objective", mode="train").values.tolist() == pytest.approx(losses)
    assert run.scalars("loss/objective", mode="eval").values.tolist() == pytest.approx(evaluated)
    assert not noise._forward_hooks


def test_module_that_is_no_loss_does_not_take_the_first_loss_away(watched):
    """It was called in a training before, which is over."""
    losses, noise = [], nn.Identity()

    def training(kind):
        model = kind(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(noise(batch()[0])).square().mean()
            loss.backward()
            losses.append(loss.item())
            optimizer.step()

    def program():
        for kind in (nn.Linear, Unheard):
            training(kind)
            gc.collect()

    runs = watched(program)
    told = [run.scalars("loss/objective").values.tolist() for run in runs]
    assert told == [pytest.approx(losses[:3]), pytest.approx(losses[3:])]
