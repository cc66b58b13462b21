"""Each fault is found by its rule, soon; a healthy loop is left alone by all of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tdbg_lab.records import Severity
from tdbg_lab.rules import list_rules, run_rules

from .loops import TRIGGER, Loop, make_model

OURS = [one.name for one in list_rules() if one.group == "silent"]
SOON = 5
"""Steps from the trigger within which a fault must be found."""


class Healthy(Loop):
    pass


class Accumulating(Loop):
    def reset(self, step):
        if step % 3 == 0:
            super().reset(step)

    def move(self, step):
        if step % 3 == 2:
            super().move(step)


class Clipping(Loop):
    def move(self, step):
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        super().move(step)


class Averaging(Loop):
    """Evaluates with averaged weights, then puts the own ones back."""

    def evaluate(self, step):
        own = {name: value.clone() for name, value in self.model.state_dict().items()}
        with torch.no_grad():
            for one in self.model.parameters():
                one.mul_(0.99)
        super().evaluate(step)
        self.model.load_state_dict(own)


class FineTuning(Loop):
    def make_optimizer(self):
        self.model[0].requires_grad_(requires_grad=False)
        self.model[1].requires_grad_(requires_grad=False)
        return torch.optim.Adam([one for one in self.model.parameters() if one.requires_grad])


class Scheduled(Loop):
    def before(self, step):
        if self.schedule is None:
            self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
        if step and step % 10 == 0:
            self.schedule.step()


class Epochs(Loop):
    def rows(self, step):
        order = torch.randperm(320, generator=torch.Generator().manual_seed(step // 10))
        return order[32 * (step % 10) : 32 * (step % 10 + 1)]


class OneBatch(Loop):
    def rows(self, step):
        return torch.arange(200)


class LookingAhead(Loop):
    """Every fifth step the weights go half of the way back to where they were five steps ago."""

    steps = 90

    def before(self, step):
        if step % 5:
            return
        with torch.no_grad():
            for one, slow in zip(self.model.parameters(), getattr(self, "slow", ()), strict=False):
                one.lerp_(slow, 0.5)
        self.slow = [one.detach().clone() for one in self.model.parameters()]


class EndingAtZero(Loop):
    """The schedule ends with the training."""

    steps = 60

    def before(self, step):
        self.optimizer.param_groups[0]["lr"] = 0.1 * max(0.0, 1 - step / 55)


HEALTHY = (
    *(Healthy, Accumulating, Clipping, Averaging, FineTuning, Scheduled, Epochs, OneBatch),
    *(LookingAhead, EndingAtZero),
)


class NotReset(Loop):
    rule, trigger = "stale_gradients", TRIGGER

    def reset(self, step):
        if step < TRIGGER:
            super().reset(step)


class Skipping(Loop):
    rule, trigger = "skipped_steps", 6  # in optimizer steps, which go by more slowly then

    def move(self, step):
        if step < 6 or step % 2:
            super().move(step)


class NeverStepping(Loop):
    rule, trigger = "skipped_steps", 0

    def move(self, step):
        pass


class HeadForgotten(Loop):
    rule, trigger, tensor = "parameters_without_optimizer", 0, "6.weight"

    def make_optimizer(self):
        return torch.optim.SGD(self.model[:6].parameters(), lr=0.1)


class HeadExchanged(Loop):
    rule, trigger, tensor = "parameters_without_optimizer", TRIGGER, "6.weight"

    def before(self, step):
        if step == TRIGGER:
            self.model[6] = nn.Linear(32, 10)


class OtherModel(Loop):
    rule, trigger, tensor = "parameters_without_optimizer", 0, "0.weight"

    def make_optimizer(self):
        return torch.optim.SGD(make_model().parameters(), lr=0.1)


class CutOff(Loop):
    rule, trigger, tensor = "parameters_without_gradient", TRIGGER, "4.weight"

    def forward(self, x, step):
        hook = self.model[4].register_forward_hook(lambda _m, _a, out: out.detach())
        if step < TRIGGER:
            hook.remove()
        out = self.model(x)
        hook.remove()
        return out


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 32), nn.ReLU())
        self.digit, self.large = nn.Linear(32, 10), nn.Linear(32, 1)

    def forward(self, x):
        h = self.body(x)
        return torch.cat([self.digit(h), self.large(h)], 1)


class HeadUnheeded(Loop):
    """The loss looks at one of two heads: the other one has a gradient, and it is zero."""

    rule, trigger, tensor, save_every = "parameters_without_gradient", 0, "large.weight", 2

    def __init__(self):
        super().__init__()
        self.model = TwoHeads()
        self.optimizer = self.make_optimizer()

    def forward(self, x, step):
        return self.model(x)[:, :10]


class LeftInEval(Loop):
    rule, trigger = "training_in_eval_mode", 10

    def evaluate(self, step):
        super().evaluate(step)
        self.model.eval()


class EvaluatedInTrain(Loop):
    rule, trigger = "evaluation_in_train_mode", 10

    def evaluate(self, step):
        with torch.no_grad():
            self.model(self.x[1500:])


class PartLeftInTrain(Loop):
    rule, trigger, tensor = "evaluation_in_train_mode", 10, "activation/1"

    def evaluate(self, step):
        self.model.eval()
        self.model[1].train()
        with torch.no_grad():
            self.model(self.x[1500:])
        self.model.train()


class SetAnew(Loop):
    rule, trigger, tensor = "replaced_weights", TRIGGER, "4.weight"

    def before(self, step):
        if step == TRIGGER:
            self.model[4].reset_parameters()


class SetBack(Loop):
    """The weights of the beginning are loaded again."""

    rule, trigger, tensor = "replaced_weights", 25, "0.weight"

    def before(self, step):
        if step == 0:
            self.first = {name: value.clone() for name, value in self.model.state_dict().items()}
        if step == 25:
            self.model.load_state_dict(self.first)


class NotFilled(Loop):
    rule, trigger, tensor = "uninitialised_values", 0, "1.running_mean"

    def before(self, step):
        if step == 0:
            self.model[1].running_mean.fill_(3.7e19)


class NeverScheduled(Loop):
    rule, trigger = "frozen_schedule", 20

    def before(self, step):
        if self.schedule is None:
            self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)


class StuckAtZero(Loop):
    rule, trigger = "frozen_schedule", 0

    def before(self, step):
        if self.schedule is None:
            self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda n: min(1.0, n / 10))


class StuckNearZero(Loop):
    rule, trigger = "frozen_schedule", 10

    def before(self, step):
        if self.schedule is None:
            self.schedule = torch.optim.lr_scheduler.LambdaLR(
                self.optimizer, lambda n: 1e-4 + min(1.0, n / 10)
            )


class Overflowing(Loop):
    rule, trigger = "stuck_scaler", TRIGGER

    def __init__(self):
        super().__init__()
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)

    def forward(self, x, step):
        out = super().forward(x, step)
        self.scaler.scale(out.sum())  # makes the scale
        out.register_hook(lambda grad: grad * (torch.inf if step >= TRIGGER else self.scaler.get_scale()))
        return out

    def move(self, step):
        self.scaler.step(self.optimizer)
        self.scaler.update()


class Twice(Loop):
    rule, trigger = "same_batches", 0

    def rows(self, step):
        return torch.randint(0, 1500, (32,), generator=torch.Generator().manual_seed(step // 2))


class FourTimes(Loop):
    rule, trigger = "same_batches", 1

    def rows(self, step):
        return torch.randint(0, 1500, (32,), generator=torch.Generator().manual_seed(step // 4))


class Ending(Loop):
    """The loader gives its last batch again when it is used up."""

    rule, trigger = "same_batches", TRIGGER

    def rows(self, step):
        return torch.randint(0, 1500, (32,), generator=torch.Generator().manual_seed(min(step, TRIGGER)))


class AFew(Loop):
    """An iterator over the data that is made anew every third step."""

    rule, trigger = "same_batches", 0

    def rows(self, step):
        return torch.arange(32 * (step % 3), 32 * (step % 3) + 32)


class SetBackAWhile(Loop):
    """An older checkpoint is loaded in mid-run."""

    rule, trigger, steps = "replaced_weights", 65, 80

    def before(self, step):
        if step == 20:
            self.older = {name: value.clone() for name, value in self.model.state_dict().items()}
        if step == 65:
            self.model.load_state_dict(self.older)


class AverageLeftIn(Loop):
    """Averaged weights are put in for an evaluation, and once they are not taken out."""

    rule, trigger, steps = "replaced_weights", 90, 110

    def before(self, step):
        if step == 0:
            self.mean = {name: one.detach().clone() for name, one in self.model.named_parameters()}
        with torch.no_grad():
            for name, one in self.model.named_parameters():
                self.mean[name].lerp_(one, 0.02)
                if step == 90:
                    one.copy_(self.mean[name])


FAULTY = (
    *(NotReset, Skipping, NeverStepping, HeadForgotten, HeadExchanged, OtherModel, CutOff),
    *(LeftInEval, EvaluatedInTrain, PartLeftInTrain, SetAnew, SetBack, NotFilled, NeverScheduled),
    *(StuckAtZero, StuckNearZero, Overflowing, Twice, FourTimes, Ending, AFew),
    *(SetBackAWhile, AverageLeftIn, HeadUnheeded),
)


@pytest.mark.parametrize("loop", HEALTHY, ids=lambda one: one.__name__)
def test_healthy_loop_has_no_alarm(tmp_path, loop):
    found = run_rules(loop().run(tmp_path / "run"), OURS)
    assert [one for one in found if one.severity is not Severity.NOTICE] == []


@pytest.mark.parametrize("loop", FAULTY, ids=lambda one: one.__name__)
def test_fault_is_found_soon_by_its_rule_alone(tmp_path, loop):
    found = run_rules(loop().run(tmp_path / "run"), OURS)
    found = [one for one in found if one.severity is not Severity.NOTICE]
    assert [one.rule for one in found] == [loop.rule]
    finding = found[0]
    soon = 7 if loop is Twice else SOON  # four times a batch comes again
    assert loop.trigger <= finding.step_first <= loop.trigger + soon
    assert finding.tensor == getattr(loop, "tensor", finding.tensor)
    assert finding.advice
    assert finding.view is not None


@pytest.mark.parametrize(
    ("per_epoch", "severity", "first"), [(10, Severity.WARNING, 13), (5, Severity.NOTICE, 12)]
)
def test_same_order_each_epoch_is_found_in_the_second_one(tmp_path, per_epoch, severity, first):
    class InOrder(Loop):
        def rows(self, step):
            return torch.arange(32 * (step % per_epoch), 32 * (step % per_epoch) + 32)

    (finding,) = run_rules(InOrder().run(tmp_path / "run"), ["unshuffled_epochs"])
    assert finding.severity is severity
    assert finding.step_first == first
    assert finding.evidence["batches_per_epoch_count"] == per_epoch


def test_going_back_after_the_loss_rose_is_meant(tmp_path):
    class GoingBack(Loop):
        steps, save_every = 110, 1

        def before(self, step):
            if step == 60:
                self.good = {name: value.clone() for name, value in self.model.state_dict().items()}
            self.optimizer.param_groups[0]["lr"] = 1.0 if 70 <= step < 95 else 0.1
            if step == 95:
                self.model.load_state_dict(self.good)

    found = run_rules(GoingBack().run(tmp_path / "run"), ["replaced_weights"])
    assert [one for one in found if one.severity is not Severity.NOTICE] == []


def test_a_schedule_that_ends_long_before_the_training_is_found(tmp_path):
    class Ended(Loop):
        steps, save_every = 60, 2

        def before(self, step):
            if self.schedule is None:
                self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 20)
            elif step <= 20:
                self.schedule.step()

    (finding,) = run_rules(Ended().run(tmp_path / "run"), ["frozen_schedule"])
    assert finding.severity is Severity.WARNING
    assert 20 <= finding.step_first <= 24
    assert "zero since step" in finding.message


class Numbers(Loop):
    """Regression on how much ink there is, of a heavy tail."""

    steps, save_every = 40, 2

    def __init__(self) -> None:
        super().__init__()
        self.y = self.x.sum(1, keepdim=True).sub(20).div(3).exp()
        self.y /= self.y.mean()
        self.model[-1] = nn.Linear(self.model[-1].in_features, 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-3)
        self.loss = nn.MSELoss()


class SortedNumbers(Numbers):
    def rows(self, step):
        return self.y[:1500, 0].argsort()[torch.arange(32 * step, 32 * step + 32) % 1500]


class TwoSorts(Numbers):
    """Labels of real and of made pictures in turn, as games have them."""

    def __init__(self) -> None:
        super().__init__()
        self.y = torch.rand(len(self.y), 1) * 0.1
        self.y[::2] += 0.9

    def rows(self, step):
        return 2 * (super().rows(step) // 2) + (step // 2) % 2


@pytest.mark.parametrize(
    ("loop", "severity"), [(Numbers, []), (SortedNumbers, [Severity.WARNING]), (TwoSorts, [])]
)
def test_data_sorted_by_a_number_are_found(tmp_path, loop, severity):
    found = run_rules(loop().run(tmp_path / "run"), ["unshuffled_epochs"])
    assert [one.severity for one in found if one.severity is not Severity.NOTICE] == severity


@pytest.mark.parametrize(("rows_each", "severity"), [(150, [Severity.WARNING]), (1, [])])
def test_data_sorted_by_class_are_found(tmp_path, rows_each, severity):
    class Sorted(Loop):
        steps, save_every = 60, 2

        def rows(self, step):
            order = self.y[:1500].argsort(stable=True)
            if rows_each == 1:
                order = order[torch.randperm(1500, generator=torch.Generator().manual_seed(2))]
            return order[torch.arange(32 * step, 32 * step + 32) % 1500]

    found = run_rules(Sorted().run(tmp_path / "run"), ["unshuffled_epochs"])
    assert [one.severity for one in found if one.severity is not Severity.NOTICE] == severity
