"""Facts about the loop: each says what it should in a faulty loop, and nothing in a healthy one."""

from __future__ import annotations

from math import inf, isfinite, nan

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tdbg_lab import open_run
from tdbg_lab.capture.pytorch.checks.batches import digest


def model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 16), nn.Linear(16, 3)
    )


def batch(step, rows=16):
    random = torch.Generator().manual_seed(step)
    return torch.randn(rows, 8, generator=random), torch.randint(0, 3, (rows,), generator=random)


def facts(handle, name, mode="train"):
    handle.detach()
    run = open_run(handle.run_path)
    if f"check/{name}" not in run.tensor_names(kind="check"):
        return {}
    series = run.scalars(f"check/{name}", mode=mode)
    return dict(zip(series.steps.tolist(), series.values.tolist(), strict=True))


def train(net, optimizer, steps=12, *, before=None, zero=True, loss=None, **zeroing):
    loss = loss or nn.CrossEntropyLoss()
    for step in range(steps):
        if before is not None:
            before(step)
        x, y = batch(step)
        out = net(x)
        if zero is True or (callable(zero) and zero(step)):
            optimizer.zero_grad(**zeroing)
        loss(out, y).backward()
        optimizer.step()


@pytest.fixture
def net():
    return model()


@pytest.fixture
def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.1)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_healthy_loop_has_no_stale_or_discarded_gradients(attach, net, sgd, set_to_none):
    handle = attach(net, optimizer=sgd)
    train(net, sgd, set_to_none=set_to_none)
    assert set(facts(handle, "stale_gradients").values()) == {0.0}
    assert set(facts(handle, "discarded_gradients").values()) == {0.0}


def test_accumulation_over_micro_steps_is_healthy(attach, net, sgd):
    handle = attach(net, optimizer=sgd)
    for step in range(6):
        sgd.zero_grad()
        for part in range(3):
            x, y = batch(10 * step + part)
            F.cross_entropy(net(x), y).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        sgd.step()
    assert set(facts(handle, "stale_gradients").values()) == {0.0}
    assert set(facts(handle, "discarded_gradients").values()) == {0.0}


def test_missing_zero_grad_is_counted_from_the_step_it_begins(attach, net, sgd):
    handle = attach(net, optimizer=sgd, save_every=10)
    train(net, sgd, zero=lambda step: step < 6)
    found = facts(handle, "stale_gradients")
    assert [found[step] for step in (0, 6, 7, 11)] == [0, 1, 2, 6]


def test_gradients_set_by_hand_are_reset(attach, net, sgd):
    handle = attach(net, optimizer=sgd)

    def zero(_step):
        for one in net.parameters():
            if one.grad is not None:
                one.grad.zero_()
        return False

    train(net, sgd, zero=zero)
    assert set(facts(handle, "stale_gradients").values()) == {0.0}


def test_skipped_steps_leave_discarded_gradients(attach, net, sgd):
    handle = attach(net, optimizer=sgd)
    for step in range(12):
        x, y = batch(step)
        sgd.zero_grad()
        F.cross_entropy(net(x), y).backward()
        if step < 6 or step % 2:
            sgd.step()
    found = facts(handle, "discarded_gradients")
    assert [found[step] for step in (5, 6, 8)] == [0, 1, 1]


def test_loop_that_never_steps_is_told_before_its_end(attach, net, sgd):
    handle = attach(net, optimizer=sgd)
    for step in range(9):
        x, y = batch(step)
        sgd.zero_grad()
        F.cross_entropy(net(x), y).backward()
    assert list(facts(handle, "discarded_gradients")) == [0]


def test_two_players_that_share_a_graph_have_no_stale_gradients(attach):
    torch.manual_seed(0)
    maker, judge = nn.Linear(4, 8), nn.Linear(8, 1)
    first = torch.optim.SGD(maker.parameters(), lr=0.01)
    second = torch.optim.SGD(judge.parameters(), lr=0.01)
    handle = attach({"maker": maker, "judge": judge}, optimizer={"maker": first, "judge": second})
    for _ in range(6):
        second.zero_grad()
        judge(maker(torch.randn(6, 4)).detach()).mean().backward()
        second.step()
        first.zero_grad()
        judge(maker(torch.randn(6, 4))).mean().neg().backward()
        first.step()
    assert set(facts(handle, "stale_gradients").values()) == {0.0}
    assert set(facts(handle, "stale_gradients/1").values()) == {0.0}
    assert set(facts(handle, "turns").values()) == {1.0}


def test_episodes_are_no_batches(attach):
    policy = nn.Linear(4, 2)
    sgd = torch.optim.SGD(policy.parameters(), lr=0.1)
    handle = attach(policy, optimizer=sgd)
    for _ in range(4):
        sgd.zero_grad()
        for state in torch.eye(4):
            policy(state).sum().backward()
        sgd.step()
    policy(torch.ones(4)).sum().backward()  # one row, once: a batch of one
    sgd.step()
    assert list(facts(handle, "batch")) == [4]


def test_optimizers_of_one_backward_pass_take_no_turns(attach):
    maker, judge = nn.Linear(4, 8), nn.Linear(8, 1)
    both = [torch.optim.SGD(one.parameters(), lr=0.01) for one in (maker, judge)]
    handle = attach({"maker": maker, "judge": judge}, optimizer={"maker": both[0], "judge": both[1]})
    for _ in range(6):
        for half in torch.randn(2, 6, 4):  # gradients of two passes are accumulated
            judge(maker(half)).mean().backward()
        for one in both:
            torch.nn.utils.clip_grad_norm_(one.param_groups[0]["params"], 1.0)
            one.step()
        for one in both:
            one.zero_grad()
    assert facts(handle, "turns") == {}


def test_parameter_without_optimizer_is_named(attach, net):
    sgd = torch.optim.SGD([*net[0].parameters(), *net[5].parameters()], lr=0.1)
    net[1].requires_grad_(requires_grad=False)
    handle = attach(net, optimizer=sgd)
    train(net, sgd, 6)
    assert facts(handle, "without_optimizer/4.weight") == {step: step + 1.0 for step in range(1, 6)}
    assert facts(handle, "without_optimizer/1.weight") == {}
    assert facts(handle, "foreign_parameters")[5] == 0


def test_parameter_moved_by_hand_needs_no_optimizer(attach, net):
    sgd = torch.optim.SGD([*net[0].parameters(), *net[5].parameters()], lr=0.1)
    handle = attach(net, optimizer=sgd)

    def move(_step):
        for part in (net[1], net[4]):
            for one in part.parameters():
                if one.grad is not None:
                    one.data -= 0.1 * one.grad  # PyTorch does not see this

    train(net, sgd, 8, before=move)
    assert facts(handle, "without_optimizer/4.weight") == {}


def test_layer_exchanged_behind_the_optimizer_is_noticed_at_once(attach, net, sgd):
    handle = attach(net, optimizer=sgd, save_every=100)

    def exchange(step):
        if step == 9:
            net[5] = nn.Linear(16, 3)

    train(net, sgd, 20, before=exchange)
    first = min(facts(handle, "without_optimizer/5.weight"))
    assert 9 < first <= 9 + 5
    assert max(facts(handle, "foreign_parameters").values()) == 2


def test_parameter_cut_off_from_the_loss_is_named(attach, net, sgd):
    handle = attach(net, optimizer=sgd)
    for step in range(6):
        x, y = batch(step)
        sgd.zero_grad()
        with torch.no_grad():
            hidden = net[0](x)
        F.cross_entropy(net[1:](hidden), y).backward()
        sgd.step()
    assert facts(handle, "without_gradient/0.weight")[5] == 6


@pytest.mark.parametrize("given", [True, False])
def test_parameter_that_a_second_optimizer_reaches_is_named_no_longer(attach, net, sgd, given):
    """As the head of values of a language model, which is trained after the others."""
    other = torch.optim.SGD(net.parameters(), lr=0.1)
    handle = attach(net, optimizer={"sgd": sgd, "other": other} if given else None)
    for step in range(12):
        x, y = batch(step)
        hidden, optimizer = net[0](x), sgd if step < 6 else other
        optimizer.zero_grad()
        F.cross_entropy(net[1:](hidden.detach() if step < 6 else hidden), y).backward()
        optimizer.step()
    found = facts(handle, "without_gradient/0.weight")
    assert found[5] > 0
    assert found[10] == 0


def test_training_in_eval_mode_is_counted(attach, net, sgd):
    handle = attach(net, optimizer=sgd)
    train(net, sgd, 8, before=lambda step: net.eval() if step == 4 else None)
    found = facts(handle, "train_in_eval")
    assert (found[3], found[4], found[7]) == (0, 1, 4)


@pytest.mark.parametrize("right", [True, False])
def test_evaluation_in_train_mode_is_counted(attach, net, sgd, right):
    handle = attach(net, optimizer=sgd)

    def evaluate(step):
        if step == 5:
            net.train(not right)
            with torch.no_grad():
                net(batch(99)[0])
            net.train()

    train(net, sgd, 8, before=evaluate)
    found = facts(handle, "eval_in_train")
    assert found == ({} if right else {5: 1, 6: 1, 7: 1})


def test_part_in_another_mode_than_its_model_is_named(attach, net, sgd):
    handle = attach(net, optimizer=sgd)
    train(net, sgd, 8, before=lambda step: net[1].eval() if step == 4 else None)
    assert facts(handle, "part_in_eval/1")[4] == 1


def test_columns_that_are_looked_up_are_no_inputs_to_scale(attach):
    class Lookup(nn.Module):
        def __init__(self):
            super().__init__()
            self.kinds, self.head = nn.Embedding(90, 3), nn.Linear(5, 1)

        def forward(self, x):
            return self.head(torch.cat([self.kinds(x[:, 0].long()), x[:, 1:]], 1))

    torch.manual_seed(0)
    model, x = Lookup(), torch.cat([torch.randint(90, (64, 1)), torch.randn(64, 2)], 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    handle = attach(model, optimizer=optimizer)
    model(x).sum().backward()
    optimizer.step()
    assert facts(handle, "input_size")[0] == pytest.approx(float(x[:, 1:].square().mean().sqrt()), rel=1e-4)


@pytest.mark.parametrize(
    "values", [[3.0, -4.0], [0.0, 0.0], [inf, 2.0], [nan, 2.0], [1e25, 0.0], [1e-25, 0.0]]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_size_and_limits_of_an_input_are_those_of_its_finite_values(attach, values, dtype):
    model = nn.Linear(2, 1).to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    handle, x = attach(model, optimizer=optimizer), torch.tensor([values, values], dtype=dtype)
    model(x).sum().backward()
    optimizer.step()
    finite = [one for one in x[0].tolist() if isfinite(one)]
    size = (sum(one * one for one in finite) / len(finite)) ** 0.5
    assert facts(handle, "input_size")[0] == pytest.approx(size, rel=1e-5, abs=0.0)
    assert [facts(handle, "input_min")[0], facts(handle, "input_max")[0]] == [min(finite), max(finite)]


def test_a_time_that_a_model_is_given_is_not_the_input_to_describe(attach):
    """A solver of differential equations calls ``model(t, y)``."""

    class Field(nn.Linear):
        def forward(self, t, y):
            return super().forward(y) * t

    model, y = Field(2, 2), torch.tensor([[1.0, -3.0]])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    handle = attach(model, optimizer=optimizer)
    model(torch.tensor(0.5), y).sum().backward()
    optimizer.step()
    assert [facts(handle, "input_min")[0], facts(handle, "input_max")[0]] == [-3.0, 1.0]


def test_replaced_weights_are_named_and_copies_are_not(attach, net, sgd):
    handle = attach(net, optimizer=sgd, save_every=100)

    def touch(step):
        if step == 5:
            net.load_state_dict(net.state_dict())
        if step == 9:
            net[4].reset_parameters()

    train(net, sgd, 14, before=touch)
    assert list(facts(handle, "replaced/4.weight")) == [9, 10]
    assert facts(handle, "replaced/0.weight") == {}


def test_replaced_weights_are_named_though_another_player_steps_after(attach):
    torch.manual_seed(0)
    players = nn.ModuleList([model(), model()])
    optimizers = [torch.optim.Adam(one.parameters(), 1e-2) for one in players]
    handle = attach(players, optimizer=optimizers)
    for step in range(14):
        if step == 9:
            players[0][4].reset_parameters()
        for place, optimizer in enumerate(optimizers):
            optimizer.zero_grad()
            players[place](batch(step)[0]).square().mean().backward()
            optimizer.step()
    assert facts(handle, "replaced/0.4.weight").get(9, 0.0) > 0.5


def test_small_weight_that_is_replaced_is_named(attach, net, sgd):
    handle = attach(net, optimizer=sgd, save_every=100)
    train(net, sgd, 12, before=lambda step: net[5].reset_parameters() if step == 9 else None)
    assert list(facts(handle, "replaced/5.weight")) == [9, 10]


@pytest.mark.parametrize(("kept_at", "found"), [(0, [19, 20]), (4, [])])
def test_weights_set_back_to_their_beginning_are_named_and_an_own_checkpoint_is_not(
    attach, net, sgd, kept_at, found
):
    handle = attach(net, optimizer=sgd, save_every=100)
    kept = {}

    def touch(step):
        if step == kept_at:
            kept.update({name: value.clone() for name, value in net.state_dict().items()})
        if step == 19:
            net.load_state_dict(kept)

    train(net, sgd, 22, before=touch)
    assert list(facts(handle, "set_back/4.weight")) == found
    assert facts(handle, "replaced/4.weight") == {}


@pytest.mark.parametrize(
    ("zero", "set_to_none", "stale"), [(True, True, 0), (True, False, 0), (False, True, 11)]
)
def test_sparse_gradients_that_are_not_reset_are_stale(attach, zero, set_to_none, stale):
    net = nn.Sequential(nn.Embedding(20, 4, sparse=True))
    optimizer = torch.optim.SparseAdam(net.parameters(), 1e-2)
    handle = attach(net, optimizer=optimizer)
    for step in range(12):
        rows = torch.randint(0, 20, (6,), generator=torch.Generator().manual_seed(step))
        if zero:
            optimizer.zero_grad(set_to_none=set_to_none)
        net(rows).square().sum().backward()
        optimizer.step()
    assert max(facts(handle, "stale_gradients").values()) == stale


@pytest.mark.parametrize("stepped", [True, False])
def test_scheduler_steps_are_counted(attach, net, sgd, stepped):
    handle = attach(net, optimizer=sgd)
    schedule = torch.optim.lr_scheduler.StepLR(sgd, 100)
    train(net, sgd, 8, before=lambda step: schedule.step() if stepped and step else None)
    assert facts(handle, "scheduler_steps")[7] == (7 if stepped else 0)


def test_the_scheduler_of_an_averaging_to_come_is_not_missed(attach, net, sgd):
    handle = attach(net, optimizer=sgd)
    schedule = torch.optim.swa_utils.SWALR(sgd, swa_lr=0.05)
    train(net, sgd, 8)
    assert facts(handle, "scheduler_steps") == {}
    del schedule


def test_same_batch_has_the_same_digest(attach, net, sgd):
    handle = attach(net, optimizer=sgd)
    x, y = batch(0)
    for step in range(4):
        sgd.zero_grad()
        F.cross_entropy(net(x if step < 2 else batch(step)[0]), y).backward()
        sgd.step()
    found = facts(handle, "batch")
    assert found[0] == found[1] != found[2] != found[3]


def test_what_one_model_computes_for_another_is_no_data(attach):
    """The same batch is seen to be the same, though the weights it passed through have changed since."""
    maker, judge = nn.Linear(3, 3), nn.Linear(3, 1)
    optimizer = torch.optim.SGD([*maker.parameters(), *judge.parameters()], lr=0.1)
    handle = attach({"maker": maker, "judge": judge}, optimizer=optimizer)
    x, other = torch.randn(8, 3), torch.randn(8, 3)
    for step in range(4):
        optimizer.zero_grad()
        given = x if step != 2 else other
        (judge(maker(given)) + judge(given)).square().mean().backward()
        optimizer.step()
    found = facts(handle, "batch")
    assert found[0] == found[1] == found[3] != found[2]


def test_features_that_were_computed_in_inference_mode_are_a_batch(attach):
    """They have no version that tells whether they were changed."""
    with torch.inference_mode():
        x = torch.randn(8, 3)
    net = nn.Sequential(nn.Linear(3, 3).requires_grad_(False), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(net[1].parameters(), lr=0.1)
    handle = attach(net, optimizer=optimizer)
    for _ in range(2):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    found = facts(handle, "batch")
    assert found[0] == found[1]
    assert not handle.problems


def test_a_batch_that_is_changed_where_it_is_between_two_forwards_counts_twice(attach, net, sgd):
    handle = attach(net, optimizer=sgd)
    held, (x, y) = torch.empty(16, 8), batch(0)
    for step in range(3):
        sgd.zero_grad()
        for part in (x, batch(step + 1)[0]):
            F.cross_entropy(net(held.copy_(part)), y).backward()
        sgd.step()
    assert len(set(facts(handle, "batch").values())) == 3


@pytest.mark.parametrize("shape", [(0, 3), (), (7,), (300, 3, 20, 20), (2, 400_000)])
def test_digest_takes_any_shape_and_sees_a_change(shape):
    values = torch.randn(shape)
    assert digest(values) == digest(values.clone())
    if values.numel():
        assert digest(values) != digest(values + 1)
    assert digest(values.bfloat16()) == digest(values.bfloat16())


def test_initial_values_of_parameters_and_buffers_are_recorded_once(attach, net, sgd):
    with torch.no_grad():
        net[1].running_var[0] = 1e20
    handle = attach(net, optimizer=sgd)
    train(net, sgd, 3)
    handle.detach()
    run = open_run(handle.run_path)
    assert run.steps(tensor="check/initial/1.running_var").tolist() == [0]
    assert run.tensor("check/initial/1.running_var").stats(0).max[0] == pytest.approx(1e20)


def test_predictions_and_labels_of_a_loss_are_described(attach, net, sgd):
    loss = nn.CrossEntropyLoss()
    handle = attach(net, optimizer=sgd, loss=loss)
    train(net, sgd, 2, loss=lambda out, y: loss(out.softmax(1), y))
    assert facts(handle, "loss/CrossEntropyLoss/row_sum_max")[1] == pytest.approx(1)
    assert facts(handle, "loss/CrossEntropyLoss/classes")[1] == 3
    assert 0 <= facts(handle, "loss/CrossEntropyLoss/hits")[1] <= 1


def test_shapes_that_differ_are_told(attach):
    net = nn.Linear(8, 1)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    loss = nn.MSELoss()
    handle = attach(net, optimizer=sgd, loss=loss)
    with pytest.warns(UserWarning, match="target size"):
        loss(net(batch(0)[0]), torch.randn(16)).backward()
    sgd.step()
    assert facts(handle, "loss/MSELoss/broadcast") == {0: 1.0}


def test_steps_that_a_scaler_leaves_out_are_counted_in_a_row(attach, net, sgd):
    handle = attach(net, optimizer=sgd)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for step in range(10):
        x, y = batch(step)
        sgd.zero_grad()
        loss = F.cross_entropy(net(x), y)
        if 2 <= step < 8:
            loss = loss * np.inf
        scaler.scale(loss).backward()
        scaler.step(sgd)
        scaler.update()
    handle.detach()
    row = open_run(handle.run_path).tensor("check/skipped_in_a_row")
    assert row.stats(2).max[0] == 6


def test_checks_can_be_switched_off(attach, net, sgd):
    handle = attach(net, optimizer=sgd, config={"checks": False})
    train(net, sgd, 3)
    handle.detach()
    assert open_run(handle.run_path).tensor_names(kind="check") == []


def test_checks_are_hidden_unless_asked_for(attach, net, sgd):
    handle = attach(net, optimizer=sgd)
    train(net, sgd, 3)
    handle.detach()
    assert not any(name.startswith("check/") for name in open_run(handle.run_path).tensor_names())


def test_hooks_on_parameters_are_gone_after_detach(attach, net, sgd):
    handle = attach(net, optimizer=sgd)
    train(net, sgd, 3)
    assert any(one._post_accumulate_grad_hooks for one in net.parameters())
    handle.detach()
    assert not any(one._post_accumulate_grad_hooks for one in net.parameters())


def test_sparse_inputs_turn_no_check_off(attach):
    class Features(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8, 3))

        def forward(self, x):
            return torch.sparse.mm(x, self.weight)

    net = Features()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with attach(net, optimizer=optimizer, strict=False) as handle:
        for step in range(3):
            x, y = batch(step)
            optimizer.zero_grad()
            F.cross_entropy(net(x.relu().to_sparse()), y).backward()
            optimizer.step()
    assert handle.problems == []
