"""An agent as those of reinforcement learning: small networks, and three optimizers that take turns."""

from __future__ import annotations

import torch
from torch import nn

OBSERVED, ACTS, WIDTH, BATCH = 17, 6, 256, 256
"""Sizes of a task such as HalfCheetah, and what agents for it have by default."""
DISCOUNT, POLYAK, ENTROPY = 0.99, 0.005, -float(ACTS)


def network(inputs, outputs):
    return nn.Sequential(
        *(nn.Linear(inputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs))
    )


class Actor(nn.Module):
    """A squashed normal distribution over actions: a sample, and its log-probability."""

    def __init__(self):
        super().__init__()
        self.body = network(OBSERVED, 2 * ACTS)

    def forward(self, seen):
        mean, log_std = self.body(seen).chunk(2, dim=-1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-20, 2).exp())
        raw = normal.rsample()
        act = raw.tanh()
        return act, (normal.log_prob(raw) - (1 - act * act + 1e-6).log()).sum(-1, keepdim=True)


class Critic(nn.Module):
    """Two estimates of what an action is worth."""

    def __init__(self):
        super().__init__()
        self.one, self.other = network(OBSERVED + ACTS, 1), network(OBSERVED + ACTS, 1)

    def forward(self, seen, act):
        both = torch.cat([seen, act], dim=-1)
        return self.one(both), self.other(both)


class Agent:
    """Soft actor-critic (Haarnoja et al., 2018) that is trained on one batch, step by step."""

    criterion = None
    """Its losses are computed by functions."""

    def __init__(self, device="cpu"):
        torch.manual_seed(0)
        self.actor, self.critic, self._target = (kind().to(device) for kind in (Actor, Critic, Critic))
        self._target.load_state_dict(self.critic.state_dict())
        self._target.requires_grad_(False)
        self._temperature = torch.zeros(1, device=device, requires_grad=True)
        self.net = {"actor": self.actor, "critic": self.critic}
        self.optimizer = {
            "actor": torch.optim.Adam(self.actor.parameters(), lr=3e-4),
            "critic": torch.optim.Adam(self.critic.parameters(), lr=3e-4),
            "temperature": torch.optim.Adam([self._temperature], lr=3e-4),
        }
        self.x, self._next = (torch.randn(BATCH, OBSERVED, device=device) for _ in range(2))
        self._acted, self._reward = (
            torch.randn(BATCH, ACTS, device=device),
            torch.randn(BATCH, 1, device=device),
        )
        self.after = lambda: None
        self.close = lambda: None

    def steps(self, n):
        for _ in range(n):
            act, log_prob = self.actor(self.x)
            temperature = self._temperature.exp().detach()
            self._train("temperature", -(self._temperature * (log_prob + ENTROPY).detach()).mean())
            with torch.no_grad():
                next_act, next_log_prob = self.actor(self._next)
                worth = torch.min(*self._target(self._next, next_act)) - temperature * next_log_prob
                wanted = self._reward + DISCOUNT * worth
            self._train(
                "critic", sum(nn.functional.mse_loss(q, wanted) for q in self.critic(self.x, self._acted))
            )
            self._train("actor", (temperature * log_prob - torch.min(*self.critic(self.x, act))).mean())
            with torch.no_grad():
                for slow, fast in zip(self._target.parameters(), self.critic.parameters(), strict=True):
                    slow.lerp_(fast, POLYAK)
            self.after()

    def _train(self, name, loss):
        self.optimizer[name].zero_grad()
        loss.backward()
        self.optimizer[name].step()
