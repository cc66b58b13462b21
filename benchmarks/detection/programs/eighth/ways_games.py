"""Games of a maker and a critic, and learning by trying, in the eighth set."""

from __future__ import annotations

import copy

import torch
from torch import nn

from benchmarks.detection.faults import fourth, sagemaker, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs.eighth import ways_data as data
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.seventh.ways_games import Squares, _copied
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.ways_games import Labelled, _forged
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of

__all__ = ["TASKS"]


def outlines_forged(seed: int) -> Recipe:
    rows = data.outlines(12, 831)
    model = nn.ModuleDict({
        "maker": stack((8, 56, 56, 12), nn.ReLU, nn.LayerNorm), "critic": stack((12, 64, 64, 1), nn.SiLU),
    })  # fmt: skip
    return Recipe(
        model, (rows, rows), NOTHING, Squares(), fit_of, batch=96, steps=280, by_hand=_forged,
        options={"kinds": 0, "smooth": 1.0}, optimizer=lambda p: torch.optim.Adam(p, 1e-3, betas=(0.5, 0.99)),
    )  # fmt: skip


def walkers_forged(seed: int) -> Recipe:
    rows = data.walkers(4, 832)
    model = nn.ModuleDict({
        "maker": stack((8, 64, 64, 8), nn.ReLU), "critic": stack((8, 64, 64, 1), nn.ReLU),
    })  # fmt: skip
    return Recipe(
        model, (rows, rows), NOTHING, Labelled(), fit_of, batch=96, steps=300, by_hand=_forged,
        options={"kinds": 0, "smooth": 1.0}, optimizer=lambda p: torch.optim.Adam(p, 1e-3, betas=(0.5, 0.9)),
    )  # fmt: skip


class Clipped(nn.Module):
    """What was better than expected is made likelier, but not by much at once; and the expectation (PPO)."""

    def forward(self, told: torch.Tensor, tried: torch.Tensor) -> torch.Tensor:
        did, before, gain, later = tried[:, :1].long(), tried[:, 1], tried[:, 2], tried[:, 3]
        likely = told[:, :2].log_softmax(1)
        ratio = (likely.gather(1, did)[:, 0] - before).exp()
        praised = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        spread = -(likely.exp() * likely).sum(1).mean()
        return 0.5 * (told[:, 2] - later).square().mean() - praised - 0.01 * spread


def _lived(recipe: Recipe, step: int, *_: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Some moments of the last days, which are lived anew by the policy as it is every eighth step."""
    kept, source = recipe.options, recipe.options["source"]
    if step % 8 == 0:
        policy, found = kept["other"], []
        policy.load_state_dict(recipe.model.state_dict())
        state = data.began(32, source)
        with torch.no_grad():
            for _moment in range(data.LONG):
                told, known = policy(data.seen(state)), data.seen(state)
                likely = told[:, :2].log_softmax(1)
                did = torch.multinomial(likely.exp(), 1, generator=source)
                state, worth = data.passed(state, did[:, 0].float(), source)
                found.append((known, did[:, 0], likely.gather(1, did)[:, 0], told[:, 2], worth))
            later, sums = policy(data.seen(state))[:, 2], []
            for one in reversed(found):
                later = one[4] + data.KEPT * later
                sums.insert(0, later)
        known, did, likely, expected, _worth = (torch.cat(one) for one in zip(*found, strict=True))
        gain = torch.cat(sums) - expected
        gain = (gain - gain.mean()) / gain.std()
        kept["days"] = known, torch.stack([did.float(), likely, gain, torch.cat(sums)], 1)
    known, tried = kept["days"]
    rows = torch.randperm(len(known), generator=source)[: recipe.batch]
    return known[rows], tried[rows]


def lights_turned(seed: int) -> Recipe:
    """A day's worth is the score, whatever rows are held out; it is asked for at the end."""
    source = torch.Generator().manual_seed(seed)
    some = data.seen(data.began(256, source)), torch.zeros(256, 4)

    def worth(_told: torch.Tensor, _wanted: torch.Tensor) -> float:
        recipe.options["judged"].load_state_dict(recipe.model.state_dict())
        return data.waits(recipe.options["judged"])

    recipe = Recipe(
        stack((5, 48, 48, 3), nn.Tanh), some, some, Clipped(), worth, clip=0.5, batch=192, steps=240,
        on_batch=[_lived], after_optimizer=[_copied], eval_every=1000, options={"source": source},
        optimizer=lambda p: torch.optim.Adam(p, 4e-3), schedule=lambda step: 1 - 0.9 * step / 240,
    )  # fmt: skip
    return recipe


def _foreseen(recipe: Recipe, _step: int, x: torch.Tensor, worth: torch.Tensor):
    """What a moment is worth and what comes after it, by a slower net (temporal differences)."""
    slow = recipe.options.setdefault("slow", copy.deepcopy(recipe.options["other"]))
    now, then = x.chunk(2, 1)
    with torch.no_grad():
        for one, new in zip(slow.parameters(), recipe.model.parameters(), strict=True):
            one.lerp_(new, 0.3)
        return now, worth + data.KEPT * slow(then)


def lights_judged(seed: int) -> Recipe:
    return Recipe(
        stack((5, 64, 64, 1), nn.ReLU), *data.transitions(834), nn.SmoothL1Loss(), fit_of, batch=128,
        steps=280, on_batch=[_foreseen], after_optimizer=[_copied], clip=5.0,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3), schedule=lambda step: 1 - 0.9 * step / 280,
    )  # fmt: skip


TASKS = (
    Task("outlines_forged", "adversarial", outlines_forged, {"larger_batches": w.batches_of(128)},
         (fourth.rate_of_another(0.3), fourth.without_gradient("maker.3"))),
    Task("walkers_forged", "adversarial", walkers_forged, {"larger_batches": w.batches_of(128)},
         (sagemaker.output_zero("maker.2", 100), silent.no_zero_grad())),
    Task("lights_turned", "reinforcement", lights_turned, {"nadam": w.by("NAdam", 3e-3)},
         (sagemaker.weights_scaled(40.0, "weights_large"), silent.left_out("2"))),
    Task("lights_judged", "reinforcement", lights_judged, {"larger_batches": w.batches_of(192)},
         (fourth.raised(200.0, 120), fourth.average_left(120, 0.99))),
)  # fmt: skip
