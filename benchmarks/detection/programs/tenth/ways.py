"""Mixed precision, gradients of several batches, several optimizers and questions, and teachers."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent, third
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.faults import sixth_tables as tables
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.eighth.ways import Both
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Yes
from benchmarks.detection.programs.ninth.ways_nets import Asked, Taught, taught_by
from benchmarks.detection.programs.seventh.attention_nets import Patches
from benchmarks.detection.programs.sixth.ways_precision import Halved
from benchmarks.detection.programs.sixth.ways_tasks import _by_two
from benchmarks.detection.programs.tenth import sequences_data as data
from benchmarks.detection.programs.tenth.attention_nets import Sharing
from benchmarks.detection.programs.tenth.sequences_nets import Stepping, Waved, Weighing
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of, mean_loss

__all__ = ["TASKS"]


def _seeing(channels: int, width: int = 12, *, normed: bool = True) -> nn.Sequential:
    """Convolutions over pictures of 16 x 16: (N, 16 * width)."""
    return nn.Sequential(
        nn.Conv2d(channels, width, 5, 2, 2), nn.BatchNorm2d(width) if normed else nn.Identity(), nn.ReLU(),
        nn.Conv2d(width, 4 * width, 3, 2, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    )  # fmt: skip


def fabrics_quickly(seed: int) -> Recipe:
    x, kind, _ = data.fabrics(6, 1, 1021, rows=2600, noise=0.6)
    recipe = Recipe(
        nn.Sequential(_seeing(1), nn.Linear(192, 32), nn.ReLU(), nn.Linear(32, 6)),
        *split(x, kind, seed=1021), batch=48, steps=160, autocast=True,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def logs_quickly(seed: int) -> Recipe:
    x, *_, slow = data.logs(4, 30, 20, 1022)
    return Recipe(
        Weighing("LSTM", nn.Embedding(31, 16, padding_idx=0), 16, 1), *split(x, slow, seed=1022),
        nn.BCEWithLogitsLoss(), Yes.ranked, batch=48, steps=200, clip=1.0, autocast=True,
        optimizer=lambda p: torch.optim.Adam(p, 6e-3), schedule=lambda step: 0.985**step,
    )  # fmt: skip


def sleep_halved(seed: int) -> Recipe:
    x, kind, _ = data.sleep(6, 2, 24, 1023)
    body = nn.Sequential(
        nn.Conv1d(2, 24, 9, padding=4), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(24, 24, 5, padding=2),
        nn.ReLU(), nn.AdaptiveAvgPool1d(2), nn.Flatten(),
    )  # fmt: skip
    recipe = Recipe(
        Halved(body, 48, 6), *split(x.transpose(1, 2), kind, seed=1023), batch=48, steps=180, clip=2.0,
        scaler={"init_scale": 2.0**12, "growth_interval": 100},
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def fabrics_halved(seed: int) -> Recipe:
    x, kind, _ = data.fabrics(5, 1, 1024, rows=2600, noise=0.6)
    recipe = Recipe(
        Halved(_seeing(1, 8, normed=False), 128, 5), *split(x, kind, seed=1024), batch=48, steps=160,
        scaler={"init_scale": 2.0**13, "growth_interval": 100},
        optimizer=lambda p: torch.optim.SGD(p, 0.04, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


def logs_gathered(seed: int) -> Recipe:
    x, job, *_ = data.logs(4, 30, 20, 1031, 3600, (0.55, 0.3, 0.1, 0.05))
    recipe = Recipe(
        Weighing("GRU", nn.Embedding(31, 20, padding_idx=0), 20, 4, drop=0.1), *split(x, job, seed=1031),
        nn.CrossEntropyLoss(torch.tensor([0.3, 0.5, 1.4, 2.8])), balanced_accuracy, batch=20, steps=130,
        accumulate=3, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.05),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def preys_gathered(seed: int) -> Recipe:
    recipe = Recipe(
        Stepping(2, 4, 24), *data.preys(16, 4, 1032), nn.MSELoss(), fit_of, batch=16, steps=150, accumulate=4,
        optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.02),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


def formulas_split(seed: int) -> Recipe:
    """Vectors of symbols by Adagrad, all else by AdamW."""
    symbols = len(data.SYMBOLS)
    return Recipe(
        Weighing("GRU", nn.Embedding(symbols, 16, padding_idx=0), 16, symbols, 48, each=True),
        *data.formulas(20, 1041), score=mean_loss, batch=48, steps=240, by_hand=_by_two,
        options={"layer": "first", "own": lambda p: torch.optim.Adagrad(p, 0.2)},
        optimizer=lambda p: torch.optim.AdamW(p, 1.2e-2, weight_decay=0.02),
    )  # fmt: skip


def fabrics_split(seed: int) -> Recipe:
    """Convolutions by AdamW, the dense layers by SGD with momentum."""
    x, kind, _ = data.fabrics(5, 2, 1042, rows=2600)
    body = _seeing(2)
    model = nn.Sequential()
    for name, part in (
        ("body", body),
        ("mix", nn.Linear(192, 32)),
        ("relu", nn.ReLU()),
        ("head", nn.Linear(32, 5)),
    ):
        model.add_module(name, part)
    return Recipe(
        model, *split(x, kind, seed=1042), batch=64, steps=180, by_hand=_by_two,
        options={"layer": "body", "own": lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.02)},
        optimizer=lambda p: torch.optim.SGD(p, 0.01, momentum=0.9),
    )  # fmt: skip


def sleep_twice(seed: int) -> Recipe:
    """The stage, and how deep."""
    x, kind, deep = data.sleep(4, 2, 40, 1051)
    recipe = Recipe(
        Asked(Waved(2, 32), 32, 4, 1), *split(x, torch.cat([kind[:, None], deep], 1), seed=1051), Both(),
        Both.score, batch=48, steps=160, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def fabrics_twice(seed: int) -> Recipe:
    """The kind, and how worn."""
    x, kind, wear = data.fabrics(4, 2, 1052, rows=2600)
    recipe = Recipe(
        Asked(Sharing(Patches(2, 4, 32), 32, 16, depth=1), 32, 4, 1),
        *split(x, torch.cat([kind[:, None], wear], 1), seed=1052), Both(), Both.score, batch=48, steps=220,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def sleep_distilled(seed: int) -> Recipe:
    """A narrow net learns from a wide one."""
    x, kind, _ = data.sleep(5, 2, 32, 1061)
    with torch.random.fork_rng():
        torch.manual_seed(1061)
        parts = taught_by(Waved(2, 5, 24), split(x, kind, seed=1061), 1061, 200)
    recipe = Recipe(
        Waved(2, 5, 8), *parts, Taught(), Taught.score, batch=48, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def logs_distilled(seed: int) -> Recipe:
    """A recurrent net learns from a transformer."""
    x, job, *_ = data.logs(5, 40, 20, 1062)
    with torch.random.fork_rng():
        torch.manual_seed(1062)
        teacher = Sharing(nn.Embedding(41, 32, padding_idx=0), 5, 20, depth=1, drop=0.1)
        parts = taught_by(teacher, split(x, job, seed=1062), 1062, 150)
    recipe = Recipe(
        Weighing("GRU", nn.Embedding(41, 12, padding_idx=0), 12, 5, 16), *parts, Taught(2.0, 0.8),
        Taught.score, batch=48, steps=200, optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("fabrics_quickly", "mixed precision", fabrics_quickly, {"larger_batches": w.batches_of(64)},
         (setup.symmetric(), sagemaker.overfit(40, 240))),
    Task("logs_quickly", "mixed precision", logs_quickly, {"nadam": w.by("NAdam", 5e-3)},
         (third.labels_one_two(), sixth.gates_closed("rnn"))),
    Task("sleep_halved", "mixed precision", sleep_halved, {"smaller_batches": w.batches_of(32)},
         (fourth.half_overflow("mix", 70), silent.scaler_stuck())),
    Task("fabrics_halved", "mixed precision", fabrics_halved, {"adam": w.by("Adam", 2e-3)},
         (sagemaker.deep_sigmoid(6), third.clipped_before_unscaling())),
    Task("logs_gathered", "accumulation", logs_gathered, {"larger_batches": w.batches_of(24)},
         (tables.weights_upside_down(), third.discarded_batches())),
    Task("preys_gathered", "accumulation", preys_gathered, {"nadam": w.by("NAdam", 6e-3)},
         (fourth.rate_of_another(0.5), silent.never_stepped())),
    Task("formulas_split", "several optimizers", formulas_split, {"larger_batches": w.batches_of(72)},
         (tables.too_long(8), sixth.never_stepped_one("first", "rest"))),
    Task("fabrics_split", "several optimizers", fabrics_split, {"adam": w.by("Adam", 2e-3)},
         (sagemaker.dead_units("mix", 70), setup.missing_softmax())),
    Task("sleep_twice", "multi-task", sleep_twice, {"larger_batches": w.batches_of(64)},
         (setup.collapsed("mix"), fourth.forgotten("second", slice(4, 5)))),
    Task("fabrics_twice", "multi-task", fabrics_twice, {"nadam": w.by("NAdam", 2e-3)},
         (sagemaker.weights_scaled(20.0, "weights_large"), second.set_back(110))),
    Task("sleep_distilled", "distillation", sleep_distilled, {"larger_batches": w.batches_of(64)},
         (fourth.raised(200.0, 90), silent.other_model())),
    Task("logs_distilled", "distillation", logs_distilled, {"nadam": w.by("NAdam", 5e-3)},
         (held.unknown_words(0.95), third.empty_weights("mix"))),
)  # fmt: skip
