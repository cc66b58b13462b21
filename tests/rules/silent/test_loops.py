"""Each fault is found by its rule, soon; a healthy loop is left alone by all of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tdbg_lab.records import Severity
from tdbg_lab.rules import list_rules, run_rules

from .faulty_loops import FAULTY, SetBack, Twice
from .healthy_loops import HEALTHY
from .loops import Loop

OURS = [one.name for one in list_rules() if one.group == "silent"]
SOON = 5
"""Steps from the trigger within which a fault must be found."""


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


def test_steps_that_move_only_the_head_are_no_second_trouble(tmp_path):
    """That the others do not move looks like a learning rate that is far too low."""

    class HeadAlone(Loop):
        steps, save_every = 160, 5

        def make_optimizer(self):
            return torch.optim.SGD(self.model[6].parameters(), lr=0.01)

    found = run_rules(HeadAlone().run(tmp_path / "run"), ["parameters_without_optimizer", "learning_rate"])
    assert [(one.rule, bool(one.cause)) for one in found] == [
        ("parameters_without_optimizer", False),
        ("learning_rate", True),
    ]


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


def test_a_search_for_the_learning_rate_goes_back_on_purpose(tmp_path):
    """It raises the rate from step to step, and puts the weights back before the training."""

    class Searched(SetBack):
        def before(self, step):
            self.optimizer.param_groups[0]["lr"] = 1e-6 * 1.8**step if step < 25 else 0.01
            super().before(step)

    (finding,) = run_rules(Searched().run(tmp_path / "run"), ["replaced_weights"])
    assert finding.step_first == 25
    assert finding.severity is Severity.NOTICE
    assert "search for the learning rate" in finding.advice[0]


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


def test_batches_of_one_row_tell_nothing_of_the_order(tmp_path):
    class Single(Loop):
        steps, save_every = 60, 2

        def judge(self, told, wanted):
            return self.loss(told[:1], wanted[:1])

    assert run_rules(Single().run(tmp_path / "run"), ["unshuffled_epochs"]) == []
