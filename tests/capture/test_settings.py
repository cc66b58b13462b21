"""Settings that are changed while PyTorch trains."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from tdbg_lab.errors import ConfigError, ConflictError
from tdbg_lab.records import Finding, Severity
from tdbg_lab.run import open_run


class Training:
    """A small regression, one seed; `at` says what is done before a step."""

    def __init__(self, attach=None, *, optimizer=None, scheduler=None, groups=1, log_lr=True):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        parts = [{"params": one.parameters()} for one in (self.model[0], self.model[2])]
        make = optimizer or (lambda given: torch.optim.SGD(given, lr=0.1))
        self.optimizer = make(parts if groups == 2 else self.model.parameters())
        self.scheduler = scheduler(self.optimizer) if scheduler else None
        self.handle = attach(self.model, optimizer=self.optimizer) if attach else None
        self.rates = []

    def step(self, count=1, scale=1.0):
        for _ in range(count):
            if self.handle is not None:
                self.handle._engine.control._next_s = 0.0  # look at every step
            x = torch.arange(12.0).reshape(3, 4) / 10
            self.optimizer.zero_grad()
            (scale * self.model(x).square().mean()).backward()
            self.rates.append([float(group["lr"]) for group in self.optimizer.param_groups])
            self.optimizer.step()
            if self.scheduler is not None:
                self.scheduler.step()

    @property
    def run(self):
        return open_run(self.handle.run_path)


def test_learning_rate_is_changed_at_the_end_of_the_step_and_recorded(attach):
    training = Training(attach)
    training.step(2)
    training.run.request_setting("learning_rate", 1e-3, by="me", reason="it oscillates")
    training.step(2)
    assert training.rates == [[0.1], [0.1], [0.1], [1e-3]]
    (record,) = training.run.setting_changes()
    assert (record.state, record.step, record.by, record.reason) == ("done", 3, "me", "it oscillates")
    assert [(one.what, one.old, one.new) for one in record.applied] == [("optimizer/lr/0", 0.1, 1e-3)]
    assert record.answer == (
        "from step 3 on: optimizer/lr/0 from 0.1 to 0.001. No scheduler of PyTorch steers it."
    )
    training.handle.detach()
    assert training.run.scalars("optimizer/lr/0").values.tolist() == [0.1, 0.1, 0.1, 1e-3]


def test_one_parameter_group_is_multiplied(attach):
    training = Training(attach, groups=2)
    training.run.request_setting("lr[1]*=0.5")
    training.step(2)
    assert training.rates == [[0.1, 0.1], [0.1, 0.05]]


@pytest.mark.parametrize(
    "make",
    [
        lambda opt: lr_scheduler.StepLR(opt, 2, gamma=0.5),
        lambda opt: lr_scheduler.LambdaLR(opt, lambda step: 1 / (step + 1)),
        lambda opt: lr_scheduler.CosineAnnealingLR(opt, T_max=4, eta_min=0.01),
        lambda opt: lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=3),
        lambda opt: lr_scheduler.OneCycleLR(opt, max_lr=0.3, total_steps=12),
        lambda opt: lr_scheduler.CyclicLR(opt, 0.01, 0.1, step_size_up=2, cycle_momentum=False),
        lambda opt: lr_scheduler.SequentialLR(
            opt,
            [lr_scheduler.LinearLR(opt, 0.1, total_iters=3), lr_scheduler.ExponentialLR(opt, 0.9)],
            milestones=[3],
        ),
        lambda opt: lr_scheduler.PolynomialLR(opt, total_iters=9, power=2),
    ],
    ids=["step", "lambda", "cosine", "restarts", "one cycle", "cyclic", "sequence", "polynomial"],
)
def test_scheduler_goes_on_with_its_whole_schedule_scaled(attach, make):
    plain = Training(scheduler=make)
    plain.step(10)
    training = Training(attach, scheduler=make)
    training.step(2)
    training.run.request_setting("learning_rate", factor=0.1)
    training.step(8)
    expected = [rate * (0.1 if step > 2 else 1.0) for step, (rate,) in enumerate(plain.rates)]
    assert [rate for (rate,) in training.rates] == pytest.approx(expected, rel=1e-9)
    assert "the whole schedule is multiplied" in training.run.setting_changes()[0].answer
    assert training.scheduler.get_last_lr() == pytest.approx([training.optimizer.param_groups[0]["lr"]])


def test_rate_held_in_a_tensor_stays_that_tensor(attach):
    rate = torch.tensor(0.1)
    training = Training(attach, optimizer=lambda given: torch.optim.Adam(given, lr=rate, capturable=False))
    before = training.optimizer.param_groups[0]["lr"]
    training.run.request_setting("learning_rate", 0.01)
    training.step(2)
    assert training.optimizer.param_groups[0]["lr"] is before
    assert float(before) == pytest.approx(0.01)


def test_rate_that_the_program_sets_itself_is_told(attach):
    training = Training(attach)
    training.run.request_setting("learning_rate", 0.01)
    training.step()
    training.optimizer.param_groups[0]["lr"] = 0.1
    training.step()
    (problem,) = training.handle.problems
    assert not problem.off
    assert "sets the learning rate itself" in problem.message


def test_clipping_is_what_pytorch_does_and_ends_when_it_is_turned_off(attach):
    plain = Training()
    training = Training(attach)
    training.run.request_setting("clip_norm", 0.01)
    training.step(4)
    training.run.request_setting("clip_norm", "off")
    training.step(2)
    for step in range(6):
        plain.optimizer.zero_grad()
        plain.model(torch.arange(12.0).reshape(3, 4) / 10).square().mean().backward()
        if 1 <= step <= 4:
            nn.utils.clip_grad_norm_(plain.model.parameters(), 0.01)
        plain.optimizer.step()
    for mine, theirs in zip(training.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    training.handle.detach()
    run = training.run
    assert run.scalars("optimizer/grad_norm_clipped").steps.tolist() == [1, 2, 3, 4]
    assert run.scalars("optimizer/grad_norm_clipped").values == pytest.approx([0.01] * 4, rel=1e-3)
    assert run.scalars("optimizer/grad_norm").values[1] > 0.01
    first, second = run.setting_changes()
    assert [(one.what, one.old, one.new) for one in first.applied] == [("clip_norm", None, 0.01)]
    assert [(one.what, one.old, one.new) for one in second.applied] == [("clip_norm", 0.01, None)]


def test_training_without_a_request_stays_bitwise_the_same(attach):
    plain, training = Training(), Training(attach)
    plain.step(5)
    training.step(5)
    for mine, theirs in zip(training.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("lr[3]=0.1", "There is no parameter group 3; the optimizer has 1"),
        ("lr*=1e5", "expected a number from 1e-12 to 1000"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_changes(attach, text, sentence):
    training = Training(attach)
    training.run.request_setting(text)
    training.step(2)
    assert training.rates == [[0.1], [0.1]]
    (record,) = training.run.setting_changes()
    assert record.state == "refused"
    assert sentence in record.answer


def test_absolute_rate_during_a_warm_up_from_zero_is_refused(attach):
    training = Training(
        attach, scheduler=lambda opt: lr_scheduler.LambdaLR(opt, lambda step: max(0, step - 3))
    )
    training.run.request_setting("learning_rate", 0.1)
    training.step()
    assert "give a factor for its schedule" in training.run.setting_changes()[0].answer


def test_several_optimizers_are_told_apart(attach):
    torch.manual_seed(0)
    parts = {"generator": nn.Linear(2, 2), "critic": nn.Linear(2, 2)}
    optimizers = {name: torch.optim.SGD(part.parameters(), lr=0.1) for name, part in parts.items()}
    handle = attach(parts, optimizer=optimizers)
    run = open_run(handle.run_path)
    run.request_setting("learning_rate", 0.01, optimizer="critic")
    for _ in range(2):
        for name, part in parts.items():
            part(torch.ones(1, 2)).sum().backward()
            optimizers[name].step()
    assert [one.param_groups[0]["lr"] for one in optimizers.values()] == [0.1, 0.01]
    assert run.setting_changes()[0].applied[0].what == "optimizer/lr/critic.0"


def test_fix_of_a_finding_is_applied(attach):
    training = Training(attach)
    finding = Finding(
        "exploding_tensor",
        Severity.CRITICAL,
        1,
        2,
        "It explodes.",
        id="f1",
        fix={"setting": "learning_rate", "factor": 0.1},
    )
    training.run.apply_fix(finding, by="rule")
    training.step(2)
    (record,) = training.run.setting_changes()
    assert (record.state, record.by, record.reason) == ("done", "rule", "It explodes.")
    assert training.rates == [[0.1], [pytest.approx(0.01)]]


def test_fix_that_cannot_be_applied_is_a_conflict(attach):
    training = Training(attach)
    bare = Finding("dead_relu", Severity.WARNING, 1, 2, "Dead.")
    with pytest.raises(ConflictError, match="proposes no change"):
        training.run.apply_fix(bare)
    other = Finding("dead_relu", Severity.WARNING, 1, 2, "Dead.", fix={"setting": "batch_size", "value": 8})
    with pytest.raises(ConflictError, match="There is no setting 'batch_size'"):
        training.run.apply_fix(other)
    training.handle.detach()
    with pytest.raises(ConflictError, match=r"nothing to set\.$"):
        training.run.request_setting("learning_rate", 0.1)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"setting": "momentum", "value": 1}, "There is no setting 'momentum'"),
        ({"setting": "learning_rate", "value": -1}, "learning_rate is -1; expected a number from"),
        ({"setting": "learning_rate", "value": float("nan")}, "learning_rate is nan"),
        ({"setting": "learning_rate", "value": True}, "learning_rate is True"),
        ({"setting": "learning_rate", "value": "__import__('os')"}, "expected a number"),
        ({"setting": "learning_rate"}, "either a value or a factor"),
        ({"setting": "clip_norm", "factor": 2.0, "value": 1.0}, "clip_norm takes a value or 'off'"),
        ({"setting": "clip_norm"}, "clip_norm needs a value"),
    ],
)
def test_setting_that_makes_no_sense_is_told(attach, given, sentence):
    run = Training(attach).run
    setting = given.pop("setting")
    with pytest.raises(ConfigError) as error:
        run.request_setting(setting, **given)
    assert sentence in str(error.value)
