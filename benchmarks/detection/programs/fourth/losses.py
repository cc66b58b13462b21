"""Losses and scores of the fourth held-out set."""

from __future__ import annotations

import math

import torch
from torch import nn

from benchmarks.detection.recipe import accuracy, fit_of

__all__ = ["Both", "Connected", "Cox", "Density", "Dice", "Distilled", "Episode", "InBatch", "Levels",
           "Listed", "Named", "Quantiles", "Several", "Switched", "ZeroInflated"]  # fmt: skip


class Levels(nn.Module):
    """Cross-entropy of "above the limit", over all limits."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        above = (wanted[:, None] > torch.arange(told.shape[1])).to(told.dtype)
        return nn.functional.binary_cross_entropy_with_logits(told, above)

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        return float(((told > 0).sum(1) == wanted).float().mean())


class Cox(nn.Module):
    """Minus the partial log-likelihood (Cox): who of those still there ended first?"""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        order = wanted[:, 0].argsort(descending=True)
        risk, ended = told[order, 0], wanted[order, 1]
        return -((risk - risk.logcumsumexp(0)) * ended).sum() / ended.sum().clamp(min=1)

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        """Share of comparable pairs in the right order."""
        risk, (time, ended) = told[:, 0], wanted.T
        pairs = (time[:, None] < time) & (ended[:, None] > 0)
        return float((risk[:, None] > risk)[pairs].float().mean())


class Quantiles(nn.Module):
    """Pinball losses of three quantiles."""

    SHARES = (0.1, 0.5, 0.9)

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        shares, left = torch.tensor(self.SHARES), wanted - told
        return torch.maximum(shares * left, (shares - 1) * left).mean()

    def score(self, told: torch.Tensor, wanted: torch.Tensor) -> float:
        """By how much better than constant quantiles."""
        plain = torch.quantile(wanted, torch.tensor(self.SHARES)).expand(len(wanted), -1)
        return max(-10.0, 1 - float(self(told.float(), wanted) / self(plain, wanted)))


class Density(nn.Module):
    """Minus the log-density of a number under a mixture of bells."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        shares, means, spreads = told.chunk(3, 1)
        spreads = spreads.clamp(-4, 3)
        each = -0.5 * ((wanted - means) * torch.exp(-spreads)) ** 2 - spreads - 0.5 * math.log(2 * math.pi)
        return -(shares.log_softmax(1) + each).logsumexp(1).mean()

    def score(self, told: torch.Tensor, wanted: torch.Tensor) -> float:
        """Log-density above that of one bell for all, at least -10."""
        gain = 0.5 * math.log(2 * math.pi * math.e * float(wanted.var())) - float(self(told, wanted))
        return max(-10.0, gain) if gain == gain else -10.0


class ZeroInflated(nn.Module):
    """Minus the log-likelihood of counts of which some are zero for another reason."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        rate, nothing, wanted = told[:, 0].clamp(max=8), told[:, 1], wanted[:, 0]
        counted = wanted * rate - rate.exp() - torch.lgamma(wanted + 1)
        some = nn.functional.logsigmoid(-nothing) + counted
        none = torch.logaddexp(nn.functional.logsigmoid(nothing), some)
        return -torch.where(wanted == 0, none, some).mean()

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        return fit_of((told[:, :1].clamp(max=8).exp() * torch.sigmoid(-told[:, 1:])), wanted)


class Listed(nn.Module):
    """Cross-entropy of which document comes first (ListNet)."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return -((2 * wanted).softmax(1) * told.log_softmax(1)).sum(1).mean()

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        """How often the best document comes first."""
        return accuracy(told, wanted.argmax(1))


class Both(nn.Module):
    """Square error of an amount and cross-entropy of a kind."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        amount = nn.functional.mse_loss(told[:, 0], wanted[:, 0])
        return amount + nn.functional.cross_entropy(told[:, 1:], wanted[:, 1].long())

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        return (fit_of(told[:, :1], wanted[:, :1]) + accuracy(told[:, 1:], wanted[:, 1])) / 2


class Several(nn.Module):
    """Cross-entropy of flags that minds the rare yes more than the many no."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        chance = told.sigmoid()
        yes = wanted * nn.functional.logsigmoid(told)
        no = (1 - wanted) * chance**2 * nn.functional.logsigmoid(-told)
        return -(yes + no).mean()

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        """Mean over the flags of how often a yes is above a no (half of the times by chance)."""
        found = []
        for one, flag in zip(told.T, wanted.T > 0.5, strict=True):
            if flag.any() and not flag.all():
                apart = one[flag][:, None] - one[~flag]
                found.append(float((apart > 0).float().mean() + 0.5 * (apart == 0).float().mean()))
        return sum(found) / max(1, len(found))


class Switched(nn.Module):
    """Cross-entropy, and how unevenly rows are spread over the experts."""

    def __init__(self, outputs: int, weight: float = 0.1) -> None:
        super().__init__()
        self.outputs, self.weight = outputs, weight

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        shares = told[:, self.outputs :]
        chosen = nn.functional.one_hot(shares.argmax(1), shares.shape[1]).float().mean(0)
        uneven = shares.shape[1] * (chosen * shares.mean(0)).sum()
        return nn.functional.cross_entropy(told[:, : self.outputs], wanted) + self.weight * uneven

    def score(self, told: torch.Tensor, wanted: torch.Tensor) -> float:
        return accuracy(told[:, : self.outputs], wanted)


class Distilled(nn.Module):
    """What a teacher thinks of all classes (the columns behind the label), softened, and the label."""

    def __init__(self, heat: float = 3.0) -> None:
        super().__init__()
        self.heat = heat

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        soft = (wanted[:, 1:] / self.heat).softmax(1)
        near = nn.functional.kl_div((told / self.heat).log_softmax(1), soft, reduction="batchmean")
        return self.heat**2 * near + 0.3 * nn.functional.cross_entropy(told, wanted[:, 0].long())

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        return accuracy(told, wanted[:, 0])


class Dice(nn.Module):
    """Overlap of masks and cross-entropy of pixels, half each."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        shares = told.sigmoid()
        same = 2 * (shares * wanted).sum((1, 2, 3)) + 1
        dice = 1 - (same / ((shares + wanted).sum((1, 2, 3)) + 1)).mean()
        return 0.5 * dice + 0.5 * nn.functional.binary_cross_entropy_with_logits(told, wanted)

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        """Intersection over union."""
        mask, real = told > 0, wanted > 0.5
        return float((mask & real).sum() / ((mask | real).sum() + 1e-9))


class Connected(nn.Module):
    """CTC: the sounds in order, wherever they are; 0 is none and pads."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        rows, length, _ = told.shape
        return nn.functional.ctc_loss(
            told.log_softmax(2).transpose(0, 1), wanted, torch.full((rows,), length), (wanted > 0).sum(1),
            zero_infinity=True,
        )  # fmt: skip

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        """Share of the rows of which every sound is told."""
        right = 0
        for best, row in zip(told.argmax(2), wanted, strict=True):
            heard = torch.unique_consecutive(best)
            right += heard[heard > 0].tolist() == row[row > 0].tolist()
        return right / len(wanted)


class Episode(nn.Module):
    """Which kind is a row nearest to? By the means of the others' codes (prototypes)."""

    @staticmethod
    def _near(told: torch.Tensor, wanted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kinds, place = wanted.unique(return_inverse=True)
        first = torch.zeros(len(wanted), dtype=torch.bool)
        for one in range(len(kinds)):
            rows = torch.nonzero(place == one).flatten()
            first[rows[: max(1, len(rows) // 2)]] = True
        means = torch.stack([told[first & (place == one)].mean(0) for one in range(len(kinds))])
        return -(torch.cdist(told[~first], means) ** 2), place[~first]

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        near, place = self._near(told, wanted)
        return nn.functional.cross_entropy(near, place)

    @classmethod
    def score(cls, told: torch.Tensor, wanted: torch.Tensor) -> float:
        return accuracy(*cls._near(told, wanted))


class InBatch(nn.Module):
    """Which item of the batch did a user take? Less what the popular ones have by being in many batches."""

    def __init__(self, heat: float = 0.15) -> None:
        super().__init__()
        self.heat = heat

    def forward(self, told: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        u, i = told.chunk(2, 1)
        again = (item[:, None] == item) & ~torch.eye(len(item), dtype=torch.bool)
        return nn.functional.cross_entropy(
            (u @ i.T / self.heat).masked_fill(again, -1e9), torch.arange(len(u))
        )

    @staticmethod
    def score(told: torch.Tensor, item: torch.Tensor) -> float:
        """How often what was taken is nearer than something else (half of the times by chance)."""
        u, i = told.chunk(2, 1)
        near = u @ i.T
        return float((near.diag()[:, None] > near)[item[:, None] != item].float().mean())


class Named(nn.Module):
    """Cross-entropy of the places that were hidden; -100 is not asked for."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(told, wanted, ignore_index=-100)

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        asked = wanted != -100
        return float((told.argmax(1) == wanted)[asked].float().mean())
