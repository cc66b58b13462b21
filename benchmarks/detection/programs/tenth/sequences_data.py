"""Series, words and pictures of the tenth set. Token 0 pads."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["ASKED", "SYMBOLS", "TOLD", "fabrics", "formulas", "logs", "postfix", "preys", "sleep"]

SYMBOLS = "\0abcdefgh+-*/()="
ASKED, TOLD = 13, 7
"""Places of a question and of an answer of `postfix`: four names and three signs, and brackets."""


@cache
def sleep(
    kinds: int, channels: int, length: int, seed: int, rows: int = 1800, share: tuple[float, ...] = ()
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Waves of a sleeping head (N, L, C), its stage, and how deep it sleeps (N, 1), standardised.

    Each stage has a pitch of its own on each channel (an autoregression of second order that resonates
    there); the deeper, the larger a slow wave that all channels share.
    """
    random = np.random.default_rng(seed)
    kind = random.choice(kinds, rows, p=share or None)
    pitch = np.stack([random.permutation(np.linspace(0.5, 2.2, kinds)) for _ in range(channels)], 1)[kind]
    pitch, deep = pitch * np.exp(0.06 * random.normal(size=pitch.shape)), random.uniform(0, 1, (rows, 1))
    x = np.zeros((rows, length + 20, channels))
    for at in range(2, length + 20):
        x[:, at] = 1.8 * np.cos(pitch) * x[:, at - 1] - 0.81 * x[:, at - 2] + random.normal(size=pitch.shape)
    slow = np.sin(
        random.uniform(0, 6.3, (rows, 1)) + np.arange(length) * random.uniform(0.15, 0.3, (rows, 1))
    )
    x = x[:, 20:] / x.std() + (1.5 * deep * slow)[:, :, None]
    return floats(x / x.std()), torch.tensor(kind), floats(scaled(deep))


@cache
def preys(window: int, ahead: int, seed: int, rows: int = 2000) -> Split:
    """How many hares and lynxes there were, (N, window, 2), and the hares to come (N, ahead).

    Logarithms, standardised; Lotka and Volterra's equations with rates that differ by valley, and chance.
    """
    random = np.random.default_rng(seed)
    born, eaten, fed, dies = random.uniform(0.7, 1.1, (4, rows))
    hares, lynxes = np.exp(0.5 * random.normal(size=(2, rows)))
    seen = np.zeros((rows, window + ahead, 2))
    for at in range(window + ahead):
        seen[:, at] = np.log(np.stack([hares, lynxes], 1)) + 0.05 * random.normal(size=(rows, 2))
        for _ in range(8):
            shift = 0.02 * random.normal(size=(2, rows))
            grown = hares * np.exp(0.05 * (born - eaten * lynxes) + shift[0])
            lynxes, hares = lynxes * np.exp(0.05 * (fed * hares - dies) + shift[1]), grown
    seen = seen / seen.std()
    return split(floats(seen[:, :window]), floats(seen[:, window:, 0]), seed=seed)


@cache
def logs(
    kinds: int, words: int, length: int, seed: int, rows: int = 2400, share: tuple[float, ...] = ()
) -> tuple[torch.Tensor, ...]:
    """Events of a machine's log (1 to `words`), the job that most are of, the job of each, and was it slow.

    A job is a chain of six events that it begins anew when it ended; events of others come in between, and
    belong to none (0). The end is padded (-100 in the jobs). Slow (N, 1) are rows whose events take long.
    """
    random = np.random.default_rng(seed)
    chains = random.integers(1, words + 1, (kinds, 6))
    cost = random.normal(size=words + 1) * (random.random(words + 1) < 0.5)
    main, y = random.choice(kinds, rows, p=share or None), np.full((rows, length), -100)
    x, ends = np.zeros((rows, length), np.int64), random.integers(length // 2, length + 1, rows)
    for row in range(rows):
        job, done = main[row], random.integers(0, 6)
        for at in range(ends[row]):
            if at and at % 4 == 0:
                job = main[row] if random.random() < 0.55 else random.integers(0, kinds)
                done = random.integers(0, 6) if job != main[row] else done
            own = random.random() < 0.75
            x[row, at] = chains[job, done % 6] if own else random.integers(1, words + 1)
            y[row, at], done = (job + 1) * own, done + own
    took = cost[x].sum(1) + 0.3 * random.normal(size=rows)
    return torch.tensor(x), torch.tensor(main), torch.tensor(y), floats((took > np.median(took))[:, None])


def _formula(random: np.random.Generator, names: np.ndarray) -> tuple[str, str]:
    """A formula of some names with brackets around each part, and the same with its signs last."""
    if len(names) == 1:
        return names[0], names[0]
    cut, sign = random.integers(1, len(names)), random.choice([*"+-*/"])
    (one, one_last), (two, two_last) = _formula(random, names[:cut]), _formula(random, names[cut:])
    one, two = (f"({part})" if len(part) > 1 else part for part in (one, two))
    return f"{one}{sign}{two}", f"{one_last}{two_last}{sign}"


def _coded(text: str, length: int) -> list[int]:
    return [SYMBOLS.index(letter) for letter in text[:length].ljust(length, "\0")]


@cache
def formulas(length: int, seed: int, rows: int = 2000) -> Split:
    """Symbols of formulas one after the other, each of two names only, and the next one at each place."""
    random, found = np.random.default_rng(seed), []
    for _ in range(rows):
        names, text = random.choice([*"abcdefgh"], 2, replace=False), ""
        while len(text) <= length:
            text += _formula(random, random.choice(names, random.integers(2, 6)))[0] + "="
        found.append(_coded(text, length + 1))
    both = torch.tensor(found)
    return split(both[:, :-1], both[:, 1:], seed=seed)


@cache
def postfix(seed: int, rows: int = 6000) -> Split:
    """Formulas of four names, and behind each what is known of its postfix form; all of that (N, 7)."""
    random, x, y = np.random.default_rng(seed), [], []
    for _ in range(rows):
        infix, last = _formula(random, random.choice([*"abcdefgh"], TOLD // 2 + 1))
        x.append(_coded(infix, ASKED) + _coded("=" + last[:-1], TOLD))
        y.append(_coded(last, TOLD))
    return split(torch.tensor(x), torch.tensor(y), seed=seed)


@cache
def fabrics(
    kinds: int, channels: int, seed: int, side: int = 16, rows: int = 1800, noise: float = 0.8
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pictures of woven cloth (N, C, side, side), its kind, and how worn it is (N, 1), standardised.

    Two threads cross; kinds differ in how dense each of them is, and how they lean. Wear takes contrast.
    """
    random = np.random.default_rng(seed)
    kind, wear = random.integers(0, kinds, rows), random.uniform(0, 1, (rows, 1))
    dense = np.stack([random.permutation(np.linspace(0.5, 1.9, kinds)) for _ in range(2)], 1)[kind]
    lean = random.uniform(0, np.pi, kinds)[kind] + 0.1 * random.normal(size=rows)
    dye = random.uniform(0.4, 1.0, (kinds, channels))[kind]
    turn, place = np.stack([lean, lean + np.pi / 2], 1), np.arange(side)
    along = np.cos(turn)[..., None, None] * place + np.sin(turn)[..., None, None] * place[:, None]
    phase = random.uniform(0, 2 * np.pi, (rows, 2, 1, 1))
    weave = np.sin(dense[..., None, None] * along + phase).sum(1) * (1.3 - wear)[:, :, None]
    x = weave[:, None] * dye[:, :, None, None] + noise * random.normal(size=(rows, channels, side, side))
    return floats(x / x.std()), torch.tensor(kind), floats(scaled(wear))
