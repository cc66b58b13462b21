"""Healthy trainings that look odd: plateaus, losses that rise or stay, parts that begin at zero or rest."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from collections.abc import Callable

    Attach = Callable[..., Any]

torch.set_num_threads(1)

STEPS = 220


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    data = load_digits()
    return torch.tensor(data.images / 8.0 - 1.0, dtype=torch.float32).flatten(1), torch.tensor(data.target)


def mlp(
    width_in: int = 64, width_out: int = 10, width: int = 32, act: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width_in, width), act(), nn.Linear(width, width), act(), nn.Linear(width, width_out)
    )


def adam(model: nn.Module, rate: float = 3e-3) -> torch.optim.Optimizer:
    return torch.optim.Adam([one for one in model.parameters() if one.requires_grad], rate)


def fit(
    attach: Attach,
    model: nn.Module,
    loss_of: Callable[[int], torch.Tensor],
    optimizer: torch.optim.Optimizer | None = None,
    *,
    loss: nn.Module | None = None,
    schedule: Callable[[int], float] | None = None,
    steps: int = STEPS,
    after: Callable[[int], object] = lambda step: None,
) -> None:
    """One step after the other; a loss that is no module is logged, as users of functions do."""
    optimizer = optimizer or adam(model)
    scheduler = None if schedule is None else torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    with attach(model, optimizer=optimizer, loss=loss) as handle:
        for step in range(steps):
            optimizer.zero_grad()
            value = loss_of(step)
            value.backward()
            if loss is None:
                handle.log(loss=value.item())
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            after(step)


def rows(x: torch.Tensor, size: int = 48) -> torch.Tensor:
    return torch.randint(0, len(x), (size,))


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


class Branch(nn.Module):
    """A residual branch whose last layer begins at zero, beside a wide part that does."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.inner, self.last = nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(32, 32)
        self.head, self.wide = nn.Linear(32, 10), nn.Linear(64, 10, bias=False)
        for one in (self.last, self.wide):
            nn.init.zeros_(one.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.stem(x)
        return self.head(h + self.last(torch.relu(self.inner(h)))) + self.wide(x)


def zero_branch(attach: Attach) -> None:
    (x, y), model, criterion = digits(), Branch(), nn.CrossEntropyLoss()
    y = torch.where(torch.rand(len(y)) < 0.7, torch.randint(0, 10, (len(y),)), y)

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        return criterion(model(x[at]), y[at])

    fit(attach, model, loss_of, torch.optim.Adafactor(model.parameters(), 1e-2), loss=criterion)


class Low(nn.Module):
    """A frozen layer with an update of low rank, of which one half begins at zero."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down, self.up = (
            nn.Linear(layer.in_features, 4, bias=False),
            nn.Linear(4, layer.out_features, bias=False),
        )
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + self.up(self.down(x))


def low_rank(attach: Attach) -> None:
    (x, y), model, criterion = digits(), mlp(), nn.CrossEntropyLoss()
    model[0], model[2] = Low(model[0]), Low(model[2])

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        return criterion(model(x[at]), y[at])

    fit(attach, model, loss_of, loss=criterion)


class Triplet(nn.Module):
    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        far, alike = torch.cdist(told, told), wanted[:, None] == wanted
        return F.softplus((far * alike).amax(1) - far.masked_fill(alike, 1e9).amin(1)).mean()


def metric_learning(attach: Attach) -> None:
    (x, y), model, criterion = digits(), mlp(64, 6), Triplet()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x, 64)
        return criterion(model(x[at]), y[at])

    fit(attach, model, loss_of, adam(model, 1e-3), loss=criterion)


class Siamese(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.code = nn.Sequential(
            nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 16), nn.BatchNorm1d(16)
        )
        self.guess = nn.Sequential(nn.Linear(16, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 16))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        code = self.code(x)
        return self.guess(code), code.detach()


def self_distillation(attach: Attach) -> None:
    """Two views, a predictor and a stopped gradient: nothing pushes apart, and nothing collapses."""
    (x, _), model = digits(), Siamese()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x, 64)
        (one, left), (two, right) = (model(x[at] + 0.4 * torch.randn(64, 64)) for _ in range(2))
        return -(F.cosine_similarity(one, right).mean() + F.cosine_similarity(two, left).mean()) / 2

    fit(attach, model, loss_of, torch.optim.SGD(model.parameters(), 0.05, momentum=0.9))


def contrastive(attach: Attach) -> None:
    (x, _), model, criterion = digits(), mlp(64, 16), nn.CrossEntropyLoss()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x, 96)
        one, two = (F.normalize(model(x[at] + 0.5 * torch.randn(96, 64))) for _ in range(2))
        return criterion(one @ two.T / 0.3, torch.arange(96))

    fit(attach, model, loss_of, adam(model, 1e-3), loss=criterion)


class Drawer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = mlp(64, 48, 48), mlp(6, 64, 48)
        self.mean, self.spread = nn.Linear(48, 6), nn.Linear(48, 6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = torch.relu(self.encode(x))
        mean, spread = self.mean(h), self.spread(h)
        far = -0.5 * (1 + spread - mean**2 - spread.exp()).sum(1).mean()
        return self.decode(mean + torch.randn_like(mean) * torch.exp(spread / 2)), far


def annealed_divergence(attach: Attach) -> None:
    """The weight of the KL term rises from zero, and the loss with it."""
    (x, _), model, criterion = digits(), Drawer(), nn.MSELoss(reduction="sum")

    def loss_of(step: int) -> torch.Tensor:
        at = rows(x)
        drawn, far = model(x[at])
        return criterion(drawn, x[at]) / len(at) + min(1.0, step / 150) * far

    fit(attach, model, loss_of, loss=criterion)


def noise_prediction(attach: Attach) -> None:
    """Diffusion: half of the noise cannot be told, and the loss stays there."""
    (x, _), model, criterion = digits(), mlp(65, 64, 96, nn.SiLU), nn.MSELoss()

    def loss_of(_: int) -> torch.Tensor:
        at, time = rows(x), torch.rand(48, 1)
        noise = torch.randn(48, 64)
        mixed = torch.cos(time * math.pi / 2) * x[at] + torch.sin(time * math.pi / 2) * noise
        return criterion(model(torch.cat([mixed, time], 1)), noise)

    fit(attach, model, loss_of, adam(model, 1e-3), loss=criterion)


class Experts(nn.Module):
    """Each row goes to one of eight experts, held even by a term of the loss: some get none at times."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(64, 8)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10)) for _ in range(8)
        )

        self.uneven = torch.zeros(())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shares = self.gate(x).softmax(1)
        share, chosen = shares.max(1)
        self.uneven = 8 * (F.one_hot(chosen, 8).float().mean(0) * shares.mean(0)).sum()
        told = x.new_zeros(len(x), 10)
        for place, expert in enumerate(self.experts):
            if (mine := chosen == place).any():
                told[mine] = share[mine, None] * expert(x[mine])
        return told


def mixture_of_experts(attach: Attach) -> None:
    (x, y), model, criterion = digits(), Experts(), nn.CrossEntropyLoss()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        return criterion(model(x[at]), y[at]) + 0.05 * model.uneven

    fit(attach, model, loss_of, adam(model, 5e-3), loss=criterion)


def sparse_embeddings(attach: Attach) -> None:
    """Two thousand items of which a batch sees some dozens."""
    taste, model, criterion = (
        torch.randn(2000, 3),
        nn.EmbeddingBag(2000, 8, mode="mean", sparse=True),
        nn.MSELoss(),
    )
    weigh = torch.randn(8, 3) / 3

    def loss_of(_: int) -> torch.Tensor:
        items = (torch.rand(64, 4) ** 3 * 2000).long()
        return criterion(model(items) @ weigh, taste[items].mean(1))

    fit(attach, model, loss_of, torch.optim.SparseAdam(model.parameters(), 2e-2), loss=criterion)


def adversarial(attach: Attach) -> None:
    """Inputs are moved against the model in each step: its loss falls slowly."""
    (x, y), model, criterion = digits(), mlp(), nn.CrossEntropyLoss()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        given = x[at].clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(F.cross_entropy(model(given), y[at]), given)
        return criterion(model((given + 0.35 * slope.sign()).detach()), y[at])

    fit(attach, model, loss_of, loss=criterion)


def _classes(
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
    _classes(attach, lambda model: torch.optim.SGD(model.parameters(), 0.02), size=1500)


def cyclic_rate(attach: Attach) -> None:
    wave = lambda step: 0.05 + 0.95 * (1 - abs((step % 50) / 25 - 1))  # noqa: E731
    _classes(attach, lambda model: torch.optim.SGD(model.parameters(), 0.4), schedule=wave)


def one_cycle(attach: Attach) -> None:
    cycle = lambda step: 0.04 + 0.96 * min(step / 60, max(0.0, 1 - (step - 60) / 170))  # noqa: E731
    _classes(attach, lambda model: torch.optim.SGD(model.parameters(), 0.3, momentum=0.85), schedule=cycle)


def smoothed_labels(attach: Attach) -> None:
    _classes(attach, criterion=nn.CrossEntropyLoss(label_smoothing=0.4))


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


def quantiles(attach: Attach) -> None:
    """Nine quantiles of targets far from zero: at first all rows get the same."""
    model, share, true = mlp(5, 9), torch.linspace(0.1, 0.9, 9), torch.randn(5, 1)

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(64, 5)
        left = 20 + x @ true + torch.randn(64, 1) - model(x)
        return torch.maximum(share * left, (share - 1) * left).mean()

    fit(attach, model, loss_of, adam(model, 1e-2))


def counts(attach: Attach) -> None:
    model, criterion, true = mlp(5, 1), nn.PoissonNLLLoss(), torch.randn(5, 1) / 2

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(64, 5)
        return criterion(model(x), torch.poisson(torch.exp(x @ true)))

    fit(attach, model, loss_of, loss=criterion)


def survival(attach: Attach) -> None:
    """Cox's partial likelihood, of a batch: it falls by a few percent."""
    model, true = mlp(5, 1), torch.randn(5) / 3

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(64, 5)
        order = (torch.distributions.Exponential(torch.exp(x @ true)).sample()).argsort(descending=True)
        risk = model(x)[order, 0]
        return (torch.logcumsumexp(risk, 0) - risk).mean()

    fit(attach, model, loss_of, adam(model, 1e-3))


def heavy_tails(attach: Attach) -> None:
    model, criterion, true = mlp(5, 1), nn.MSELoss(), torch.randn(5, 1)

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(32, 5)
        tail = torch.distributions.StudentT(2.2).sample((32, 1))
        return criterion(model(x), x @ true + tail)

    fit(attach, model, loss_of, adam(model, 1e-3), loss=criterion)


def far_targets(attach: Attach) -> None:
    """Years: targets far from zero that differ by little."""
    model, criterion, true = mlp(5, 1), nn.L1Loss(), torch.randn(5, 1)
    held = torch.randn(200, 5)

    def evaluate(step: int) -> None:
        if step % 30 == 29:
            model.eval()
            with torch.no_grad():
                criterion(model(held), 100 + held @ true)
            model.train()

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(64, 5)
        return criterion(model(x), 100 + x @ true)

    fit(attach, model, loss_of, adam(model, 1e-2), loss=criterion, after=evaluate)


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


def parity(attach: Attach) -> None:
    """Nothing is learnt for long, and then all of it."""
    model, criterion = mlp(8, 2, 64), nn.CrossEntropyLoss()

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randint(0, 2, (64, 8)).float() * 2 - 1
        return criterion(model(x), (x[:, :4].prod(1) > 0).long())

    fit(
        attach,
        model,
        loss_of,
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9),
        loss=criterion,
        steps=320,
    )


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


def game(
    attach: Attach,
    optimizers: tuple[str, str] = ("made", "told"),
    made: nn.Module | None = None,
    after: Callable[[int], object] = lambda step: None,
) -> None:
    """Two nets against each other: one's loss is the other's gain."""
    made, told = made or mlp(4, 2, 24), mlp(2, 1, 24, nn.ELU)
    slow, fast = (torch.optim.Adam(one.parameters(), 1e-3, betas=(0.5, 0.9)) for one in (made, told))
    criterion = nn.BCEWithLogitsLoss()
    named = dict(zip(optimizers, (slow, fast), strict=True))
    with attach({"made": made, "told": told}, optimizer=named, loss=criterion):
        for step in range(STEPS):
            real = torch.randn(64, 2) * torch.tensor([1.0, 0.2]) + torch.tensor([2.0, 0.0])
            fake = made(torch.randn(64, 4))
            fast.zero_grad()
            judged = told(torch.cat([real, fake.detach()]))
            criterion(judged, torch.cat([torch.ones(64, 1), torch.zeros(64, 1)])).backward()
            fast.step()
            slow.zero_grad()
            criterion(told(fake), torch.ones(64, 1)).backward()
            slow.step()
            after(step)


def game_that_is_looked_at(attach: Attach) -> None:
    """What it makes of the same numbers is shown now and then, in train mode, as programs of GANs do."""
    made = nn.Sequential(nn.Linear(4, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2))
    numbers = torch.randn(16, 4)

    def show(step: int) -> None:
        if step % 30 == 29:
            with torch.no_grad():
                made(numbers)

    game(attach, made=made, after=show)


def game_of_other_names(attach: Attach) -> None:
    """The same, with optimizers that are not called as their nets are."""
    game(attach, ("slow", "fast"))


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


class Deep(nn.Module):
    """Fourteen residual blocks, each scaled by a number that begins at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(64, 24), nn.Linear(24, 10)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(24, 24), nn.GELU(), nn.Linear(24, 24)) for _ in range(14)
        )
        self.scales = nn.Parameter(torch.zeros(14))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.stem(x)
        for scale, block in zip(self.scales, self.blocks, strict=True):
            h = h + scale * block(h)
        return self.head(h)


def scaled_from_zero(attach: Attach) -> None:
    (x, y), model, criterion = digits(), Deep(), nn.CrossEntropyLoss()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        return criterion(model(x[at]), y[at])

    fit(attach, model, loss_of, torch.optim.SGD(model.parameters(), 0.03, momentum=0.9), loss=criterion)


class Reader(nn.Module):
    """A small transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 24), nn.Parameter(0.02 * torch.randn(12, 24))
        layer = nn.TransformerEncoderLayer(24, 4, 48, 0.1, batch_first=True, norm_first=True)
        self.layers, self.head = (
            nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
            nn.Linear(24, 20),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.layers(self.words(x) + self.places[: x.shape[1]], mask, is_causal=True))


def next_token(attach: Attach) -> None:
    """A language of which half is chance, with a long warm-up."""
    model, criterion, table = Reader(), nn.CrossEntropyLoss(), torch.randperm(20)

    def loss_of(_: int) -> torch.Tensor:
        tokens = [torch.randint(0, 20, (24,))]
        for _place in range(12):
            chance = torch.rand(24) < 0.5
            tokens.append(torch.where(chance, torch.randint(0, 20, (24,)), table[tokens[-1]]))
        x = torch.stack(tokens, 1)
        return criterion(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())

    warm = lambda step: min(1.0, (step + 1) / 120)  # noqa: E731
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.1)
    fit(attach, model, loss_of, optimizer, loss=criterion, schedule=warm)


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


def ranking(attach: Attach) -> None:
    """Pairs of items, of which one was taken: from log 2 down by a little."""
    taste, items, users = torch.randn(40, 3), nn.Embedding(60, 6), nn.Embedding(40, 6)
    worth = torch.randn(60, 3)
    model = nn.ModuleDict({"things": items, "users": users})
    for one in (items, users):
        nn.init.normal_(one.weight, std=0.05)

    def loss_of(_: int) -> torch.Tensor:
        who, one, two = torch.randint(0, 40, (64,)), torch.randint(0, 60, (64,)), torch.randint(0, 60, (64,))
        first = (taste[who] * (worth[one] - worth[two])).sum(1) + torch.randn(64) > 0
        taken, left = torch.where(first, one, two), torch.where(first, two, one)
        return F.softplus(-(users(who) * (items(taken) - items(left))).sum(1)).mean()

    fit(attach, model, loss_of, adam(model, 5e-3))


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

    _classes(attach, lambda model: Signs(model.parameters()))


def energy(attach: Attach) -> None:
    """A field that is the slope of an energy: what the last bias adds to the energy goes for nothing."""
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(64, 2, requires_grad=True)
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return (slope + x.detach()).square().mean()

    fit(attach, model, loss_of)


class Added(nn.Module):
    """A layer and a frozen addition of low rank that is zero."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.base, self.down, self.up = nn.Linear(size, size), nn.Linear(size, 4), nn.Linear(4, size)
        for one in (self.up.weight, self.up.bias):
            nn.init.zeros_(one)
        self.down.requires_grad_(False)
        self.up.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.up(self.down(x))


def frozen_addition(attach: Attach) -> None:
    """Additions that are zero and do not train, beside layers that do."""
    _classes(attach, model=nn.Sequential(Added(64), nn.Tanh(), nn.Linear(64, 10)))


WAYS = (
    noisy_labels, noisy_labels_functional, curriculum, zero_branch, low_rank,
    metric_learning, self_distillation, contrastive, annealed_divergence, noise_prediction,
    mixture_of_experts, sparse_embeddings, adversarial, large_batch, cyclic_rate, one_cycle, smoothed_labels,
    focal, connectionist, quantiles, counts, survival, heavy_tails, far_targets, followed, parity,
    tuned_gently, thawed, few_rows, game, game_of_other_names, game_that_is_looked_at, distillation,
    scaled_from_zero, next_token, several_tasks, ranking, signs_only, energy, frozen_addition,
)  # fmt: skip
