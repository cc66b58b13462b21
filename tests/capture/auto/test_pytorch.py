"""Models, losses and optimizers of PyTorch are found as they are first used."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

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
from tdbg_lab.capture.auto.living import Living


def test_plain_training_is_captured_from_its_first_step(watched):
    (run,) = watched(train)
    assert run.status == "finished"
    everywhere(run, "activation/0", "0.weight", "gradient/2.bias", "loss/CrossEntropyLoss", "optimizer/lr/0")
    assert run.scalars("loss/CrossEntropyLoss").steps.tolist() == [0, 1, 2, 3]


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


def test_both_models_of_a_gan_are_one_run_under_their_names(watched):
    def program():
        generator, critic = nn.Linear(2, 4), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        judges = torch.optim.Adam(critic.parameters())
        makes = torch.optim.Adam(generator.parameters())
        for _ in range(4):
            judges.zero_grad()
            fake = generator(torch.randn(6, 2))
            told = functional.softplus(critic(fake.detach())).mean()
            told.backward()
            known = functional.softplus(-critic(torch.randn(6, 4))).mean()
            known.backward()
            judges.step()
            makes.zero_grad()
            made = functional.softplus(-critic(fake)).mean()
            made.backward()
            makes.step()
            losses.append((told.item() + known.item(), made.item()))

    losses = []
    (run,) = watched(program)
    everywhere(run, "activation/generator", "activation/critic.1", "gradient/generator.weight")
    everywhere(run, "optimizer/lr/makes.0", "optimizer/lr/judges.0")
    assert run.tensor_names(kind="loss") == ["loss/objective/judges", "loss/objective/makes"]
    for player, wanted in zip(("judges", "makes"), zip(*losses, strict=True), strict=True):
        assert run.scalars(f"loss/objective/{player}").values.tolist() == pytest.approx(wanted)


class Player(nn.Module):
    """A network that keeps its own optimizer, as those of agents do."""

    def __init__(self, inputs):
        super().__init__()
        self.body = nn.Linear(inputs, 1)
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.01)

    def forward(self, x):
        return self.body(x)

    def act(self, x):
        return torch.tanh(self(x))


class Learner:
    """It moves its critic and its actor in turn."""

    def __init__(self):
        self.actor, self.critic = Player(3), Player(4)

    def learn(self, n=4):
        for _ in range(n):
            state = torch.randn(6, 3)
            action = self.actor.act(state)
            told = self.critic(torch.cat([state, action.detach()], dim=1))
            self.critic.optimizer.zero_grad()
            functional.mse_loss(told, state.sum(dim=1, keepdim=True)).backward()
            self.critic.optimizer.step()
            self.actor.optimizer.zero_grad()
            (-self.critic(torch.cat([state, action], dim=1)).mean()).backward()
            self.actor.optimizer.step()


def test_optimizers_that_networks_of_an_agent_keep_are_named_after_them(watched):
    (run,) = watched(lambda: Learner().learn())
    losses = {name: run.scalars(name).steps.tolist() for name in run.tensor_names(kind="loss")}
    assert losses == {"loss/objective/actor": [0, 1, 2, 3], "loss/objective/critic": [0, 1, 2, 3]}
    everywhere(run, "activation/critic.body", "gradient/actor.body.weight", "optimizer/lr/critic.0")


def test_player_that_steps_more_often_than_the_other_has_all_its_losses(watched):
    def program():
        generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
        judges = torch.optim.Adam(critic.parameters())
        makes = torch.optim.Adam(generator.parameters())
        for turn in range(9):
            critic(generator(torch.randn(6, 2)).detach()).mean().backward()
            judges.step()
            judges.zero_grad()
            if turn % 3 == 2:
                critic(generator(torch.randn(6, 2))).mean().neg().backward()
                makes.step()

    (run,) = watched(program)
    assert run.tensor_names(kind="loss") == ["loss/objective/judges", "loss/objective/makes"]
    assert [len(run.scalars(f"loss/objective/{one}").values) for one in ("judges", "makes")] == [9, 3]


def test_optimizers_that_step_on_one_loss_share_it(watched):
    losses = []

    def program():
        encoder, decoder = nn.Linear(4, 3), nn.Linear(3, 1)
        first, second = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (encoder, decoder))
        for _ in range(4):
            for one in (first, second):
                one.zero_grad()
            loss = decoder(encoder(torch.randn(6, 4)).tanh()).square().mean()
            loss.backward()
            losses.append(loss.item())
            first.step()
            second.step()

    (run,) = watched(program)
    assert run.tensor_names(kind="loss") == ["loss/objective"]
    assert run.scalars("loss/objective").values.tolist() == pytest.approx(losses)


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


def test_encoder_and_decoder_of_one_optimizer_are_one_run(watched):
    def program():
        encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
        optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
        criterion = nn.MSELoss()
        for _ in range(4):
            x, _ = batch()
            optimizer.zero_grad()
            criterion(decoder(encoder(x)), x).backward()
            optimizer.step()

    (run,) = watched(program)
    everywhere(run, "activation/encoder", "activation/decoder", "decoder.weight", "loss/MSELoss")


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


class Halves(nn.Module):
    """Two models and what they are trained by, as a variational autoencoder of Pyro holds them."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder, self.unused = nn.Linear(4, 2), nn.Linear(2, 4), nn.Linear(2, 2)

    def loss(self, x):
        return (self.decoder(self.encoder(x)) - x).square().mean()


def test_parts_whose_optimizers_are_made_at_the_first_step_are_one_run(watched):
    """Pyro makes one for each parameter, when it has a gradient for the first time."""

    def program():
        halves, optimizers = Halves(), {}
        for _ in range(4):
            halves.loss(batch()[0]).backward()
            for one in [*halves.encoder.parameters(), *halves.decoder.parameters()]:
                if one not in optimizers:
                    optimizers[one] = torch.optim.Adam([one])
                optimizers[one].step()
                one.grad = None

    (run,) = watched(program)
    everywhere(run, "encoder.weight", "decoder.weight", "gradient/encoder.weight", "gradient/decoder.bias")
    assert run.scalars("loss/objective").steps.tolist() == [0, 1, 2, 3]
    assert not run.tensor_names(regex="unused")


class Players:
    """An agent that holds its models and optimizers."""

    def __init__(self):
        self.actor, self.critic = nn.Linear(4, 2), nn.Linear(4, 1)
        self.actor_optimizer = torch.optim.SGD(self.actor.parameters(), lr=0.1)
        self.critic_optimizer = torch.optim.SGD(self.critic.parameters(), lr=0.1)


def test_models_that_an_object_holds_which_a_function_is_given_are_one_run(watched):
    def learn(agent):
        for _ in range(4):
            agent.critic_optimizer.zero_grad()
            agent.critic(batch()[0]).square().mean().backward()
            agent.critic_optimizer.step()
            agent.actor_optimizer.zero_grad()
            agent.actor(batch()[0]).square().mean().backward()
            agent.actor_optimizer.step()

    (run,) = watched(lambda: learn(Players()))
    names = run.tensor_names(kind="loss")
    assert names == ["loss/objective/critic_optimizer", "loss/objective/actor_optimizer"]
    everywhere(run, "actor.weight", "critic.weight", "gradient/actor.bias", *names)


class Stepper:
    """What a library puts around an optimizer."""

    def __init__(self, parameters):
        self._inner = torch.optim.SGD(parameters, lr=0.1)

    def minimise(self, loss):
        self._inner.zero_grad()
        loss.backward()
        self._inner.step()


class Parts:
    def __init__(self):
        self.actor, self.critic = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        self.actor_optimizer = Stepper(self.actor.parameters())
        self.critic_optimizer = Stepper(self.critic.parameters())


class LibraryAgent:
    """Keeps its models and optimizers in an object of its own, and lets the critic evaluate for the actor."""

    def __init__(self):
        self._parts = Parts()
        self.losses = []

    def update(self, x):
        parts = self._parts
        parts.critic.train()
        critic = (parts.critic(parts.actor(x).detach()) - 1).square().mean()
        parts.critic_optimizer.minimise(critic)
        parts.critic.eval()
        actor = -parts.critic(parts.actor(x)).mean()
        parts.actor_optimizer.minimise(actor)
        self.losses.append((critic.item(), actor.item()))


def test_models_and_optimizers_in_a_part_of_an_agent_are_one_run(watched):
    torch.manual_seed(0)
    agents = [LibraryAgent(), LibraryAgent()]

    def program():
        for agent in agents:
            for _ in range(4):
                agent.update(batch()[0])

    runs = watched(program)
    assert len(runs) == 2
    for run, agent in zip(runs, agents, strict=True):
        everywhere(run, "actor.weight", "critic.0.weight", "gradient/actor.bias", "gradient/critic.0.bias")
        for name, wanted in zip(("critic", "actor"), zip(*agent.losses, strict=True), strict=True):
            found = run.scalars(f"loss/objective/{name}_optimizer").values
            assert found.tolist() == pytest.approx(wanted)


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


def test_copies_of_a_model_that_does_not_go_on_are_trainings_of_their_own(watched):
    def program():
        base = train()
        for _ in range(3):
            fold = copy.deepcopy(base)
            optimizer = torch.optim.SGD(fold.parameters(), lr=0.1)
            steps(fold, optimizer, nn.CrossEntropyLoss())

    assert len(watched(program)) == 4
