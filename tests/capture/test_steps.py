"""Steps, micro-steps and modes: what counts as what."""

from __future__ import annotations

import gc
import warnings

import pytest
import torch
from capture_training import Net, batch, train
from torch import nn

from tdbg_lab.records import Kind, Mode


class Around(torch.optim.Optimizer):
    """Moves weights twice a step, as sharpness-aware minimisation does, and steps only within it."""

    def __init__(self, inner, *, steps_itself):
        super().__init__(inner.param_groups, {})
        self.inner, self.param_groups = inner, inner.param_groups
        self.steps_itself = steps_itself

    def step(self, closure=None):
        return self.inner.step(closure)

    def finish(self):
        (self if self.steps_itself else self.inner).step()


def test_gradient_accumulation_is_one_step_of_several_micro_steps(attach):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, loss=(criterion := nn.MSELoss()))
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        for _ in range(4):
            loss = criterion(model(torch.randn(5, 3)), torch.zeros(5, 1))
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
    handle.detach()
    run = handle.run
    assert run.steps().tolist() == [0, 1]
    assert run.tensor("activation/Linear").stats(1).count[0] == 4 * 5
    assert run.tensor("gradient/weight").stats(1).count[0] == 3
    assert run.scalars("loss/MSELoss").values.tolist() == pytest.approx(
        [sum(losses[:4]) / 4, sum(losses[4:]) / 4]
    )


def test_eval_forwards_carry_the_step_they_happen_at(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, save_every=3)
    for _ in range(3):
        model.train()
        train(model, optimizer, 2)
        model.eval()
        for seed in range(4):
            model(batch(seed)[0])
        handle.log(val=1.0)
    with handle.mode("predict"):
        model(batch()[0])
    handle.detach()
    run = handle.run
    assert run.steps(mode="train", tensor="activation/conv").tolist() == [0, 3]
    assert run.steps(mode="eval", tensor="activation/conv").tolist() == [2, 6]  # three steps apart, or more
    assert run.steps(mode="eval", tensor="val").tolist() == [2, 4, 6]
    assert run.steps(mode="predict").tolist() == [6]
    assert run.tensor("activation/conv").stats(2, mode="eval").count[0] == 2 * 8 * 4 * 36  # batches 0 and 3
    assert run.modes() == [Mode.TRAIN, Mode.EVAL, Mode.PREDICT]


def test_numbers_logged_after_the_step_belong_to_it(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    for step in range(3):
        train(model, optimizer, 1)
        handle.log(number=step)
    handle.detach()
    series = handle.run.scalars("number")
    assert series.steps.tolist() == series.values.tolist() == [0, 1, 2]


def test_schedules_decide_which_steps_are_saved(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(
        model,
        optimizer=optimizer,
        save_every=4,
        collections={
            "weights": {"save": {"every": 2, "start": 3, "end": 8}},
            "gradients": {"save": [1, 5]},
            "biases": False,
            "activations": {"modes": {"train": False}},
        },
    )
    train(model, optimizer, 10)
    model.eval()
    model(batch()[0])
    handle.detach()
    run = handle.run
    assert run.steps(tensor="conv.weight").tolist() == [3, 5, 7]
    assert run.steps(tensor="gradient/conv.weight").tolist() == [1, 5]
    assert run.steps(tensor="optimizer/lr/0").tolist() == [0, 4, 8]
    assert run.tensor_names(kind="bias") == []
    assert run.tensor_names(kind="activation", mode="train") == []
    assert run.tensor_names(kind="activation", mode="eval")


def test_accumulated_batches_are_one_step_of_an_optimizer_that_was_not_given(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model) as handle:
        for step in range(3):
            for micro in range(4):
                x, y = batch(4 * step + micro)
                torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert handle.step == 3
    assert handle.run.steps(tensor="gradient/conv.weight").tolist() == [0, 1, 2]


def test_gradients_of_a_step_are_added_up_where_the_program_froze_its_objects(attach, monkeypatch):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gc.freeze()
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 10**6)
    with attach(model) as handle:
        for step in range(3):
            for micro in range(4):
                model(batch(4 * step + micro)[0]).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert handle.step == 3


class Cell(nn.Module):
    """Is called once for each part of a sequence."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 4)

    def forward(self, x, hidden):
        return torch.tanh(self.body(torch.cat((x, hidden), 1)))


def walk(cell, criterion, seed, length):
    """The loss of one sequence."""
    generator, hidden = torch.Generator().manual_seed(seed), torch.zeros(3, 4)
    for part in torch.randn(length, 3, 2, generator=generator):
        hidden = cell(part, hidden)
    return criterion(hidden, torch.zeros(3, 4))


@pytest.mark.parametrize("moved", [True, False])
def test_without_an_optimizer_a_backward_ends_a_step_of_several_forwards(attach, moved):
    """As of a recurrent cell whose parameters the program moves itself."""
    torch.manual_seed(0)
    cell, criterion = Cell(), nn.MSELoss()
    losses, evaluated = [], []
    with attach(cell, loss=criterion) as handle:
        for seed in range(4):
            loss = walk(cell, criterion, seed, 3 + seed)
            cell.zero_grad()
            loss.backward()
            for parameter in cell.parameters():
                parameter.data.add_(parameter.grad, alpha=-0.1 * moved)
            losses.append(loss.item())
            with torch.no_grad():
                evaluated.append(walk(cell, criterion, 50, 3).item())
    assert handle.run.scalars("loss/MSELoss", mode="train").values.tolist() == pytest.approx(losses)
    assert handle.run.scalars("loss/MSELoss", mode="eval").values.tolist() == pytest.approx(evaluated)
    assert handle.run.steps(mode="train").tolist() == [0, 1, 2, 3]


def test_optimizer_that_never_steps_does_not_hold_up_the_steps(attach, monkeypatch):
    monkeypatch.setattr("tdbg_lab.capture.pytorch.by_hand._LONG", 3)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model) as handle:
        for step in range(8):
            model(batch(step)[0])
    assert optimizer.param_groups
    assert handle.step == 8 - 3


def test_optimizer_that_moves_parameters_within_the_backward_holds_up_two_batches(attach):
    """As LOMO does: it is there, and its step is never called."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for parameter in model.parameters():
        parameter.register_hook(lambda grad, one=parameter: one.data.add_(grad, alpha=-0.1))
    with attach(model) as handle:
        for seed in range(8):
            model(batch(seed)[0]).sum().backward()
    assert optimizer.param_groups
    assert handle.run.steps(tensor="loss/objective").tolist() == list(range(7))


def test_without_an_optimizer_a_train_forward_is_a_step(attach):
    model = Net()
    handle = attach(model)
    for seed in range(3):
        model(batch(seed)[0]).sum().backward()
    assert handle.step == 2  # the third is open until the next forward
    handle.detach()
    for name in ("activation/conv", "conv.weight", "loss/objective"):
        assert handle.run.steps(tensor=name).tolist() == [0, 1, 2], name
    # With the second forward it is known that no optimizer will step.
    assert handle.run.steps(tensor="gradient/conv.weight").tolist() == [1, 2]


def test_optimizer_that_was_not_given_is_found(attach):
    model = Net()
    other = nn.Linear(2, 2)
    handle = attach(model)
    stranger = torch.optim.SGD(other.parameters(), lr=0.1)
    other(torch.ones(1, 2)).sum().backward()
    stranger.step()
    assert handle.step == 0
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 3)
    assert handle.step == 3
    handle.detach()
    assert handle.run.steps(tensor="gradient/conv.weight").tolist() == [0, 1, 2]


def test_optimizer_with_a_closure_is_one_step_a_call(attach):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    handle = attach(model, optimizer=optimizer)
    x = torch.randn(8, 3)

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    assert handle.step == 3
    handle.detach()
    assert handle.run.steps(tensor="gradient/weight").tolist() == [0, 1, 2]
    assert handle.run.steps(tensor="activation/Linear").tolist() == [0, 1, 2]
    assert not handle.problems


def test_model_that_raises_leaves_capture_intact(attach):
    class Moody(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            y = self.linear(x)
            if x.shape[0] == 3:
                raise ValueError("no")
            return y

    model = Moody()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    for n in (2, 3, 2):
        try:
            loss = model(torch.ones(n, 2)).sum()
        except ValueError:
            continue
        loss.backward()
        optimizer.step()
    assert handle.step == 2
    handle.detach()
    assert handle.run.steps(tensor="activation/linear").tolist() == [0, 1]
    assert not handle.problems


def test_optimizers_that_are_met_one_after_the_other_share_their_steps(attach):
    """One for each parameter, as programs have that make them when they are first needed."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizers = [torch.optim.SGD([one], lr=0.01 * (i + 1)) for i, one in enumerate(model.parameters())]
    handle = attach(model)
    for _ in range(4):
        model.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        for one in optimizers:
            one.step()
    handle.detach()
    run = handle.run
    assert run.steps(tensor="loss/objective").tolist() == [0, 1, 2, 3]
    for i in range(4):
        rates = run.scalars(f"optimizer/lr/{i}.0")
        assert rates.steps.tolist() == [1, 2, 3]
        assert rates.values == pytest.approx(0.01 * (i + 1))
    assert not [name for name in run.tensor_names() if name.endswith("/") or "/." in name]


@pytest.mark.parametrize("steps_itself", [False, True])
@pytest.mark.parametrize("given", [["around"], ["around", "inner"], []])
def test_an_optimizer_around_another_makes_one_step_with_it(attach, steps_itself, given):
    model, criterion = nn.Linear(3, 1), nn.MSELoss()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    around = Around(inner, steps_itself=steps_itself)
    known = {"around": around, "inner": inner}
    handle = attach(model, optimizer={name: known[name] for name in given} or None, loss=criterion)
    for _ in range(4):
        around.zero_grad()
        criterion(model(torch.randn(5, 3)), torch.zeros(5, 1)).backward()
        around.finish()
    handle.detach()
    run = handle.run
    assert run.steps().tolist() == [0, 1, 2, 3]
    for name in ("loss/MSELoss", "activation/Linear", "gradient/weight"):
        assert run.tensor(name).steps().tolist() == [0, 1, 2, 3], name
    assert run.tensor("activation/Linear").stats(0).count.tolist() == [5]
    assert [name for name in run.tensor_names() if name.startswith("optimizer/lr")] == ["optimizer/lr/0"]


def test_model_called_by_its_parts_is_captured(attach):
    model = nn.ModuleDict({"encoder": nn.Linear(3, 2), "decoder": nn.Linear(2, 3)})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    for _ in range(3):
        model["decoder"](model["encoder"](torch.randn(4, 3))).square().mean().backward()
        optimizer.step()
    handle.detach()
    run = handle.run
    assert run.steps(tensor="gradient/encoder.weight").tolist() == [0, 1, 2]
    assert run.steps(tensor="activation/encoder").tolist() == [1, 2]  # known from the first step on


def test_recomputation_in_backward_does_not_count_twice(attach):
    from torch.utils.checkpoint import checkpoint

    class Saving(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return checkpoint(self.linear, x, use_reentrant=False)

    model = Saving()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    handle.detach()
    assert handle.run.tensor_names(kind="activation") == ["activation/linear"]
    assert handle.run.tensor("activation/linear").stats(0).count[0] == 8


def test_gradients_are_read_after_clipping(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer)
    x, y = batch()
    nn.functional.cross_entropy(model(x), y).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    optimizer.step()
    handle.detach()
    assert handle.run.scalars("optimizer/grad_norm_clipped").values[0] == pytest.approx(1e-3, rel=1e-3)
    assert handle.run.scalars("optimizer/grad_norm").values[0] > 1


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("around", [False, True])
def test_steps_a_scaler_leaves_out_are_known_and_do_not_count(attach, fused, around):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=fused)
    if around:
        optimizer, fused = Around(optimizer, steps_itself=True), False  # the scaler is told nothing of it
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    handle = attach(model, optimizer=optimizer)
    for step in range(4):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.ones(2, 4)).mean()
        if step in (0, 2):
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    handle.detach()
    run = handle.run
    assert handle.run.scalars("optimizer/skipped_steps").values.tolist()[-1] == 2
    assert handle.step == (4 if fused else 2)
    seen = run.tensor("gradient/weight").stats(1)
    assert seen.max[0] == pytest.approx(1.0), "gradients are read unscaled"
    assert "step" not in scaler.__dict__
    assert not handle.problems


def test_a_scaler_that_leaves_out_every_step_is_counted_at_the_end(attach):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu")
    handle = attach(model, optimizer=optimizer)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(model(torch.ones(2, 4)).mean() * torch.inf).backward()
        scaler.step(optimizer)
        scaler.update()
    handle.detach()
    assert handle.run.scalars("optimizer/skipped_steps").values.tolist() == [3]


@pytest.mark.parametrize("given", [True, False])
def test_steps_left_out_before_the_first_one_is_made_are_seen_as_they_happen(attach, given):
    original = torch.amp.GradScaler.step
    model = nn.Linear(4, 1)
    optimizer, other = (torch.optim.SGD(one.parameters(), lr=0.01) for one in (model, nn.Linear(4, 1)))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    handle = attach(model, optimizer=optimizer if given else None)
    for step in range(7):
        optimizer.zero_grad()
        scaler.scale(model(torch.ones(2, 4)).mean() * (float("inf") if step < 6 else 1.0)).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        other.param_groups[0]["params"][0].grad = torch.full((1, 4), torch.inf)
        scaler.step(other)
        scaler.update()
    handle.detach()
    run = handle.run
    assert run.stats("check/skipped_in_a_row", "max")["max"].max() == 6
    assert run.stats("check/discarded_gradients", "max")["max"].max() == 0, "that was the scaler's doing"
    assert run.scalars("optimizer/skipped_steps").values[-1] == 6, "those of other models do not count"
    norms = run.scalars("optimizer/grad_norm").values
    assert norms == pytest.approx([5**0.5]), "before clipping, of the gradients that were used"
    assert torch.amp.GradScaler.step is original


def test_autocast_outputs_have_their_own_dtype(attach):
    model = nn.Linear(4, 2)
    handle = attach(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(torch.ones(2, 4))
    handle.detach()
    assert handle.run.tensors(kind="activation")[0].dtype == "bfloat16"


def test_lr_schedulers_do_not_disturb_or_warn(attach):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    handle = attach(model, optimizer=optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            train(model, optimizer, 1)
            scheduler.step()
    handle.detach()
    assert handle.run.scalars("optimizer/lr/0").values.tolist() == pytest.approx([0.1, 0.05, 0.025])


def test_steps_can_be_ended_by_hand(attach):
    handle = attach()
    for value in (1.0, 2.0):
        handle.log(x=value)
        handle.advance()
    handle.detach()
    assert handle.run.scalars("x").steps.tolist() == [0, 1]


def test_what_is_recorded_in_a_mode_without_a_forward_belongs_to_that_mode(attach):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, save_every=10)
    for _ in range(2):
        model(torch.randn(5, 3)).sum().backward()
        optimizer.step()
    with handle.mode("eval"):
        handle.record("latent", torch.ones(4, 2))
        handle.log(accuracy=0.5)
        model(torch.randn(5, 3))
    with handle.mode("eval"):  # a second time at the same step
        handle.log(f1=0.25)
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    handle.detach()
    run = handle.run
    assert run.steps(mode="eval", tensor="latent").tolist() == [2]
    assert run.tensor("latent").value(2, mode="eval").shape == (4, 2)
    assert run.tensor("activation/Linear").stats(2, mode="eval").count[0] == 5
    assert run.scalars("accuracy", mode="eval").values.tolist() == [0.5]
    assert run.scalars("f1", mode="eval").steps.tolist() == [2]
    assert run.steps(mode="train", tensor="weight").tolist() == [0]
    assert handle.step == 3


def test_number_that_an_interrupt_cut_off_takes_no_other_with_it(attach):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    handle = attach(net, optimizer=optimizer, save_every=10**6)
    train(net, optimizer, 20)
    recorder = handle._engine.recorder
    recorder._scalar_keys.append(handle._engine.key("half", Kind.SCALAR)[0])  # its value never came
    train(net, optimizer, 20)
    handle.log(after=1.0)
    handle.detach()
    assert not handle.problems
    assert handle.run.scalars("after").values.tolist() == [1.0]
    assert "half" not in handle.run.tensor_names()
    assert len(handle.run.scalars("loss/objective")) >= 39
