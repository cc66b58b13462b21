"""Models, losses and optimizers of PyTorch are found as they are first used."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from small_trainings import batch, everywhere, net, steps, train
from torch import nn
from torch.nn import functional
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers

import tdbg_lab as tdbg
from tdbg_lab.capture import open_handles
from tdbg_lab.capture.auto import AutoWatch


def test_plain_training_is_captured_from_its_first_step(watched):
    (run,) = watched(train)
    assert run.status == "finished"
    everywhere(run, "activation/0", "0.weight", "gradient/2.bias", "loss/CrossEntropyLoss", "optimizer/lr/0")
    assert run.scalars("loss/CrossEntropyLoss").steps.tolist() == [0, 1, 2, 3]


@pytest.mark.skipif(not torch.distributed.is_available(), reason="needs torch.distributed")
def test_an_optimizer_that_shares_its_state_among_ranks_is_one(watched, tmp_path):
    """`ZeroRedundancyOptimizer` has one inside that makes the step."""

    def program():
        from torch.distributed.optim import ZeroRedundancyOptimizer

        model = net()
        optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.SGD, lr=0.1)
        steps(model, optimizer, nn.CrossEntropyLoss())

    where = {"init_method": f"file://{tmp_path}/meet", "rank": 0, "world_size": 1}
    torch.distributed.init_process_group("gloo", **where)
    try:
        (run,) = watched(program)
    finally:
        torch.distributed.destroy_process_group()
    everywhere(run, "0.weight", "gradient/2.bias", "optimizer/lr/0", "optimizer/grad_norm")
    assert run.scalars("loss/CrossEntropyLoss").steps.tolist() == [0, 1, 2, 3]


def test_weights_are_bitwise_the_same_with_and_without(watched):
    plain, kept = train(), []
    watched(lambda: kept.append(train()))
    pairs = zip(plain.parameters(), kept[0].parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_nothing_is_left_in_pytorch_or_on_the_model_at_the_end(watched):
    backward, kept = torch.autograd.backward, []

    def program():
        kept.append((model := net(), criterion := nn.CrossEntropyLoss()))
        steps(model, torch.optim.SGD(model.parameters(), lr=0.1), criterion)

    watched(program)
    assert not modules._global_forward_pre_hooks
    assert not optimizers._global_optimizer_pre_hooks
    assert torch.autograd.backward is backward
    for one in kept[0]:
        assert not any(part._forward_hooks or part._forward_pre_hooks for part in one.modules())


def test_training_by_hand_without_an_optimizer_is_captured(watched):
    def program():
        model = net()
        for _ in range(6):
            x, y = batch()
            functional.cross_entropy(model(x), y).backward()
            with torch.no_grad():
                for value in model.parameters():
                    value.sub_(0.1 * value.grad)
                    value.grad.zero_()

    (run,) = watched(program)
    assert run.last_step >= 3
    assert "activation/0" in run.tensor_names()


def test_training_by_hand_that_resets_gradients_first_is_captured_with_them(watched):
    norms, whole = [], []

    def program():
        model = net()
        for _ in range(8):
            x, y = batch()
            model.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            norms.append(model[0].weight.grad.norm().item())
            whole.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1).item())
            for value in model.parameters():
                value.data.add_(value.grad, alpha=-0.1)

    (run,) = watched(program)
    for name in ("0.weight", "gradient/0.weight", "optimizer/grad_norm", "activation/0", "loss/objective"):
        assert len(run.tensor(name).steps()) >= 5, name
    recorded = run.tensor("gradient/0.weight").history(["l2"])["l2"].tolist()
    assert recorded == pytest.approx(norms[-len(recorded) :])
    assert run.scalars("optimizer/grad_norm").values.tolist() == pytest.approx(whole[-len(recorded) :])


def test_program_that_attaches_itself_is_left_to_it(watched):
    def program():
        model, criterion = net(), nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with tdbg.attach(model, optimizer=optimizer, loss=criterion, store="runs/own", profiler=False):
            steps(model, optimizer, criterion)

    assert watched(program) == []
    assert tdbg.open_run("runs/own").tensor_names(kind="loss") == ["loss/CrossEntropyLoss"]


def test_program_that_attaches_itself_is_told_so_at_the_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    watch = AutoWatch({"store": "runs/auto"})
    watch.start()
    assert watch.summary().startswith("nothing to attach to")
    with tdbg.attach(net(), store="runs/own", profiler=False):
        pass
    watch.stop()
    assert watch.summary() == "left to the program, which attaches by itself."


def test_exception_of_the_program_is_in_the_run(watched):
    def program():
        train()
        kept = net()
        steps(kept, torch.optim.SGD(kept.parameters(), lr=0.1), nn.CrossEntropyLoss())
        raise ZeroDivisionError("later")

    with pytest.raises(ZeroDivisionError):
        watched(program)
    run = tdbg.open_run("runs/auto-2")
    assert (run.status, run.info.error) == ("failed", "ZeroDivisionError: later")


def test_models_and_losses_can_be_copied_and_pickled_while_watched(watched):
    def program():
        model, criterion = net(), nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        steps(model, optimizer, criterion, 2)
        for one in (model, criterion):
            copy.deepcopy(one)
            pickle.loads(pickle.dumps(one))
        average = torch.optim.swa_utils.AveragedModel(model)
        average(batch()[0])
        steps(model, optimizer, criterion, 2)

    (run,) = watched(program)
    everywhere(run, "activation/0", "loss/CrossEntropyLoss")


def test_own_failure_ends_the_search_and_not_the_program(watched, caplog, tmp_path):
    (tmp_path / "runs").write_text("in the way")
    assert watched(train, strict=False) == []
    assert "no further training is looked for; the program goes on" in caplog.text
    assert not modules._global_forward_pre_hooks
    assert open_handles() == []


def test_switch_turns_everything_off(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TDBG_DISABLED", "1")
    model, criterion = net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tdbg.attach(model, optimizer=optimizer, loss=criterion, save_every=0, rules="default") as handle:
        steps(model, optimizer, criterion)
        handle.record("latent", torch.zeros(2))
        handle.log(accuracy=1.0)
        with handle.mode("eval"), handle.phase("mine"):
            handle.log({"val": 1.0})
        handle.advance()
    assert not handle.attached
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert list(tmp_path.iterdir()) == []


def test_model_that_is_evaluated_frozen_before_it_is_trained_is_found_at_its_first_step(watched):
    def program():
        model = net()
        model.requires_grad_(requires_grad=False)
        for _ in range(2):
            model(batch()[0])
        model.requires_grad_(requires_grad=True)
        steps(model, torch.optim.SGD(model.parameters(), lr=0.1), nn.CrossEntropyLoss())

    (run,) = watched(program)
    everywhere(run, "activation/0", "loss/CrossEntropyLoss", "gradient/0.weight")
