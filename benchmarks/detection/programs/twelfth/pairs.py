"""What suits whom, and learning to compare pictures, in the twelfth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences, fourth, sagemaker, setup, seventh_tables, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs.eleventh.pictures_nets import looks
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Yes
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.tenth.pairs import Grouped
from benchmarks.detection.programs.twelfth import pairs_data as data
from benchmarks.detection.programs.twelfth import pictures_data
from benchmarks.detection.recipe import Recipe, mean_loss, neighbours

__all__ = ["TASKS"]


class Visited(nn.Module):
    """Vectors of somebody, of a museum and of the weather, and dense layers over them: logits N x 1."""

    def __init__(self, kinds: int, width: int = 10) -> None:
        super().__init__()
        self.kinds, self.drop = nn.Embedding(kinds, width), nn.Dropout(0.1)
        self.body = stack((4 * width, 40, 20), nn.SiLU)
        self.act, self.head = nn.SiLU(), nn.Linear(20, 1)
        nn.init.normal_(self.kinds.weight, std=0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, museum, weather = self.drop(self.kinds(x)).unbind(1)
        found = torch.cat([one, museum, weather, one * museum], 1)
        return self.head(self.act(self.body(found)))


def museums_visited(seed: int) -> Recipe:
    recipe = Recipe(
        Visited(150), *data.museums(1231, 90, 54, 6), nn.BCEWithLogitsLoss(), Yes.ranked, batch=160,
        steps=220, optimizer=lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.02),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


def tools_borrowed(seed: int) -> Recipe:
    """Which tool is borrowed next, by the mean vector of the last ones."""
    recipe = Recipe(
        nn.Sequential(nn.EmbeddingBag(60, 28), stack((28, 56, 60), nn.GELU, nn.LayerNorm)),
        *data.tools(1232, 60), score=mean_loss, batch=112, steps=220,
        optimizer=lambda p: torch.optim.Adam(p, 8e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


class Apart(nn.Module):
    """Squared distances of a kind small, and of others beyond a margin (Hadsell et al., 2006)."""

    def forward(self, told: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
        code = nn.functional.normalize(told, dim=1)
        far, alike = (2 - 2 * code @ code.T).clamp(min=1e-6), kind[:, None] == kind
        own = alike & ~torch.eye(len(code), dtype=torch.bool)
        others = nn.functional.relu(1.2 - far.sqrt()).square()
        return (far * own).sum() / own.sum() + 2 * (others * ~alike).sum() / (~alike).sum()


def beads_alike(seed: int) -> Recipe:
    recipe = Recipe(
        looks((3, 12, 24), 12, nn.ELU, nn.BatchNorm2d), *pictures_data.beads(1233, 2600, 0.08), Apart(),
        neighbours, batch=72, steps=150, optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def tracks_alike(seed: int) -> Recipe:
    recipe = Recipe(
        looks((1, 12, 20), 16, nn.GELU, nn.BatchNorm2d), *pictures_data.tracks(1234, 2600, 0.25),
        Grouped(0.25), neighbours, batch=80, steps=150, optimizer=lambda p: torch.optim.NAdam(p, 3e-3),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


TASKS = (
    Task("museums_visited", "embedding", museums_visited, {"batches": w.batches_of(192)},
         (seventh_tables.uphill(), fifth_sequences.embedding_anew("kinds"))),
    Task("tools_borrowed", "embedding", tools_borrowed, {"batches": w.batches_of(144)},
         (sagemaker.rate_tiny(1e-5), fourth.same_few(3))),
    Task("beads_alike", "representation", beads_alike, {"batches": w.batches_of(96)},
         (fourth.other_rows(), fourth.older_loaded(5, 110))),
    Task("tracks_alike", "representation", tracks_alike, {"adam": w.by("Adam", 3e-3)},
         (setup.collapsed("16", 30.0), silent.left_out("0"))),
)  # fmt: skip
