"""Mixed precision, gradients of several batches, several optimizers and questions, and teachers."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, sagemaker, second, setup, silent, third
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.faults import sixth_tables as tables
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.eighth.ways import Both
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.ninth import sequences_data as data
from benchmarks.detection.programs.ninth.attention_nets import Encoded
from benchmarks.detection.programs.ninth.sequences_nets import Inception, Listening, Residual
from benchmarks.detection.programs.ninth.ways_nets import Asked, Questions, Taught, taught_by
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.ways_precision import Halved
from benchmarks.detection.programs.sixth.ways_tasks import _by_two
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of, mean_loss

__all__ = ["TASKS"]


def cells_quickly(seed: int) -> Recipe:
    recipe = Recipe(
        Residual(1, 4, 12, 0.1), *data.cells(4, 1, 921), batch=48, steps=140, autocast=True,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def soils_quickly(seed: int) -> Recipe:
    x, best = data.soils(12, 2, 922)
    return Recipe(
        stack((12, 64, 64, 1), nn.GELU, nn.LayerNorm), *split(x, best[:, None].float(), seed=922),
        nn.BCEWithLogitsLoss(), lambda told, right: float(((told > 0) == (right > 0.5)).float().mean()),
        batch=64, steps=220, autocast=True, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.1),
        schedule=lambda step: 0.99**step,
    )  # fmt: skip


def quakes_halved(seed: int) -> Recipe:
    x, kind, _ = data.quakes(6, 3, 48, 923)
    body = nn.Sequential(
        nn.Conv1d(3, 16, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(16, 32, 5, padding=2),
        nn.ReLU(), nn.AdaptiveMaxPool1d(2), nn.Flatten(),
    )  # fmt: skip
    recipe = Recipe(
        Halved(body, 64, 6), *split(x.transpose(1, 2), kind, seed=923), batch=48, steps=160, clip=2.0,
        scaler={"init_scale": 2.0**12, "growth_interval": 100},
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def soils_halved(seed: int) -> Recipe:
    body = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    recipe = Recipe(
        Halved(body, 64, 4), *split(*data.soils(10, 4, 924), seed=924), batch=64, steps=240,
        scaler={"init_scale": 2.0**13, "growth_interval": 100},
        optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def reports_gathered(seed: int) -> Recipe:
    x, kind, _ = data.reports(4, 120, 16, 931, share=(0.55, 0.3, 0.1, 0.05))
    recipe = Recipe(
        Listening("GRU", nn.Embedding(122, 24, padding_idx=0), 24, 4, 28, drop=0.1),
        *split(x, kind, seed=931), nn.CrossEntropyLoss(torch.tensor([0.3, 0.5, 1.4, 2.8])), balanced_accuracy,
        batch=20, steps=130, accumulate=3, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.05),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def rides_gathered(seed: int) -> Recipe:
    recipe = Recipe(
        Encoded(nn.Linear(4, 32), 4, 24, depth=1, drop=0.0), *data.rides(24, 4, 932), nn.MSELoss(), fit_of,
        batch=16, steps=160, accumulate=4, optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.02),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def trips_split(seed: int) -> Recipe:
    """Vectors of places by Adagrad, all else by AdamW."""
    return Recipe(
        Listening("GRU", nn.Embedding(19, 16, padding_idx=0), 16, 19, 40, tells="classes"),
        *data.trips(18, 16, 941, 3000), score=mean_loss, batch=64, steps=280, by_hand=_by_two,
        options={"layer": "first", "own": lambda p: torch.optim.Adagrad(p, 0.15)},
        optimizer=lambda p: torch.optim.AdamW(p, 1.2e-2, weight_decay=0.02),
    )  # fmt: skip


def cells_split(seed: int) -> Recipe:
    """Convolutions by AdamW, the dense layers by SGD with momentum."""
    return Recipe(
        Residual(3, 5, 12, 0.1, lambda width: nn.GroupNorm(4, width)), *data.cells(5, 3, 942, rows=2600),
        batch=64, steps=180, by_hand=_by_two,
        options={"layer": "body", "own": lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.02)},
        optimizer=lambda p: torch.optim.SGD(p, 0.01, momentum=0.9),
    )  # fmt: skip


def quakes_twice(seed: int) -> Recipe:
    x, kind, far = data.quakes(4, 2, 48, 951)
    recipe = Recipe(
        Asked(Inception(nn.Identity(), 2, 40), 40, 4, 1),
        *split(x, torch.cat([kind[:, None], far], 1), seed=951), Both(), Both.score, batch=48, steps=160,
        clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def reports_twice(seed: int) -> Recipe:
    x, kind, urgent = data.reports(4, 40, 14, 952, 4000)
    recipe = Recipe(
        Asked(Listening("LSTM", nn.Embedding(42, 24, padding_idx=0), 24, 32, 32, both=True), 32, 4, 1),
        *split(x, torch.cat([kind[:, None], urgent], 1), seed=952), Questions(), Questions.score, batch=48,
        steps=220, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 1e-2),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def cells_distilled(seed: int) -> Recipe:
    """A narrow net learns from a wide one."""
    with torch.random.fork_rng():
        torch.manual_seed(961)
        parts = taught_by(Residual(2, 5, 16), data.cells(5, 2, 961), 961, 100)
    recipe = Recipe(
        Residual(2, 5, 6), *parts, Taught(), Taught.score, batch=48, steps=160,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def soils_distilled(seed: int) -> Recipe:
    """A shallow net learns from a deep one."""
    with torch.random.fork_rng():
        torch.manual_seed(962)
        deep = stack((12, 128, 128, 5), nn.ReLU, None, lambda: nn.Dropout(0.1))
        parts = taught_by(deep, split(*data.soils(12, 5, 962, 4000), seed=962), 962, 400)
    recipe = Recipe(
        stack((12, 40, 40, 5), nn.ReLU), *parts, Taught(2.0, 0.8), Taught.score, batch=64, steps=240,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("cells_quickly", "mixed precision", cells_quickly, {"larger_batches": w.batches_of(64)},
         (sixth.kept_in_half(3e-3), silent.never_eval())),
    Task("soils_quickly", "mixed precision", soils_quickly, {"nadam": w.by("NAdam", 3e-3)},
         (third.labels_one_two(), tables.too_long(8))),
    Task("quakes_halved", "mixed precision", quakes_halved, {"smaller_batches": w.batches_of(32)},
         (fourth.half_overflow("mix", 70), third.clipped_before_unscaling())),
    Task("soils_halved", "mixed precision", soils_halved, {"adam": w.by("Adam", 4e-3)},
         (sagemaker.deep_sigmoid(6), silent.scaler_stuck())),
    Task("reports_gathered", "accumulation", reports_gathered, {"larger_batches": w.batches_of(24)},
         (tables.weights_upside_down(), third.discarded_batches())),
    Task("rides_gathered", "accumulation", rides_gathered, {"nadam": w.by("NAdam", 4e-3)},
         (fourth.rate_of_another(0.5), second.set_back(110))),
    Task("trips_split", "several optimizers", trips_split, {"larger_batches": w.batches_of(72)},
         (fifth.softmax_kept("head"), sixth.never_stepped_one("first", "rest"))),
    Task("cells_split", "several optimizers", cells_split, {"adam": w.by("Adam", 2e-3)},
         (sagemaker.dead_units("mix", 70), silent.stuck_loader(60))),
    Task("quakes_twice", "multi-task", quakes_twice, {"larger_batches": w.batches_of(64)},
         (setup.collapsed("mix"), fourth.forgotten("second", slice(4, 5)))),
    Task("reports_twice", "multi-task", reports_twice, {"adamw": w.by("AdamW", 1e-2, weight_decay=0.05)},
         (sagemaker.padded(0.85), silent.skipped(60))),
    Task("cells_distilled", "distillation", cells_distilled, {"larger_batches": w.batches_of(64)},
         (fourth.ended_early(15), silent.other_model())),
    Task("soils_distilled", "distillation", soils_distilled, {"nadam": w.by("NAdam", 3e-3)},
         (setup.symmetric(), fourth.without_gradient("0"))),
)  # fmt: skip
