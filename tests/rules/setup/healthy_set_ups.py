"""Healthy trainings that look like wrongly set up ones: no rule on set-ups may speak of them."""

from __future__ import annotations

import torch
from torch import nn

from tests.rules.silent.loops import Loop


class Healthy(Loop):
    steps = 120

    def __init__(self):
        super().__init__()
        self.set_up()

    def set_up(self):
        """What a subclass gets wrong."""


class Adam(Healthy):
    def make_optimizer(self):
        return torch.optim.Adam(self.model.parameters(), 3e-3)


class WarmUp(Healthy):
    def before(self, step):
        self.optimizer.param_groups[0]["lr"] = 0.1 * min(1.0, (step + 1) / 100)


class ZeroHead(Healthy):
    def set_up(self):
        nn.init.zeros_(self.model[6].weight)


class Numbers(Healthy):
    """Regression through a tanh that can reach its labels."""

    def set_up(self):
        self.model[6] = nn.Sequential(nn.Linear(32, 1), nn.Tanh())
        self.optimizer = self.make_optimizer()
        self.loss = nn.MSELoss()
        self.y = (self.y.float().unsqueeze(1) - 4.5) / 5.0


class Raw(Numbers):
    """Labels in thousands, of which the output knows the mean and the spread."""

    def set_up(self):
        super().set_up()
        self.model[6] = nn.Sequential(nn.Linear(32, 1), Turned())
        self.y = 3000 + 400 * self.y

    def make_optimizer(self):
        return torch.optim.Adam(self.model.parameters(), 3e-3)


class Counts(Numbers):
    """Counts by their logarithm."""

    save_every = 2

    def set_up(self):
        super().set_up()
        self.model[6] = nn.Linear(32, 1)
        self.loss, self.y = nn.PoissonNLLLoss(), (self.y * 5 + 4.5).round().square() / 2

    def make_optimizer(self):
        return torch.optim.Adam(self.model.parameters(), 3e-3)


class Turned(nn.Module):
    def forward(self, x):
        return 3000 + 400 * x


class Counted(Numbers):
    """Regression through a ReLU of labels that are never negative."""

    def set_up(self):
        super().set_up()
        self.model[6][1] = nn.ReLU()
        self.y = self.y + 0.9


class Several(Healthy):
    """Yes and no in six columns, some nearly always no, learnt slowly."""

    steps = 260

    def set_up(self):
        self.model[6] = nn.Linear(32, 6)
        self.optimizer = self.make_optimizer()
        self.loss = nn.BCEWithLogitsLoss()
        self.y = (self.y.unsqueeze(1) < torch.tensor([1, 1, 2, 9, 9, 5])).float()

    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), lr=0.02)


class Narrow(Healthy):
    """Two classes, whose fresh logits are all between 0 and 1."""

    def set_up(self):
        self.model[6] = nn.Linear(32, 2)
        with torch.no_grad():
            self.model[6].weight.mul_(0.1)
            self.model[6].bias.fill_(0.4)
        self.optimizer = self.make_optimizer()
        self.y = (self.y > 4).long()

    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), lr=0.02)


class Rare(Healthy):
    """A class that is never predicted, though its samples get larger outputs than others."""

    steps, save_every = 240, 4

    def set_up(self):
        self.y = (self.y == 0).long()

    def rows(self, step):
        rows = super().rows(step)
        few = self.y[rows].cumsum(0) <= 1
        return rows[(self.y[rows] == 0) | few]

    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), lr=2e-3)


class OwnLoss(Numbers):
    """A loss that is given more than it compares with the labels."""

    def set_up(self):
        super().set_up()
        self.model.append(Doubled())
        self.loss = FirstHalf()


class Doubled(nn.Module):
    def forward(self, x):
        return torch.cat([x, x, x], 1)


class FirstHalf(nn.Module):
    def forward(self, told, wanted):
        return nn.functional.mse_loss(told[:, :2], wanted.expand(-1, 2))


class Residue(Numbers):
    """Labels that are always zero: what is learnt is a function that vanishes."""

    steps, save_every = 240, 4

    def set_up(self):
        super().set_up()
        self.y = torch.zeros_like(self.y)


class FirstAmongOthers(Healthy):
    """The right answer is always the first of several, as in contrast; digits are told in evaluations."""

    save_every = 2

    def set_up(self):
        self.model[6] = nn.Linear(32, 16)
        self.optimizer = self.make_optimizer()

    def forward(self, x, step):
        self.wanted = torch.zeros(len(x), dtype=torch.long)
        one, other = (nn.functional.normalize(self.model(x + 0.05 * torch.randn_like(x))) for _ in range(2))
        others = (one @ other.T)[~torch.eye(len(x), dtype=torch.bool)].view(len(x), -1)
        return 5 * torch.cat([(one * other).sum(1, keepdim=True), others], 1)

    def labels(self, rows):
        return self.wanted

    def evaluate(self, step):
        self.model.eval()
        with torch.no_grad():
            self.loss(self.model(self.x[1500:]), self.y[1500:])
        self.model.train()


class Shares(Healthy):
    """Shares of the classes, each judged by itself."""

    def set_up(self):
        self.model.append(nn.Softmax(1))
        self.loss = nn.BCELoss()
        self.y = nn.functional.one_hot(self.y, 10).float()


class Apart(nn.Module):
    """Rows that belong together are to be near, others far: the larger a distance, the less they do."""

    def forward(self, far, same):
        return (same * far**2 + (1 - same) * nn.functional.relu(1 - far) ** 2).mean()


class Distances(Healthy):
    steps, save_every = 240, 4

    def set_up(self):
        self.model[6] = nn.Linear(32, 8)
        self.optimizer = self.make_optimizer()
        self.loss = Apart()

    def forward(self, x, step):
        code = self.model(x)
        return ((code - code.roll(1, 0)) ** 2).sum(1).add(1e-6).sqrt()

    def labels(self, rows):
        return (self.y[rows] == self.y[rows].roll(1, 0)).float()

    def rows(self, step):
        known = torch.nonzero(self.y[:1500] < 3).flatten()
        return known[torch.randint(0, len(known), (48,), generator=self.random)]


class FewRows(Healthy):
    """Few rows of numbers, known by heart soon; they tell others nevertheless."""

    steps, save_every = 400, 4

    def set_up(self):
        self.model = nn.Sequential(
            nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
        )
        self.optimizer, self.loss = torch.optim.Adam(self.model.parameters(), 3e-3), nn.MSELoss()
        self.x = torch.randn(len(self.x), 16, generator=self.random)
        self.y = self.x[:, :1] * self.x[:, 1:2] + self.x[:, 2:3]

    def rows(self, step):
        return torch.randint(0, 300, (50,), generator=self.random)

    def evaluate(self, step):
        self.model.eval()
        with torch.no_grad():
            self.loss(self.model(self.x[1000:]), self.y[1000:])
        self.model.train()


class Ranking(Healthy):
    """Of two scores neither is the label of the other."""

    steps, save_every = 260, 2

    def set_up(self):
        self.model[6] = nn.Sequential(nn.Linear(32, 1), nn.Flatten(0))
        self.optimizer, self.loss = self.make_optimizer(), nn.MarginRankingLoss(0.3)

    def judge(self, told, wanted):
        return self.loss(told, told.roll(1), torch.where(wanted > wanted.roll(1), 1.0, -1.0))

    def evaluate(self, step):
        """None: scores of rows held out have no order."""


class PairsByCosine(Ranking):
    """Of two codes that are seldom of one class neither is the label of the other."""

    def set_up(self):
        self.model[6] = nn.Linear(32, 8)
        self.optimizer, self.loss = self.make_optimizer(), nn.CosineEmbeddingLoss()

    def judge(self, told, wanted):
        return self.loss(told, told.roll(1, 0), torch.where(wanted == wanted.roll(1), 1.0, -1.0))


class Scaled(nn.Module):
    """A layer whose inputs and outputs are scaled for some members of an ensemble, by one at first."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.line = nn.Linear(inputs, outputs)
        self.after = nn.Parameter(torch.ones(4, outputs))

    def forward(self, x):
        return (self.line(x).view(4, -1, self.after.shape[1]) * self.after[:, None]).flatten(0, 1)


class Ensemble(Healthy):
    def make_optimizer(self):
        self.model[0] = Scaled(64, self.model[0].out_features)
        return super().make_optimizer()

    def evaluate(self, step):
        """None: rows go by four."""


class HalfShuffled(Healthy):
    """Labels of which one in two is wrong, learnt by heart in the end; rows kept back have right ones."""

    steps, save_every = 400, 2

    def set_up(self):
        self.model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.optimizer = torch.optim.Adam(self.model.parameters(), 5e-3)
        wrong = torch.randperm(1500, generator=torch.Generator().manual_seed(3))[:750]
        self.y = self.y.clone()
        self.y[wrong] = self.y[wrong.roll(1)]

    def evaluate(self, step):
        self.model.eval()
        with torch.no_grad():
            self.loss(self.model(self.x[1500:]), self.y[1500:])
        self.model.train()


HEALTHY = (
    *(Healthy, Adam, WarmUp, ZeroHead, Numbers, Counted, Several, Narrow, Rare, OwnLoss, Residue),
    *(
        FirstAmongOthers,
        Shares,
        Distances,
        Raw,
        Counts,
        Ranking,
        PairsByCosine,
        HalfShuffled,
        FewRows,
        Ensemble,
    ),
)
