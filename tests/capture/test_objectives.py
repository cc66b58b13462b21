"""The loss of an attached training that no loss module tells: what ``backward`` is called on."""

from __future__ import annotations

import pytest
import torch
from loss_training import LOSS, batch, losses_of, made
from torch import nn
from torch.nn import functional

from tdbg_lab import attach as attach_to
from tdbg_lab import run_rules


def test_loss_by_a_function_is_recorded_at_every_step(attach):
    model, optimizer = made()
    losses = []
    with attach(model, optimizer=optimizer, save_every=3) as handle:
        for _ in range(7):
            x, y = batch()
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            losses.append(loss.item())
            optimizer.step()
    assert handle.run.tensor_names(kind="loss") == [LOSS]
    assert losses_of(handle.run) == pytest.approx(losses)
    assert handle.run.scalars(LOSS).steps.tolist() == list(range(7))
    assert "check/loss/objective/hits" in handle.run.tensor_names(kind="check")


def test_loss_module_that_was_not_given_is_recorded_too(attach):
    model, optimizer = made()
    criterion, losses = nn.CrossEntropyLoss(), []
    with attach(model, optimizer=optimizer) as handle:
        for _ in range(3):
            x, y = batch()
            loss = criterion(model(x), y)
            loss.backward()
            losses.append(loss.item())
            optimizer.step()
    assert losses_of(handle.run) == pytest.approx(losses)


@pytest.mark.parametrize("how", ["given", "logged", "logged late"])
def test_loss_that_is_seen_otherwise_is_recorded_once(attach, how):
    model, optimizer = made()
    criterion = nn.CrossEntropyLoss()
    with attach(model, optimizer=optimizer, loss=criterion if how == "given" else None) as handle:
        for _ in range(4):
            x, y = batch()
            loss = criterion(model(x), y)
            if how == "logged":
                handle.log_loss("mine", loss)
            loss.backward()
            optimizer.step()
            if how == "logged late":
                handle.log_loss("mine", loss)
    name = "loss/CrossEntropyLoss" if how == "given" else "loss/mine"
    assert len(losses_of(handle.run, name)) == 4
    others = set(handle.run.tensor_names(kind="loss")) - {name}
    # Before the first number is logged nobody knows that some will be.
    assert sum(len(losses_of(handle.run, other)) for other in others) == (how == "logged late")


@pytest.mark.parametrize("divided", [False, True])
def test_loss_is_recorded_as_it_was_before_a_scaler_multiplied_it(attach, divided):
    model, optimizer = made()
    scaler, losses = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2), []
    with attach(model, optimizer=optimizer) as handle:
        for _ in range(6):
            x, y = batch()
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            scaled = scaler.scale(loss)
            (scaled / 2 if divided else scaled).backward()
            losses.append(loss.item() / (2 if divided else 1))
            scaler.step(optimizer)
            scaler.update()
    assert scaler.get_scale() > 1024  # the factor is another one at the end
    assert losses_of(handle.run) == pytest.approx(losses)


def test_players_of_a_game_have_a_loss_each(attach):
    generator, critic = nn.Linear(2, 4), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    makes = torch.optim.Adam(generator.parameters())
    judges = torch.optim.Adam(critic.parameters())
    criterion, losses = nn.BCEWithLogitsLoss(), []
    models = {"generator": generator, "critic": critic}
    with attach(models, optimizer={"makes": makes, "judges": judges}, loss=criterion) as handle:
        for _ in range(4):
            judges.zero_grad()
            fake = generator(torch.randn(6, 2))
            told = criterion(critic(fake.detach()), torch.zeros(6, 1))
            told.backward()
            judges.step()
            makes.zero_grad()
            made = criterion(critic(fake), torch.ones(6, 1))
            made.backward()
            makes.step()
            losses.append((told.item(), made.item()))
    for player, wanted in zip(("judges", "makes"), zip(*losses, strict=True), strict=True):
        assert losses_of(handle.run, f"{LOSS}/{player}") == pytest.approx(wanted)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("kind", [nn.Parameter, torch.Tensor.requires_grad_])
def test_loss_of_what_no_known_optimizer_moves_is_not_added_to_that_of_a_player(attach, given, kind):
    """As SAC moves its temperature; the optimizer of it was not given."""
    actor, critic, log_alpha = nn.Linear(2, 1), nn.Linear(2, 1), kind(torch.zeros(1))
    acts, judges = torch.optim.SGD(actor.parameters(), lr=0.1), torch.optim.SGD(critic.parameters(), lr=0.1)
    heats, losses = torch.optim.SGD([log_alpha], lr=0.1), []
    optimizers = {"acts": acts, "judges": judges, **({"heats": heats} if given else {})}
    with attach({"actor": actor, "critic": critic}, optimizer=optimizers) as handle:
        for _ in range(4):
            of_step = []
            for model, optimizer in ((critic, judges), (actor, acts)):
                optimizer.zero_grad()
                loss = model(torch.randn(6, 2)).square().mean()
                loss.backward()
                optimizer.step()
                of_step.append(loss.item())
            heats.zero_grad()
            (log_alpha.exp() * 3).sum().backward()
            heats.step()
            losses.append(of_step)
    for player, wanted in zip(("judges", "acts"), zip(*losses, strict=True), strict=True):
        assert losses_of(handle.run, f"{LOSS}/{player}") == pytest.approx(wanted)
    assert len(handle.run.tensor_names(kind="loss")) == 2 + given
    assert not handle.problems, "nothing is wrong with a number that stands alone"


def test_a_temperature_that_steps_several_times_does_not_end_the_step(attach):
    actor, critic, log_alpha = nn.Linear(2, 1), nn.Linear(2, 1), torch.zeros(1, requires_grad=True)
    acts, judges = torch.optim.SGD(actor.parameters(), lr=0.1), torch.optim.SGD(critic.parameters(), lr=0.1)
    heats, means = torch.optim.SGD([log_alpha], lr=0.1), []
    optimizers = {"acts": acts, "judges": judges, "heats": heats}
    with attach({"actor": actor, "critic": critic}, optimizer=optimizers) as handle:
        for _ in range(4):
            for model, optimizer in ((critic, judges), (actor, acts)):
                optimizer.zero_grad()
                model(torch.randn(6, 2)).square().mean().backward()
                optimizer.step()
                of_step = []
                for _ in range(2):
                    heats.zero_grad()
                    loss = (log_alpha.exp() * 3).sum()
                    loss.backward()
                    heats.step()
                    of_step.append(loss.item())
            means.append(of_step)
    assert handle.run.steps(mode="train").tolist() == [0, 1, 2, 3]
    assert handle.run.scalars(f"{LOSS}/judges").steps.tolist() == [0, 1, 2, 3]
    assert handle.run.scalars(f"{LOSS}/heats").steps.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("with_player", [False, True])
def test_a_critic_that_is_trained_by_gradients_of_one_and_minus_one_loses_their_difference(
    attach, with_player
):
    """As programs of Wasserstein GANs have it: ``real.backward(minus_one)``, ``made.backward(one)``."""
    critic, optimizer = made()
    player = nn.Linear(4, 4)
    others = {"player": torch.optim.SGD(player.parameters(), lr=0.1)} if with_player else {}
    one, losses = torch.tensor(1.0), []
    with attach(
        {"critic": critic, "player": player} if with_player else critic,
        optimizer={"critic": optimizer, **others},
    ) as handle:
        for _ in range(3):
            optimizer.zero_grad()
            real = critic(batch()[0]).mean()
            real.backward(-one)
            faked = critic(player(batch()[0]).detach()).mean()
            faked.backward(gradient=one)
            optimizer.step()
            losses.append(faked.item() - real.item())
            for other in others.values():
                other.zero_grad()
                critic(player(batch()[0])).mean().backward(-one)
                other.step()
    name, passes = (f"{LOSS}/critic", 1) if with_player else (LOSS, 2)
    assert losses_of(handle.run, name) == pytest.approx([loss / passes for loss in losses], rel=1e-5)


def test_who_takes_turns_is_worked_out_again_when_an_optimizer_is_given_more(attach):
    """Two that move the same parameters have one loss, and no turns."""
    one, two = nn.Linear(4, 1), nn.Linear(4, 1)
    first, second = (torch.optim.SGD(model.parameters(), lr=0.01) for model in (one, two))
    with attach({"one": one, "two": two}, optimizer={"first": first, "second": second}) as handle:
        for step in range(4):
            if step == 2:
                first.add_param_group({"params": list(two.parameters())})
            for model, optimizer in ((one, first), (two, second)):
                (model(torch.ones(2, 4)).sum() * 0 + step).backward()
                optimizer.step()
    assert losses_of(handle.run, f"{LOSS}/first") == losses_of(handle.run, f"{LOSS}/second") == [0, 1]
    assert set(losses_of(handle.run)) == {2, 3}


def test_loss_goes_to_the_training_whose_model_ran_last(tmp_path):
    pairs = [made() for _ in range(2)]
    handles = [
        attach_to(model, optimizer=optimizer, store=tmp_path / str(i), save_every=1, profiler=False)
        for i, (model, optimizer) in enumerate(pairs)
    ]
    for turn in range(6):
        model, optimizer = pairs[turn % 2]
        optimizer.zero_grad()
        (model(torch.ones(2, 4)).sum() * 0 + turn).backward()
        optimizer.step()
    for handle in handles:
        handle.detach()
    assert [losses_of(handle.run) for handle in handles] == [[0, 2, 4], [1, 3, 5]]


def test_functions_of_torch_are_put_back_behind_the_last_handle(attach):
    before = torch.autograd.backward, torch.amp.GradScaler.scale
    model, optimizer = made()
    handle = attach(model, optimizer=optimizer)
    assert torch.autograd.backward is not before[0]
    handle.detach()
    assert (torch.autograd.backward, torch.amp.GradScaler.scale) == before


def test_vector_and_grad_arguments_pass_through(attach):
    model, optimizer = made()
    with attach(model, optimizer=optimizer) as handle:
        out = model(torch.ones(2, 4))
        out.backward(torch.ones_like(out), retain_graph=True)
        torch.autograd.backward([out.sum(), out.square().sum()])
        optimizer.step()
    assert handle.run.tensor_names(kind="loss") == []
    assert not handle.problems


def test_loss_that_no_scaler_multiplied_is_not_divided_after_one_that_was_seen_otherwise(attach):
    model, optimizer = made()
    criterion = nn.CrossEntropyLoss()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with attach(model, optimizer=optimizer, loss=criterion) as handle:
        x, y = batch()
        scaler.scale(criterion(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    assert losses_of(handle.run) == pytest.approx([loss.item()])


def test_loss_that_no_scaler_multiplied_is_not_divided_after_one_of_another_training(tmp_path):
    pairs = [made() for _ in range(2)]
    handles = [
        attach_to(model, optimizer=optimizer, store=tmp_path / str(i), save_every=1, profiler=False)
        for i, (model, optimizer) in enumerate(pairs)
    ]
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    (scaled, its_optimizer), (plain, other_optimizer) = pairs
    x, y = batch()
    scaler.scale(functional.cross_entropy(scaled(x), y)).backward()
    scaler.step(its_optimizer)
    scaler.update()
    loss = functional.cross_entropy(plain(x), y)
    loss.backward()
    other_optimizer.step()
    for handle in handles:
        handle.detach()
    assert losses_of(handles[1].run) == pytest.approx([loss.item()])


class OwnLoss(nn.Module):
    """Returns a loss with its output, as models of Transformers do that are given labels."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x, labels):
        logits = self.layer(x)
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


@pytest.mark.parametrize("how", ["as it is", "scaled and shared", "computed anew", "of its logits"])
def test_loss_of_a_model_that_it_is_not_trained_on_is_not_the_only_one(attach, how):
    """Preferences (DPO) are learnt by a loss of their own, beside which the model's own means nothing."""
    torch.manual_seed(0)
    model = OwnLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    handle = attach(model, optimizer=optimizer)
    for _ in range(4):
        optimizer.zero_grad()
        x, y = batch()
        out = model(x, y)
        loss = {
            "as it is": out["loss"],
            "scaled and shared": (out["loss"] + 0.1 * out["logits"].square().mean()) / 2 * 8,
            "computed anew": -out["logits"].log_softmax(1).gather(1, y[:, None]).sum() / 12,
            "of its logits": -functional.logsigmoid(out["logits"][:3, 0] - out["logits"][3:, 0]).mean(),
        }[how]
        del out
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    handle.detach()
    apart = how == "of its logits"
    assert set(handle.run.tensor_names(kind="loss")) == {"loss/OwnLoss", *([LOSS] if apart else [])}
    assert not apart or losses_of(handle.run) == pytest.approx(losses)


def test_backward_that_cannot_be_leaves_the_recording_of_losses_on(attach):
    model, optimizer = made()
    with attach(model, optimizer=optimizer) as handle:
        x, y = batch()
        loss = functional.cross_entropy(model(x), y) / 4
        loss.backward()
        with pytest.raises(RuntimeError, match="a second time"):
            loss.backward()
        optimizer.step()
        assert handle.problems == []


class Coder(nn.Module):
    """Nobody calls the whole of it."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 2), nn.Linear(2, 4)

    def decoded(self, x):
        return self.decoder(torch.tanh(self.encoder(x)))


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("save_every", [1, 4])
def test_losses_of_accumulated_gradients_are_one_where_the_model_is_called_by_its_parts(
    attach, divided, save_every
):
    torch.manual_seed(0)
    model = Coder()
    optimizer, means = torch.optim.SGD(model.parameters(), lr=0.1), []
    with attach(model, optimizer=optimizer, save_every=save_every) as handle:
        for _ in range(6):
            losses = []
            for _ in range(4):
                x, _ = batch()
                loss = functional.mse_loss(model.decoded(x), x)
                losses.append(loss.item())
                (loss / 4 if divided else loss).backward()
            means.append(sum(losses) / 4)
            optimizer.step()
            optimizer.zero_grad()
    assert handle.run.tensor_names(kind="loss") == [LOSS]
    assert losses_of(handle.run) == pytest.approx(means)


@pytest.mark.parametrize("whole", [False, True])
def test_two_losses_with_a_backward_each_are_both_recorded(attach, whole):
    torch.manual_seed(0)
    model, firsts, seconds = Coder(), [], []
    model.forward = model.decoded
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer) as handle:
        for _ in range(6):
            x, _ = batch()
            out = model(x) if whole else model.decoded(x)
            first, second = functional.mse_loss(out, x), out.abs().sum(1).mean()
            first.backward(retain_graph=True)
            second.backward()
            firsts.append(first.item())
            seconds.append(second.item())
            optimizer.step()
            optimizer.zero_grad()
    assert losses_of(handle.run) == pytest.approx(firsts)
    assert losses_of(handle.run, f"{LOSS}:1") == pytest.approx(seconds)


def test_loss_of_what_an_unknown_optimizer_moves_is_none_of_a_model_that_is_called_by_its_parts(attach):
    model, log_alpha, losses = Coder(), nn.Parameter(torch.zeros(1)), []
    optimizer, heats = torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.SGD([log_alpha], lr=0.1)
    with attach(model, optimizer=optimizer) as handle:
        for _ in range(6):
            x, _ = batch()
            loss = functional.mse_loss(model.decoded(x), x)
            loss.backward()
            (log_alpha.exp() * 3).sum().backward()
            losses.append(loss.item())
            for one in (optimizer, heats):
                one.step()
                one.zero_grad()
    assert handle.run.tensor_names(kind="loss") == [LOSS]
    assert losses_of(handle.run) == pytest.approx(losses)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("players", [1, 2])
def test_loss_of_a_probe_of_what_the_model_gave_in_an_evaluation_is_none_of_the_model(attach, players, whole):
    """As representations are judged while they are learnt. It was taken for one of the next step."""
    torch.manual_seed(0)
    model, losses = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3)), []
    optimizers = {f"of{n}": torch.optim.SGD(model[n].parameters(), lr=0.1) for n in range(players)}

    def given(model, x):
        return model(x) if whole else model[1](model[0](x))

    with attach(model, optimizer=optimizers) as handle:
        for _ in range(3):
            for _ in range(2):
                x, y = batch()
                loss = functional.cross_entropy(given(model.train(), x), y)
                loss.backward()
                losses.append(loss.item())
                for one in optimizers.values():
                    one.step()
                    one.zero_grad()
            with torch.no_grad():
                features = given(model.eval(), x)
            functional.cross_entropy(nn.Linear(3, 30)(features), y).backward()
    assert losses_of(handle.run) == pytest.approx(losses)


@pytest.mark.parametrize(("last", "found"), [(torch.softmax, True), (torch.log_softmax, False)])
def test_softmax_between_the_model_and_a_loss_that_has_its_own_is_seen(attach, last, found):
    model, optimizer = made()
    with attach(model, optimizer=optimizer, save_every=1) as handle:
        for _ in range(6):
            x, y = batch()
            optimizer.zero_grad()
            functional.cross_entropy(last(model(x), 1), y).backward()
            optimizer.step()
    findings = run_rules(handle.run_path, ["wrong_output"])
    assert [one.evidence["problem"] for one in findings] == ["softmax"] * found
