"""Commands, dances, numerals, lifts, hives and snowflakes of the twelfth set. Token 0 pads."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, floats, scaled, split

__all__ = ["ASKED", "STEPS", "SYMBOLS", "TOLD", "WORDS", "commands", "dances", "hives", "lifts", "numerals",
           "snowflakes"]  # fmt: skip

NOT, BUT, THEN, ACTIONS, ROOMS, DEVICES, WORDS = 6, 8, 9, 10, 34, 44, 64
"""Of words: 1 is not known, 2 to 5 say nothing, then come those that join, and six times four actions."""
STEPS = 30
SYMBOLS = "\0=0123456789IVXLCDM"
ASKED, TOLD = 15, 4
"""Places of a Roman numeral, and of its digits."""


def _order(random: np.random.Generator, intent: int, tag: int) -> tuple[list[int], list[int]]:
    """What is to be done with a device, perhaps where, and tags of its words."""
    told = [ACTIONS + 4 * intent + int(random.integers(0, 4)), DEVICES + int(random.integers(0, 20))]
    room = [ROOMS + int(random.integers(0, 10))] * (random.random() < 0.5)
    return [*told, *room], [0, tag] + [3] * len(room)


@cache
def commands(
    length: int, seed: int, rows: int = 2400, share: tuple[float, ...] = ()
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Words said to a house (N, length), what it is to do (of six), and tags (N, length).

    Some begin with what is not to be done, some go on with what is to be done later; one word of twenty is
    not understood. Tags are 1 for the
    device that is meant, 2 for others, 3 for a room, 0 for other words, and -100 for padding.
    """
    random = np.random.default_rng(seed)
    intent = random.choice(6, rows, p=share or None)
    x, y = np.zeros((rows, length), np.int64), np.full((rows, length), -100)
    for row in range(rows):
        words = list(random.integers(2, 6, random.integers(0, 4)))
        tags = [0] * len(words)
        if random.random() < 0.4:
            more = _order(random, int(random.integers(0, 6)), 2)
            words, tags = [*words, NOT + random.integers(0, 2), *more[0], BUT], [*tags, 0, *more[1], 0]
        more = _order(random, intent[row], 1)
        words, tags = words + more[0], tags + more[1]
        if random.random() < 0.4:
            more = _order(random, int(random.integers(0, 6)), 2)
            words, tags = [*words, THEN, *more[0]], [*tags, 0, *more[1]]
        end = min(length, len(words))
        x[row, :end], y[row, :end] = words[:end], tags[:end]
    x[(random.random(x.shape) < 0.05) & (x > 0)] = 1
    return torch.tensor(x), torch.tensor(intent), torch.tensor(y)


@cache
def dances(length: int, seed: int, rows: int = 2000) -> Split:
    """Steps of dances, and the next one at each place: two figures in turn, now and then a step of chance."""
    random = np.random.default_rng(seed)
    figures = random.integers(2, STEPS, (10, 5))
    found = np.zeros((rows, length + 1), np.int64)
    for row in range(rows):
        pair, turn = random.choice(10, 2, replace=False), int(random.integers(0, 2))
        steps: list[int] = []
        while len(steps) <= length + 5:
            steps += list(figures[pair[turn]][: 3 + int(pair[turn]) % 3])
            turn = 1 - turn if random.random() < 0.85 else turn
        begun = random.integers(0, 5)
        found[row] = steps[begun : begun + length + 1]
    chance = random.random(found.shape) < 0.05
    found[chance] = random.integers(2, STEPS, int(chance.sum()))
    both = torch.tensor(found)
    return split(both[:, :-1], both[:, 1:], seed=seed)


@cache
def numerals(seed: int, most: int = 3999) -> Split:
    """Roman numerals, and behind each what is known of its digits; all four of those."""
    units = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
             (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]  # fmt: skip
    x, y = [], []
    for number in range(1, most + 1):
        text, rest = "", number
        for value, sign in units:
            text, rest = text + sign * (rest // value), rest % value
        last = f"{number:04}"
        x.append([SYMBOLS.index(one) for one in text.ljust(ASKED, "\0") + "=" + last[:-1]])
        y.append([SYMBOLS.index(one) for one in last])
    return split(torch.tensor(x), torch.tensor(y), seed=seed)


@cache
def lifts(
    kinds: int, length: int, seed: int, rows: int = 2400, noise: float = 0.5
) -> tuple[torch.Tensor, torch.Tensor]:
    """Current, speed and shaking of a lift on its way (N, length, 3), standardised, and what is worn.

    A worn part makes the current swing and the cabin jolt, each as often as is its own, while it moves.
    """
    random = np.random.default_rng(seed)
    swing, every = random.uniform(0.5, 1.6, kinds), 4 + random.permutation(kinds)
    lean = random.choice([-0.6, 0.0, 0.6], kinds)
    kind, time = random.integers(0, kinds, rows), np.arange(length)[None]
    start, end = random.integers(1, 5, (rows, 1)), length - random.integers(1, 5, (rows, 1))
    up, load = random.choice([-1.0, 1.0], (rows, 1)), random.uniform(0.5, 1.5, (rows, 1))
    moving = np.clip(np.minimum(time - start, end - time) / 4, 0, 1)
    speed = up * moving
    angle = swing[kind][:, None] * time + random.uniform(0, 2 * np.pi, (rows, 1))
    current = load * np.diff(speed, axis=1, prepend=0) * 4 + moving * (0.8 * np.sin(angle) + 0.5 * load)
    jolt = (time + random.integers(0, 12, (rows, 1))) % every[kind][:, None] == 0
    shaking = moving * (1.5 * jolt * random.uniform(0.6, 1.4, (rows, length)) + lean[kind][:, None] * up)
    seen = np.stack([current, speed, shaking], 2)
    seen = scaled((seen + noise * random.normal(size=seen.shape)).reshape(-1, 3)).reshape(rows, length, 3)
    return floats(seen), torch.tensor(kind)


@cache
def hives(window: int, ahead: int, seed: int, rows: int = 2400, noise: float = 0.15) -> Split:
    """Warmth, humming and weight of hives by hours (N, window, 3), and the humming to come (N, ahead).

    Standardised. Bees hum in swells as long as the hive is strong, louder in the warmth of some hours ago;
    the weight grows with it, and falls at night.
    """
    random = np.random.default_rng(seed)
    hours = window + ahead + 6
    time, phase = np.arange(hours)[None], random.uniform(0, 2 * np.pi, (rows, 2))
    warm = np.sin(2 * np.pi * time / 24 + phase[:, :1])
    drift = np.cumsum(0.15 * random.normal(size=(rows, hours)), 1)
    warm = warm + drift - drift.mean(1, keepdims=True)
    swell = np.sin(random.uniform(0.35, 0.9, (rows, 1)) * time + phase[:, 1:])
    hum = random.uniform(0.5, 1.2, (rows, 1)) * swell + 0.9 * np.tanh(np.roll(warm, 3, 1))
    hum = hum + 0.4 * (swell > 0) * (warm > 0)
    weight = np.cumsum(0.2 * hum - 0.1 * (warm < -0.5), 1)
    weight = weight - weight[:, 6:7]
    seen = np.stack([warm, hum, weight], 2)[:, 6:]
    seen = scaled(seen.reshape(-1, 3)).reshape(rows, -1, 3)
    seen = seen + noise * random.normal(size=seen.shape)
    return split(floats(seen[:, :window]), floats(seen[:, window:, 1]), seed=seed)


@cache
def snowflakes(
    kinds: int, channels: int, seed: int, rows: int = 2400, noise: float = 0.6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures of flakes (N, channels, 16, 16), turned and moved, and of which kind they are.

    A kind has as many arms, and rings as bright, as is its own.
    """
    random = np.random.default_rng(seed)
    arms, ring = 2 + np.arange(kinds) % 4, random.normal(size=(kinds, channels, 3))
    kind = random.integers(0, kinds, rows)
    place = 7.5 + random.normal(size=(rows, 2, 1, 1))
    down, along = np.arange(16)[None, :, None] - place[:, 0], np.arange(16)[None, None] - place[:, 1]
    radius = np.hypot(down, along) / random.uniform(0.85, 1.15, (rows, 1, 1))
    angle = np.arctan2(down, along) - random.uniform(0, 2 * np.pi, (rows, 1, 1))
    wave = np.stack([np.cos(one * radius * np.pi / 8) for one in (0, 1, 2)], 1)
    light = np.einsum("ncw,nwhv->nchv", ring[kind], wave)
    light = light * (1 + 0.8 * np.cos(arms[kind][:, None, None] * angle))[:, None]
    light = light * np.exp(-((radius / 7) ** 4))[:, None]
    light = light + noise * light.std() * random.normal(size=light.shape)
    return floats(scaled(light.reshape(-1, 1)).reshape(light.shape)), torch.tensor(kind)
