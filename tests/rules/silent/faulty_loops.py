"""Loops with one silent error each: `rule` finds it, `trigger` is the first step at which it can be seen."""

from __future__ import annotations

import torch
from torch import nn

from .healthy_loops import Skips
from .loops import TRIGGER, Loop, LoopOfTwo, make_model, make_trained


class NotReset(Loop):
    rule, trigger = "stale_gradients", TRIGGER

    def reset(self, step):
        if step < TRIGGER:
            super().reset(step)


class Skipping(Loop):
    rule, trigger = "skipped_steps", 6  # in optimizer steps, which go by more slowly then

    def move(self, step):
        if step < 6 or step % 2:
            super().move(step)


class NeverStepping(Loop):
    rule, trigger = "skipped_steps", 0

    def move(self, step):
        pass


class OneOfTwoNeverStepping(LoopOfTwo):
    """The last layer has an optimizer of its own, which is reset with the other and never stepped."""

    rule, trigger, tensor = "skipped_steps", 0, "6.bias"


class HeadForgotten(Loop):
    rule, trigger, tensor = "parameters_without_optimizer", 0, "6.weight"

    def make_optimizer(self):
        return torch.optim.SGD(self.model[:6].parameters(), lr=0.1)


class HeadExchanged(Loop):
    rule, trigger, tensor = "parameters_without_optimizer", TRIGGER, "6.weight"

    def before(self, step):
        if step == TRIGGER:
            self.model[6] = nn.Linear(32, 10)


class OtherModel(Loop):
    rule, trigger, tensor = "parameters_without_optimizer", 0, "0.weight"

    def make_optimizer(self):
        return torch.optim.SGD(make_model().parameters(), lr=0.1)


class CutOff(Loop):
    rule, trigger, tensor = "parameters_without_gradient", TRIGGER, "4.weight"

    def forward(self, x, step):
        hook = self.model[4].register_forward_hook(lambda _m, _a, out: out.detach())
        if step < TRIGGER:
            hook.remove()
        out = self.model(x)
        hook.remove()
        return out


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 32), nn.ReLU())
        self.digit, self.large = nn.Linear(32, 10), nn.Linear(32, 1)

    def forward(self, x):
        h = self.body(x)
        return torch.cat([self.digit(h), self.large(h)], 1)


class SkipsAndHeads(Skips):
    """The same with a second head."""

    def __init__(self):
        super().__init__()
        self.large = nn.Linear(64, 1)

    def forward(self, x):
        return torch.cat([super().forward(x), self.large(x)], 1)


class HeadUnheededBesideTheEndOfAStack(Loop):
    """Nobody takes what the last block hands on, which is no trouble, nor what a head tells, which is."""

    rule, trigger, tensor, save_every = "parameters_without_gradient", 0, "large.weight", 2

    def __init__(self):
        super().__init__()
        self.model = SkipsAndHeads()
        self.optimizer = self.make_optimizer()

    def forward(self, x, step):
        return self.model(x)[:, :10]


class HeadUnheeded(Loop):
    """The loss looks at one of two heads: the other one has a gradient, and it is zero."""

    rule, trigger, tensor, save_every = "parameters_without_gradient", 0, "large.weight", 2

    def __init__(self):
        super().__init__()
        self.model = TwoHeads()
        self.optimizer = self.make_optimizer()

    def forward(self, x, step):
        return self.model(x)[:, :10]


class LeftInEval(Loop):
    rule, trigger = "training_in_eval_mode", 10

    def evaluate(self, step):
        super().evaluate(step)
        self.model.eval()


class EvaluatedInTrain(Loop):
    rule, trigger = "evaluation_in_train_mode", 10

    def evaluate(self, step):
        with torch.no_grad():
            self.model(self.x[1500:])


class PartLeftInTrain(Loop):
    rule, trigger, tensor = "evaluation_in_train_mode", 10, "activation/1"

    def evaluate(self, step):
        self.model.eval()
        self.model[1].train()
        with torch.no_grad():
            self.model(self.x[1500:])
        self.model.train()


class PartLeftInEval(Loop):
    """The dropout of a block is off in each step, from the first on."""

    rule, trigger, tensor = "training_in_eval_mode", 0, "activation/3"

    def before(self, step):
        self.model[3].eval()


class NormLeftInEval(Loop):
    """Nothing is normalised: the running statistics are those of a new layer."""

    rule, trigger, tensor = "training_in_eval_mode", 0, "activation/1"

    def before(self, step):
        self.model[1].eval()


class OneNormHeld(Loop):
    """Of two trained layers, statistics of one are held, and those of the other one go on."""

    rule, trigger, tensor = "training_in_eval_mode", 0, "activation/1"

    def make_model(self):
        return make_trained()

    def before(self, step):
        self.model[1].eval()


class BegunInEval(Loop):
    """Nothing is ever normalised: the model was put into eval mode before its first step."""

    rule, trigger = "training_in_eval_mode", 0

    def make_model(self):
        return nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))

    def before(self, step):
        self.model.eval()


class PartLaterInEval(Loop):
    rule, trigger, tensor = "training_in_eval_mode", 19, "activation/3"

    def before(self, step):
        if step >= 19:
            self.model[3].eval()


class SetAnew(Loop):
    rule, trigger, tensor = "replaced_weights", TRIGGER, "4.weight"

    def before(self, step):
        if step == TRIGGER:
            self.model[4].reset_parameters()


class SetBack(Loop):
    """The weights of the beginning are loaded again."""

    rule, trigger, tensor = "replaced_weights", 25, "0.weight"

    def before(self, step):
        if step == 0:
            self.first = {name: value.clone() for name, value in self.model.state_dict().items()}
        if step == 25:
            self.model.load_state_dict(self.first)


class NotFilled(Loop):
    rule, trigger, tensor = "uninitialised_values", 0, "1.running_mean"

    def before(self, step):
        if step == 0:
            self.model[1].running_mean.fill_(3.7e19)


class NeverScheduled(Loop):
    rule, trigger = "frozen_schedule", 20

    def before(self, step):
        if self.schedule is None:
            self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)


class StuckAtZero(Loop):
    rule, trigger = "frozen_schedule", 0

    def before(self, step):
        if self.schedule is None:
            self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda n: min(1.0, n / 10))


class StuckNearZero(Loop):
    rule, trigger = "frozen_schedule", 10

    def before(self, step):
        if self.schedule is None:
            self.schedule = torch.optim.lr_scheduler.LambdaLR(
                self.optimizer, lambda n: 1e-4 + min(1.0, n / 10)
            )


class Overflowing(Loop):
    rule, trigger = "stuck_scaler", TRIGGER

    def __init__(self):
        super().__init__()
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)

    def forward(self, x, step):
        out = super().forward(x, step)
        self.scaler.scale(out.sum())  # makes the scale
        out.register_hook(lambda grad: grad * (torch.inf if step >= TRIGGER else self.scaler.get_scale()))
        return out

    def move(self, step):
        self.scaler.step(self.optimizer)
        self.scaler.update()


class Twice(Loop):
    rule, trigger = "same_batches", 0

    def rows(self, step):
        return torch.randint(0, 1500, (32,), generator=torch.Generator().manual_seed(step // 2))


class FourTimes(Loop):
    rule, trigger = "same_batches", 1

    def rows(self, step):
        return torch.randint(0, 1500, (32,), generator=torch.Generator().manual_seed(step // 4))


class Ending(Loop):
    """The loader gives its last batch again when it is used up."""

    rule, trigger = "same_batches", TRIGGER

    def rows(self, step):
        return torch.randint(0, 1500, (32,), generator=torch.Generator().manual_seed(min(step, TRIGGER)))


class AFew(Loop):
    """An iterator over the data that is made anew every third step."""

    rule, trigger = "same_batches", 0

    def rows(self, step):
        return torch.arange(32 * (step % 3), 32 * (step % 3) + 32)


class SetBackAWhile(Loop):
    """An older checkpoint is loaded in mid-run."""

    rule, trigger, steps = "replaced_weights", 65, 80

    def before(self, step):
        if step == 20:
            self.older = {name: value.clone() for name, value in self.model.state_dict().items()}
        if step == 65:
            self.model.load_state_dict(self.older)


class AverageLeftIn(Loop):
    """Averaged weights are put in for an evaluation, and once they are not taken out."""

    rule, trigger, steps = "replaced_weights", 90, 110

    def before(self, step):
        if step == 0:
            self.mean = {name: one.detach().clone() for name, one in self.model.named_parameters()}
        with torch.no_grad():
            for name, one in self.model.named_parameters():
                self.mean[name].lerp_(one, 0.02)
                if step == 90:
                    one.copy_(self.mean[name])


class NoisyAverageLeftIn(AverageLeftIn):
    """The same where steps go to and fro more than on."""

    def make_optimizer(self):
        return torch.optim.RMSprop(self.model.parameters(), 2e-2)

    def rows(self, step):
        return torch.randint(0, 1500, (8,))


FAULTY = (
    *(NotReset, Skipping, NeverStepping, OneOfTwoNeverStepping, HeadForgotten, HeadExchanged),
    *(
        OtherModel,
        CutOff,
        LeftInEval,
        EvaluatedInTrain,
        PartLeftInTrain,
        PartLeftInEval,
        NormLeftInEval,
        PartLaterInEval,
        OneNormHeld,
        BegunInEval,
        SetAnew,
        SetBack,
        NotFilled,
        NeverScheduled,
    ),
    *(StuckAtZero, StuckNearZero, Overflowing, Twice, FourTimes, Ending, AFew),
    *(SetBackAWhile, AverageLeftIn, NoisyAverageLeftIn, HeadUnheeded),
)
