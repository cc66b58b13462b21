"""What is called: a model, a part of one, what is put around one, or another form of it."""

from __future__ import annotations

import gc

import torch
from small_trainings import batch, everywhere, net, steps, train
from torch import nn
from torch.nn import functional

import tdbg_lab as tdbg
from tdbg_lab.capture.auto import AutoWatch


class Around(nn.Module):
    """Put around a model, as ``DistributedDataParallel`` is."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


def test_what_is_put_around_a_model_that_the_program_attaches_to_is_no_other_training(watched, tmp_path):
    def program():
        model, criterion = net(), nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with tdbg.attach(model, optimizer=optimizer, loss=criterion, store=tmp_path / "own", save_every=1):
            steps(Around(model), optimizer, criterion)

    assert watched(program) == []
    everywhere(tdbg.open_run(tmp_path / "own"), "activation/0", "0.weight", "loss/CrossEntropyLoss")


def test_evaluation_and_a_frozen_teacher_are_not_taken_for_training(watched):
    def program():
        teacher, student = net(), net()
        teacher.requires_grad_(requires_grad=False)
        student.eval()(batch()[0])
        student.train()
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for _ in range(4):
            x, _ = batch()
            optimizer.zero_grad()
            functional.mse_loss(student(x), teacher(x)).backward()
            optimizer.step()

    (run,) = watched(program)
    everywhere(run, "activation/0")
    assert run.modes() == ["train"]


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x))


def train_by_parts(criterion):
    model = Whole()
    steps(lambda x: model.head(model.body(x)), torch.optim.SGD(model.parameters(), lr=0.1), criterion)
    return model


def test_model_that_is_called_by_its_parts_is_captured_whole(watched):
    (run,) = watched(lambda: train_by_parts(nn.CrossEntropyLoss()))
    everywhere(run, "activation/body", "activation/head", "gradient/head.weight")


def test_loss_is_that_of_the_training_that_was_seen_last(watched):
    """Stable-Baselines3 calls the parts of a policy; an earlier agent still stands by."""

    def program():
        first = net()
        steps(first, torch.optim.SGD(first.parameters(), lr=0.1), functional.cross_entropy)
        train_by_parts(functional.cross_entropy)
        return first

    for run in watched(program):
        everywhere(run, "loss/objective")


class Agent(nn.Module):
    """Asked and trained by a method of its own."""

    def __init__(self):
        super().__init__()
        self.critic, self.actor = net(), net(5)

    def judge(self, x):
        return self.actor(x).square().mean() + self.critic(x).square().mean()


def test_a_model_of_torchscript_is_told_and_later_trainings_are_looked_for(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    watch = AutoWatch({"store": "runs/auto", "save_every": 1, "profiler": False})
    with watch:
        scripted = torch.jit.script(net())
        gc.collect()  # the plain one, which would be captured instead
        steps(scripted, torch.optim.SGD(scripted.parameters(), lr=0.1), nn.CrossEntropyLoss())
        assert "compiled by TorchScript" in watch.summary()
        assert "no training was seen" not in watch.summary()
        train()
    assert caplog.records == []
    (path,) = watch.run_paths
    everywhere(tdbg.open_run(path), "activation/0", "loss/CrossEntropyLoss")


def test_parts_of_a_model_that_nobody_calls_itself_are_named_as_it_names_them(watched):
    def program():
        agent = Agent()
        optimizer = torch.optim.SGD(agent.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            agent.judge(batch()[0]).backward()
            optimizer.step()

    (run,) = watched(program)
    everywhere(run, "critic.0.weight", "actor.2.bias", "activation/critic.0", "activation/actor.2")


class Flow(nn.Module):
    """Is trained by a method other than ``forward``, which it has none of, as flows and agents are."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.scale = nn.Linear(4, 1)

    def log_prob(self, x):
        for block in self.blocks:
            x = block(x).tanh()
        return self.scale(x).mean()


def test_parts_of_a_model_without_a_forward_have_its_names(watched):
    def program():
        flow = Flow()
        optimizer = torch.optim.SGD(flow.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            flow.log_prob(batch()[0]).backward()
            optimizer.step()

    (run,) = watched(program)
    assert set(run.tensor_names(kind="weight")) == {name for name in Flow().state_dict() if "weight" in name}
    everywhere(run, "activation/blocks.0", "activation/blocks.1", "gradient/scale.bias", "loss/objective")


def solved(model, x):
    """Puts something around the model for the time of a call, as solvers of differential equations do."""
    function = Around(model)
    return x + function(x)


def test_what_is_put_around_a_model_for_a_call_is_not_taken_for_the_model(watched, caplog):
    def program():
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            solved(model, solved(model, batch()[0])).sum().backward()
            optimizer.step()

    (run,) = watched(program)
    everywhere(run, "activation/0", "0.weight", "gradient/2.bias", "loss/objective")
    assert "was added" not in caplog.text


def test_another_form_of_the_model_is_no_layer_that_was_added(watched, caplog):
    """What an export gives holds the parameters of the model."""

    def program():
        model, criterion = net(), nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        steps(model, optimizer, criterion)
        torch.fx.symbolic_trace(model)(batch()[0])

    watched(program)
    assert "was added" not in caplog.text
