"""Models that train together are one run, under the names that the program has for them."""

from __future__ import annotations

import pytest
import torch
from small_trainings import batch, everywhere
from torch import nn
from torch.nn import functional


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


def test_models_have_the_names_of_where_both_are_known(watched):
    """Not that of the argument of a function that calls one of them, as the networks of a radiance field."""

    def rendered(fn, rows):
        return torch.cat([fn(part) for part in rows.split(3)])

    def program():
        coarse, fine = nn.Linear(2, 1), nn.Linear(2, 1)
        optimizer = torch.optim.SGD([*coarse.parameters(), *fine.parameters()], lr=0.1)
        for _ in range(4):
            rows = torch.randn(6, 2)
            optimizer.zero_grad()
            (rendered(coarse, rows).square().mean() + rendered(fine, rows).square().mean()).backward()
            optimizer.step()

    (run,) = watched(program)
    everywhere(run, "activation/coarse", "activation/fine", "coarse.weight", "fine.weight")


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
