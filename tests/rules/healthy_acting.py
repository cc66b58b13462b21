"""Healthy trainings of those who learn by acting: policies and values, whose losses need not fall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional as F

from tests.rules.healthy_loops import STEPS, adam, fit, mlp

if TYPE_CHECKING:
    from tests.rules.healthy_loops import Attach


def bandit(attach: Attach) -> None:
    """A policy gradient: its loss is around zero all the time."""
    model, best = mlp(6, 4), torch.randn(6, 4)

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(96, 6)
        choice = torch.distributions.Categorical(logits=model(x))
        taken = choice.sample()
        earned = (x @ best).gather(1, taken[:, None])[:, 0]
        return -((earned - earned.mean()) * choice.log_prob(taken)).mean() - 0.01 * choice.entropy().mean()

    fit(attach, model, loss_of, adam(model, 1e-2))


def growing_values(attach: Attach) -> None:
    """A value function whose targets grow with the policy: so does its loss."""
    model, criterion, true = mlp(6, 1), nn.MSELoss(), torch.randn(6, 1)

    def loss_of(step: int) -> torch.Tensor:
        x, scale = torch.randn(64, 6), 0.5 + 10 * step / STEPS
        return criterion(model(x), scale * (1 + torch.tanh(x @ true) + 0.7 * torch.randn(64, 1)))

    fit(attach, model, loss_of, loss=criterion)


def actor_and_critic(attach: Attach) -> None:
    """A policy, a value function and a bonus for undecidedness in one loss: it goes wherever it likes."""
    model, best = nn.ModuleDict({"policy": mlp(6, 4), "value": mlp(6, 1)}), torch.randn(6, 4)

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(64, 6)
        choice = torch.distributions.Categorical(logits=model["policy"](x))
        taken, value = choice.sample(), model["value"](x)[:, 0]
        earned = (x @ best).gather(1, taken[:, None])[:, 0]
        gained = (earned - value).detach()
        policy = -(gained * choice.log_prob(taken)).mean()
        return policy + 0.5 * ((value - earned) ** 2).mean() - 0.01 * choice.entropy().mean()

    fit(attach, model, loss_of, adam(model, 3e-3))


def told_by_itself(attach: Attach) -> None:
    """Q-learning on a ring: targets come from a copy of the net that is renewed now and then."""
    model, copied, criterion = mlp(8, 2, 32), mlp(8, 2, 32), nn.SmoothL1Loss()
    copied.load_state_dict(model.state_dict())

    def loss_of(step: int) -> torch.Tensor:
        if step % 20 == 0:
            copied.load_state_dict(model.state_dict())
        place, action = torch.randint(0, 8, (64,)), torch.randint(0, 2, (64,))
        after = (place + 2 * action - 1) % 8
        with torch.no_grad():
            wanted = (after == 3).float() + 0.9 * copied(F.one_hot(after, 8).float()).amax(1)
        return criterion(model(F.one_hot(place, 8).float()).gather(1, action[:, None])[:, 0], wanted)

    fit(attach, model, loss_of, adam(model, 2e-3), loss=criterion, steps=320)


class Actor(nn.Module):
    """A policy and its value, with a body that they share."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.Tanh())
        self.acts, self.expects = nn.Linear(32, 3), nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.body(x)
        return self.acts(h), self.expects(h)[:, 0]


def proximal_policy(attach: Attach) -> None:
    """What was gathered is trained on six times over, whole; what is earned grows, and the loss with it."""
    model, best = Actor(), torch.randn(6, 3)
    known: list[torch.Tensor] = []

    def gather(step: int) -> list[torch.Tensor]:
        x = torch.randn(64, 6)
        with torch.no_grad():
            choices = [torch.distributions.Categorical(logits=model(row)[0]) for row in x.split(1)]
        taken = torch.cat([one.sample() for one in choices])
        said = torch.cat([one.log_prob(now[None]) for one, now in zip(choices, taken, strict=True)])
        earned = (x @ best).gather(1, taken[:, None])[:, 0] * (1 + step / 40)
        return [x, taken, said, earned]

    def loss_of(step: int) -> torch.Tensor:
        if step % 6 == 0:
            known[:] = gather(step)
        x, taken, said, earned = known
        logits, expected = model(x)
        choice = torch.distributions.Categorical(logits=logits)
        more, gain = (choice.log_prob(taken) - said).exp(), earned - earned.mean()
        policy = -torch.min(more * gain, more.clamp(0.8, 1.2) * gain).mean() / earned.std()
        return policy + 0.5 * F.mse_loss(expected, earned) - 0.01 * choice.entropy().mean()

    fit(attach, model, loss_of, adam(model, 1e-3))


class Judge(Actor):
    """Acts when it is called, and is trained by a method of its own."""

    def judge(self, x: torch.Tensor, taken: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.body(x)
        return torch.distributions.Categorical(logits=self.acts(h)).log_prob(taken), self.expects(h)[:, 0]


def acting_in_eval_mode(attach: Attach) -> None:
    """It acts in eval mode for a while, and then its parts are trained: no step of that is an evaluation."""
    model, best = Judge(), torch.randn(6, 3)
    optimizer = adam(model, 1e-3)
    with attach(model, optimizer=optimizer):
        for turn in range(24):
            model.eval()
            x = torch.randn(64, 6)
            with torch.no_grad():
                logits = torch.cat([model(row)[0] for row in x.split(4)])
            taken = torch.distributions.Categorical(logits=logits).sample()
            earned = (x @ best).gather(1, taken[:, None])[:, 0] * (1 + turn / 8)
            model.train()
            for at in torch.randperm(64).repeat(5).split(32):
                said, expected = model.judge(x[at], taken[at])
                gained = (earned[at] - expected).detach()
                loss = 0.5 * F.mse_loss(expected, earned[at]) - (gained * said).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


def expecting_more(attach: Attach) -> None:
    """Q-learning of what it has tried itself: what it expects grows, and so does what it loses."""
    model, copied, known = mlp(4, 2), mlp(4, 2), []
    optimizer = adam(model, 1e-3)
    place = torch.randn(4)
    with attach(model, optimizer=optimizer):
        for step in range(360):
            if step % 40 == 0:
                copied.load_state_dict(model.state_dict())
            for _ in range(4):
                with torch.no_grad():
                    told = int(model(place[None]).argmax())
                action = told if torch.rand(()) > 0.2 else int(torch.rand(()) > 0.5)
                after = 0.9 * place.roll(1) + (0.5 if action else -0.5) + 0.1 * torch.randn(4)
                known.append((place, action, 1.0 - 0.1 * float(after[0].abs()), after))
                place = after
            batch = [known[i] for i in torch.randint(0, len(known), (32,))]
            before, after = (torch.stack([one[i] for one in batch]) for i in (0, 3))
            actions = torch.tensor([one[1] for one in batch])[:, None]
            with torch.no_grad():
                wanted = torch.tensor([one[2] for one in batch]) + 0.99 * copied(after).amax(1)
            loss = F.smooth_l1_loss(model(before).gather(1, actions)[:, 0], wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


ACTING = (
    *(bandit, growing_values, actor_and_critic, told_by_itself, proximal_policy),
    *(acting_in_eval_mode, expecting_more),
)
