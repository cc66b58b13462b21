"""What suits whom, and learning to compare pictures, in the eleventh set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import eighth_sequences, fourth, setup, silent, sixth_tables
from benchmarks.detection.program import Task
from benchmarks.detection.programs.eleventh import pairs_data as data
from benchmarks.detection.programs.eleventh import pictures_data
from benchmarks.detection.programs.eleventh.pictures_nets import looks
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Yes
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.tenth.pairs import Grouped
from benchmarks.detection.recipe import Recipe, mean_loss, neighbours

__all__ = ["TASKS"]


class Collaborative(nn.Module):
    """Products of two vectors beside dense layers over two others (He et al., 2017): logits N x 1."""

    def __init__(self, kinds: int, width: int = 8, drop: float = 0.1) -> None:
        super().__init__()
        self.near, self.far, self.drop = (
            nn.Embedding(kinds, width),
            nn.Embedding(kinds, width),
            nn.Dropout(drop),
        )
        self.body = stack((2 * width, 32, 16, width), nn.ReLU)
        self.head = nn.Linear(2 * width, 1)
        for one in (self.near, self.far):
            nn.init.normal_(one.weight, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        near, far = self.near(x), self.drop(self.far(x)).flatten(1)
        return self.head(torch.cat([near[:, 0] * near[:, 1], self.body(far)], 1))


def recipes_liked(seed: int) -> Recipe:
    recipe = Recipe(
        Collaborative(180), *data.recipes(1131, 100, 80), nn.BCEWithLogitsLoss(), Yes.ranked, batch=128,
        steps=240, optimizer=lambda p: torch.optim.Adam(p, 3e-2),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def meals_next(seed: int) -> Recipe:
    """Dense layers over the mean vector of what was eaten (Covington et al., 2016, small)."""
    recipe = Recipe(
        nn.Sequential(nn.EmbeddingBag(70, 32), stack((32, 64, 70), nn.ReLU, drop=lambda: nn.Dropout(0.1))),
        *data.meals(1132, 70), score=mean_loss, batch=128, steps=240,
        optimizer=lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.02),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


class Alike(nn.Module):
    """Cosines of the own kind above a half and of others below it, hard pairs first (Wang et al., 2019)."""

    def forward(self, told: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
        code = nn.functional.normalize(told, dim=1)
        above, alike = code @ code.T - 0.5, kind[:, None] == kind
        own = alike & ~torch.eye(len(code), dtype=torch.bool)
        near = ((-2 * above).exp() * own).sum(1).log1p() / 2
        far = ((20 * above).exp() * ~alike).sum(1).log1p() / 20
        return (near + far).mean()


def keywords_near(seed: int) -> Recipe:
    recipe = Recipe(
        looks((1, 12, 24), 12, nn.ReLU, nn.BatchNorm2d), *pictures_data.keywords(1133, 9, 3200, 0.6), Alike(),
        neighbours, batch=72, steps=150, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def lesions_near(seed: int) -> Recipe:
    recipe = Recipe(
        looks((3, 12, 24), 16, nn.SiLU, nn.BatchNorm2d), *pictures_data.lesions(1134, 2800), Grouped(0.2),
        neighbours, batch=80, steps=150, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.02),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


TASKS = (
    Task("recipes_liked", "embedding", recipes_liked, {"batches": w.batches_of(160)},
         (sixth_tables.too_long(10), silent.stale_optimizer("head"))),
    Task("meals_next", "embedding", meals_next, {"nadam": w.by("NAdam", 8e-3)},
         (fourth.ended_early(12), silent.skipped(70))),
    Task("keywords_near", "representation", keywords_near, {"batches": w.batches_of(96)},
         (setup.symmetric(), silent.stuck_loader(80))),
    Task("lesions_near", "representation", lesions_near, {"batches": w.batches_of(64)},
         (setup.collapsed("16", 30.0), eighth_sequences.part_in_eval("1"))),
)  # fmt: skip
