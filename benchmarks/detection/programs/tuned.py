"""Fine-tuning: a frozen trunk with a new head, and low-rank additions to frozen layers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from benchmarks.detection.faults import sagemaker, setup, silent
from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs import data
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.networks import LowRank, cnn, mlp
from benchmarks.detection.programs.pretraining import pretrained
from benchmarks.detection.recipe import Recipe

if TYPE_CHECKING:
    import torch

__all__ = ["TASKS"]


@cache
def _trunk(kind: str) -> dict[str, torch.Tensor]:
    """Weights learnt on the digits 0 to 4."""
    image = kind == "cnn"
    (x, y), _ = data.digits(image)
    return pretrained(lambda: cnn(10, 8) if image else mlp(64, 64, 10), (x[y < 5], y[y < 5]), 150, seed=99)


def frozen_trunk(seed: int) -> Recipe:
    model = cnn(10, 8)
    model.load_state_dict(_trunk("cnn"))
    model[:5].requires_grad_(False)
    model[6].reset_parameters()
    return Recipe(model, *data.digits(True), steps=150)


def low_rank(seed: int) -> Recipe:
    model = mlp(64, 64, 10)
    model.load_state_dict(_trunk("mlp"))
    model[0], model[2] = LowRank(model[0]), LowRank(model[2])
    return Recipe(model, *data.digits(), steps=150)


def low_rank_cancer(seed: int) -> Recipe:
    """A trunk of random features, frozen, and a low-rank addition to it."""
    model = mlp(30, 48, 2, 2)
    model[2] = LowRank(model[2])
    model[0].requires_grad_(False)
    return Recipe(model, *data.bunch("breast_cancer"), steps=150)


def _all_frozen() -> Fault:
    """The head is frozen along with the trunk by mistake, only one small layer is trained."""
    return silent.left_out("4")


TASKS = (
    Task("frozen_trunk", "fine-tuning", frozen_trunk,
         {"sgd": v.sgd(0.05)},
         (silent.stale_optimizer("6"), sagemaker.rate_tiny(), sagemaker.raw_pixels())),
    Task("low_rank", "fine-tuning", low_rank,
         {"cosine": v.cosine},
         (_all_frozen(), setup.shuffled_labels(), silent.skipped(60))),
    Task("low_rank_cancer", "fine-tuning", low_rank_cancer,
         {"clipped": v.clipped}, (silent.left_out("2.down"), setup.diverging(100.0, 100))),
)  # fmt: skip
