"""Healthy loops that look like faulty ones: no rule on silent errors may speak of them."""

from __future__ import annotations

import torch
from torch import nn

from .loops import Loop, LoopOfTwo, make_trained


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


class Polynomial(torch.optim.lr_scheduler.LRScheduler):
    """Sets the rates itself and does not count its steps, as that of nnU-Net."""

    def step(self, epoch=0):
        for group in self.optimizer.param_groups:
            group["lr"] = 0.1 * (1 - epoch / 10) ** 0.9


class ScheduledItsOwnWay(Loop):
    def before(self, step):
        if self.schedule is None:
            self.schedule = Polynomial(self.optimizer)
        if step and step % 10 == 0:
            self.schedule.step(step // 10)


class Epochs(Loop):
    def rows(self, step):
        order = torch.randperm(320, generator=torch.Generator().manual_seed(step // 10))
        return order[32 * (step % 10) : 32 * (step % 10 + 1)]


class InTurns(LoopOfTwo):
    """Body and head have an optimizer each; the head's joins after a few steps, and steps now and then."""

    def move(self, step):
        super().move(step)
        if step % 8 == 2:
            self.optimizer["head"].step()


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


class Pruned(Loop):
    """Half of the weights of each matrix, the smallest, become zero at once."""

    steps = 90

    def before(self, step):
        if step == 60:
            with torch.no_grad():
                for one in self.model.parameters():
                    one[one.abs() < one.abs().median()] = 0.0


class Shaken(Loop):
    """A little noise is put on the weights, once."""

    steps = 90

    def before(self, step):
        if step == 60:
            with torch.no_grad():
                for one in self.model.parameters():
                    one.add_(0.3 * one.std() * torch.randn_like(one))


class NormHeld(Loop):
    """Statistics of batches are held after a while, as those of a trained network are."""

    def before(self, step):
        self.model.train()
        if step >= 8:
            self.model[1].eval()


class NormsHeld(Loop):
    """Statistics of a trained network are held, all of them."""

    def make_model(self):
        return make_trained()

    def before(self, step):
        for at in (1, 4):
            self.model[at].eval()


class Skips(nn.Module):
    """What each block tells goes to the sum; what it hands on, to the next one, if there is one."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.ModuleDict({"on": nn.Linear(64, 64), "out": nn.Linear(64, 10)})
                                    for _ in range(3))  # fmt: skip

    def forward(self, x):
        told = 0.0
        for block in self.blocks:
            told = told + block["out"](torch.relu(x))
            x = x + block["on"](torch.relu(x))
        return told


class LastOfAStack(Loop):
    """The last block computes what no next one takes: it never gets a gradient."""

    def make_model(self):
        return Skips()


class PartFrozen(Loop):
    """Layers that are not trained are in eval mode, dropout and all."""

    def make_optimizer(self):
        self.model[:4].requires_grad_(False)
        return torch.optim.SGD(self.model[4:].parameters(), lr=0.1)

    def before(self, step):
        self.model.train()
        self.model[:4].eval()


class Masking(Loop):
    """Masks of attention, and the range seen so far, as they begin."""

    def make_model(self):
        model = super().make_model()
        above = torch.ones(8, 8).triu(1).bool()
        buffers = {
            "mask": torch.zeros(8, 8).masked_fill(above, -torch.inf),
            "large_mask": torch.zeros(8, 8).masked_fill(above, -1e9),
            "masked": torch.tensor(torch.finfo(torch.float32).min),
            "least_seen": torch.tensor(torch.inf),
            "largest_seen": torch.tensor(-torch.inf),
        }
        for name, value in buffers.items():
            model.register_buffer(name, value)
        return model


HEALTHY = (
    *(Healthy, Accumulating, Clipping, Averaging, FineTuning, Scheduled, ScheduledItsOwnWay, Epochs),
    *(LookingAhead, EndingAtZero, InTurns, Pruned, Shaken, NormHeld, NormsHeld, PartFrozen, LastOfAStack),
    *(OneBatch, Masking),
)
