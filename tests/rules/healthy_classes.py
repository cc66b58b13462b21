"""Healthy trainings on classes that look odd: losses that rise, stay, or are small from the start."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.rules.healthy_loops import adam, digits, fit, mlp, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rules.healthy_loops import Attach


class Noisy(nn.Module):
    """Labels of which a third is wrong, and dropout of more than half: the loss falls by some percent."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.6), nn.Linear(96, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def noisy_labels(attach: Attach, *, functional: bool = False) -> None:
    x, y = digits()
    y = torch.where(torch.rand(len(y)) < 0.32, 1 - y % 2, y % 2)
    model, criterion = Noisy(), nn.CrossEntropyLoss()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        return F.cross_entropy(model(x[at]), y[at]) if functional else criterion(model(x[at]), y[at])

    loss = None if functional else criterion
    fit(attach, model, loss_of, torch.optim.SGD(model.parameters(), 0.03), loss=loss)


def noisy_labels_functional(attach: Attach) -> None:
    noisy_labels(attach, functional=True)


def curriculum(attach: Attach) -> None:
    """Two classes first, then five, then ten: the loss rises with each of them."""
    (x, y), model, criterion = digits(), mlp(), nn.CrossEntropyLoss()

    def loss_of(step: int) -> torch.Tensor:
        known = torch.nonzero(y < (2, 5, 10)[min(2, step // 80)]).flatten()
        at = known[rows(known)]
        return criterion(model(x[at]), y[at])

    fit(attach, model, loss_of, adam(model, 1e-3), loss=criterion, steps=300)


def adversarial(attach: Attach) -> None:
    """Inputs are moved against the model in each step: its loss falls slowly."""
    (x, y), model, criterion = digits(), mlp(), nn.CrossEntropyLoss()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        given = x[at].clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(F.cross_entropy(model(given), y[at]), given)
        return criterion(model((given + 0.35 * slope.sign()).detach()), y[at])

    fit(attach, model, loss_of, loss=criterion)


def classes(
    attach: Attach,
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = adam,
    criterion: nn.Module | None = None,
    **settings: Any,
) -> None:
    """Digits by a plain net, or the one given."""
    (x, y), criterion = digits(), criterion or nn.CrossEntropyLoss()
    size, model = settings.pop("size", 48), settings.pop("model", None) or mlp()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x, size)
        return criterion(model(x[at]), y[at])

    fit(attach, model, loss_of, optimizer(model), loss=criterion, **settings)


def large_batch(attach: Attach) -> None:
    classes(attach, lambda model: torch.optim.SGD(model.parameters(), 0.02), size=1500)


def cyclic_rate(attach: Attach) -> None:
    wave = lambda step: 0.05 + 0.95 * (1 - abs((step % 50) / 25 - 1))  # noqa: E731
    classes(attach, lambda model: torch.optim.SGD(model.parameters(), 0.4), schedule=wave)


def one_cycle(attach: Attach) -> None:
    cycle = lambda step: 0.04 + 0.96 * min(step / 60, max(0.0, 1 - (step - 60) / 170))  # noqa: E731
    classes(attach, lambda model: torch.optim.SGD(model.parameters(), 0.3, momentum=0.85), schedule=cycle)


def smoothed_labels(attach: Attach) -> None:
    classes(attach, criterion=nn.CrossEntropyLoss(label_smoothing=0.4))


class Focal(nn.Module):
    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        plain = F.cross_entropy(told, wanted, reduction="none")
        return ((1 - torch.exp(-plain)) ** 2 * plain).mean()


def focal(attach: Attach) -> None:
    """One row in thirty is of the second class; the loss is small from the start."""
    (x, y), model, criterion = digits(), mlp(64, 2), Focal()
    seldom = torch.nonzero((y != 3) | (torch.rand(len(y)) < 0.3)).flatten()

    def loss_of(_: int) -> torch.Tensor:
        at = seldom[rows(seldom, 96)]
        return criterion(model(x[at]), (y[at] == 3).long())

    fit(attach, model, loss_of, loss=criterion)


def connectionist(attach: Attach) -> None:
    """CTC: for long there are blanks only."""
    model, criterion, looks = (
        nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 6)),
        nn.CTCLoss(),
        torch.randn(5, 8),
    )

    def loss_of(_: int) -> torch.Tensor:
        said = torch.randint(0, 5, (24, 4))
        heard = looks[said].repeat_interleave(3, 1) + 0.5 * torch.randn(24, 12, 8)
        told = model(heard).log_softmax(2).transpose(0, 1)
        return criterion(told, said + 1, torch.full((24,), 12), torch.full((24,), 4))

    fit(attach, model, loss_of, loss=criterion)


def followed(attach: Attach) -> None:
    """A copy that follows slowly (EMA) stands beside the model."""
    model = nn.ModuleDict({"net": mlp(), "follower": mlp().requires_grad_(False)})
    (x, y), criterion = digits(), nn.CrossEntropyLoss()
    model["follower"].load_state_dict(model["net"].state_dict())

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        model["follower"](x[at])
        return criterion(model["net"](x[at]), y[at])

    def follow(_: int) -> None:
        with torch.no_grad():
            for slow, fast in zip(model["follower"].parameters(), model["net"].parameters(), strict=True):
                slow.lerp_(fast, 0.01)

    fit(attach, model, loss_of, loss=criterion, after=follow)


def tuned_gently(attach: Attach) -> None:
    """A model that knows nearly all of it already, at a rate that hardly moves it."""
    (x, y), model, criterion = digits(), mlp(), nn.CrossEntropyLoss()
    before = adam(model)
    for _ in range(70):
        at = rows(x)
        before.zero_grad()
        F.cross_entropy(model(x[at]), y[at]).backward()
        before.step()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        return criterion(model(x[at]), y[at])

    fit(attach, model, loss_of, adam(model, 1e-6), loss=criterion)


def thawed(attach: Attach) -> None:
    """The head alone first, and all of it later."""
    (x, y), model, criterion = digits(), mlp(), nn.CrossEntropyLoss()
    optimizer = adam(model)
    for one in model[:4].parameters():
        one.requires_grad_(False)

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        return criterion(model(x[at]), y[at])

    def thaw(step: int) -> None:
        if step == 90:
            for one in model.parameters():
                one.requires_grad_(True)

    fit(attach, model, loss_of, optimizer, loss=criterion, after=thaw)


def few_rows(attach: Attach) -> None:
    """Twenty rows, all of them in each step."""
    (x, y), model, criterion = digits(), mlp(), nn.CrossEntropyLoss()
    fit(attach, model, lambda _: criterion(model(x[:20]), y[:20]), loss=criterion)


def distillation(attach: Attach) -> None:
    """Soft labels of another net, at a high temperature: what is left to learn is little."""
    (x, _), model, criterion = digits(), mlp(), nn.KLDivLoss(reduction="batchmean")
    teacher = copy.deepcopy(mlp())
    with torch.no_grad():
        teacher[4].weight.mul_(6.0)

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        with torch.no_grad():
            wanted = (teacher(x[at]) / 2).softmax(1)
        return criterion((model(x[at]) / 2).log_softmax(1), wanted)

    fit(attach, model, loss_of, loss=criterion)


def several_tasks(attach: Attach) -> None:
    """Two heads, of which one has nothing to learn: its targets are noise."""
    (x, y), body = digits(), nn.Sequential(nn.Linear(64, 32), nn.ReLU())
    model = nn.ModuleDict({"body": body, "kind": nn.Linear(32, 10), "noise": nn.Linear(32, 1)})

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        h = model["body"](x[at])
        return (
            F.cross_entropy(model["kind"](h), y[at])
            + 3 * (model["noise"](h)[:, 0] - torch.randn(48)).square().mean()
        )

    fit(attach, model, loss_of)


def signs_only(attach: Attach) -> None:
    """An optimizer that takes nothing but signs of a momentum (Lion)."""

    class Signs(torch.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 3e-4})

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for one in group["params"]:
                    mean = self.state[one].setdefault("mean", torch.zeros_like(one))
                    one.add_((0.9 * mean + 0.1 * one.grad).sign(), alpha=-group["lr"])
                    mean.lerp_(one.grad, 0.01)

    classes(attach, lambda model: Signs(model.parameters()))


CLASSES = (
    noisy_labels,
    noisy_labels_functional,
    curriculum,
    adversarial,
    large_batch,
    cyclic_rate,
    one_cycle,
    smoothed_labels,
    focal,
    connectionist,
    followed,
    tuned_gently,
    thawed,
    few_rows,
    distillation,
    several_tasks,
    signs_only,
)
