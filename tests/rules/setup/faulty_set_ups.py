"""Trainings of which one thing is wrongly set up each: `rule` finds it."""

from __future__ import annotations

import torch
from torch import nn

from .healthy_set_ups import Counts, FewRows, Healthy, Numbers, PairsByCosine, Several


class SoftmaxTwice(Healthy):
    rule = "wrong_output"

    def set_up(self):
        self.model.append(nn.Softmax(1))


class SoftmaxOverTheBatch(Healthy):
    rule = "wrong_output"

    def set_up(self):
        self.model.append(nn.Softmax(0))


class SigmoidFirst(Healthy):
    rule = "wrong_output"

    def set_up(self):
        self.model.append(nn.Sigmoid())


class TanhFirst(Healthy):
    rule, save_every = "wrong_output", 2

    def set_up(self):
        self.model.append(nn.Tanh())

    def make_optimizer(self):
        return torch.optim.Adam(self.model.parameters(), 1e-2)


class NoLogSoftmax(Healthy):
    rule, steps = "wrong_output", 40

    def set_up(self):
        self.loss = nn.NLLLoss()

    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), 1e-3)


class LogitsForLogarithms(Healthy):
    """Soft labels, compared by a divergence that takes logarithms of probabilities."""

    rule, save_every = "wrong_output", 2

    def set_up(self):
        self.loss = nn.KLDivLoss(reduction="batchmean")

    def labels(self, rows):
        return 0.9 * nn.functional.one_hot(self.y[rows], 10) + 0.01

    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), 1e-3)


class YesOrNoForSigns(Numbers):
    """Labels of 0 and 1, of which those of 0 make no difference."""

    rule, save_every = "label_range", 2

    def set_up(self):
        super().set_up()
        self.model[6] = nn.Linear(32, 1)
        self.loss, self.y = nn.SoftMarginLoss(), (self.y > 0).float()


class YesOrNoForPairs(PairsByCosine):
    rule = "label_range"

    def judge(self, told, wanted):
        return self.loss(told, told.roll(1, 0), (wanted == wanted.roll(1)).float())


class CountsBelowZero(Counts):
    rule, save_every = "label_range", 2

    def set_up(self):
        super().set_up()
        self.y = self.y - 3


class Spread(Numbers):
    rule = "wrong_output"

    def set_up(self):
        super().set_up()
        self.y = self.y.squeeze(1)


class OutOfReach(Numbers):
    rule = "label_range"

    def set_up(self):
        super().set_up()
        self.y = self.y * 20


class CountsOutOfReach(Numbers):
    """Counts up to 40 by their logarithm, behind a tanh."""

    rule, save_every = "label_range", 2

    def set_up(self):
        super().set_up()
        self.loss, self.y = nn.PoissonNLLLoss(), (self.y * 5 + 4.5).round().square() / 2

    def make_optimizer(self):
        return torch.optim.Adam(self.model.parameters(), 1e-2)


class RawNumbers(Numbers):
    """Labels in thousands, as they came."""

    rule = "label_range"

    def set_up(self):
        super().set_up()
        self.model[6] = nn.Linear(32, 1)
        self.y = 3000 + 400 * self.y

    def make_optimizer(self):
        return torch.optim.Adam(self.model.parameters(), 3e-3)


class OneSided(Numbers):
    """Behind a sigmoid, which the labels below 0 pull to its end."""

    rule, save_every = "label_range", 2

    def set_up(self):
        super().set_up()
        self.model[6][1] = nn.Sigmoid()
        self.y = self.y * 2

    def make_optimizer(self):
        return torch.optim.Adam(self.model.parameters(), 1e-2)


class HeldAtItsBound(Numbers):
    """Labels that are all far above what a tanh can give: it gives 1, whatever the input is."""

    rule, save_every = "label_range", 2

    def set_up(self):
        super().set_up()
        self.y = self.y + 8

    def make_optimizer(self):
        return torch.optim.Adam(self.model.parameters(), 1e-2)


class Rectified(Numbers):
    """Behind a ReLU, with labels on both sides of zero."""

    rule, save_every = "label_range", 2

    def set_up(self):
        super().set_up()
        self.model[6][1] = nn.ReLU()


class OneLabel(Healthy):
    """A comparison that never holds: all labels of training are the same, those kept back are not."""

    rule, save_every = "label_range", 2

    def set_up(self):
        self.y[:1500] = 0

    def evaluate(self, step):
        self.model.eval()
        with torch.no_grad():
            self.loss(self.model(self.x[1500:]), self.y[1500:])
        self.model.train()


class NotBinary(Healthy):
    rule, steps = "label_range", 60

    def set_up(self):
        self.loss = nn.BCEWithLogitsLoss()
        self.y = 3.0 * nn.functional.one_hot(self.y, 10).float()

    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), 1e-3)


class Constant(Healthy):
    rule = "constant_output"

    def set_up(self):
        with torch.no_grad():
            self.model[4].bias.fill_(-50.0)

    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), 1e-3)


class Equal(Healthy):
    rule = "symmetric_weights"

    def set_up(self):
        nn.init.constant_(self.model[4].weight, 0.1)


class Pictures(Healthy):
    rule = "unscaled_inputs"

    def set_up(self):
        self.x = self.x * 255


class Shuffled(Healthy):
    rule, steps = "unrelated_labels", 260

    def rows(self, step):
        self.shuffled = torch.randint(0, 1500, (32,), generator=self.random)
        return super().rows(step)

    def forward(self, x, step):
        return super().forward(self.x[self.shuffled], step)


class ShuffledByHeart(Healthy):
    """Each row keeps its wrong label, so that it is learnt; rows kept back have right ones."""

    rule, steps, save_every = "unrelated_labels", 400, 2

    def set_up(self):
        self.model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.optimizer = torch.optim.Adam(self.model.parameters(), 5e-3)
        self.y = self.y.clone()
        self.y[:1500] = self.y[torch.randperm(1500, generator=torch.Generator().manual_seed(3))]

    def evaluate(self, step):
        self.model.eval()
        with torch.no_grad():
            self.loss(self.model(self.x[1500:]), self.y[1500:])
        self.model.train()


class ShuffledSeveral(Shuffled):
    """That some columns are nearly always no is learnt without the inputs."""

    set_up = Several.set_up


class NumbersByHeart(FewRows):
    """Numbers that were shuffled, of so few rows that they are learnt nevertheless."""

    rule = "unrelated_labels"

    def set_up(self):
        super().set_up()
        self.y = self.y.roll(1, 0)


class Empty(Healthy):
    """From a step on nothing is read."""

    rule, save_every = "constant_inputs", 2

    def forward(self, x, step):
        return super().forward(x if step < 60 else torch.zeros_like(x), step)


class TooLow(Healthy):
    rule = "learning_rate"

    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), 1e-6)


FAULTY = (
    *(LogitsForLogarithms, YesOrNoForSigns, YesOrNoForPairs, CountsBelowZero),
    *(SoftmaxTwice, SoftmaxOverTheBatch, SigmoidFirst, TanhFirst, NoLogSoftmax, Spread, OutOfReach, OneSided),
    *(CountsOutOfReach, RawNumbers, HeldAtItsBound, Rectified, OneLabel, NotBinary, Constant, Equal),
    *(Pictures, Shuffled, ShuffledByHeart, NumbersByHeart, ShuffledSeveral, Empty, TooLow),
)
