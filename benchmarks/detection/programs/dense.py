"""Dense networks on tables and digits, tiny and unbalanced data, sparse rectifiers, mixed precision."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import sagemaker, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs import data, variants
from benchmarks.detection.programs.networks import SparseMlp, mlp
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of

__all__ = ["TASKS"]


def digits_mlp(seed: int) -> Recipe:
    return Recipe(mlp(64, 64, 10), *data.digits())


def wine_mlp(seed: int) -> Recipe:
    return Recipe(mlp(13, 32, 3), *data.bunch("wine"), batch=16, steps=150)


def rings_mlp(seed: int) -> Recipe:
    return Recipe(mlp(2, 48, 3, 3), *data.rings(), steps=200)


def regularised(seed: int) -> Recipe:
    model = nn.Sequential(
        nn.Linear(30, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2),
    )  # fmt: skip
    return Recipe(model, *data.bunch("breast_cancer"), optimizer=lambda p: torch.optim.Adam(p, 2e-3))


def deep_tanh(seed: int) -> Recipe:
    return Recipe(mlp(64, 48, 10, 4, nn.Tanh), *data.digits(), optimizer=lambda p: torch.optim.Adam(p, 1e-3))


def binary_mlp(seed: int) -> Recipe:
    train, held = data.bunch("breast_cancer")
    return Recipe(
        mlp(30, 24, 1),
        (train[0], train[1].float()),
        (held[0], held[1].float()),
        nn.BCEWithLogitsLoss(),
        compare=lambda out, x, y: (out[:, 0], y),
        score=lambda told, wanted: float(((told > 0) == (wanted > 0.5)).float().mean()),
    )


def diabetes_mlp(seed: int) -> Recipe:
    return Recipe(
        mlp(10, 24, 1), *data.bunch("diabetes"), nn.MSELoss(), fit_of,
        optimizer=lambda p: torch.optim.AdamW(p, 1e-3, weight_decay=0.1), steps=150,
    )  # fmt: skip


def made_regression(seed: int) -> Recipe:
    return Recipe(mlp(8, 48, 1), *data.made_regression(), nn.MSELoss(), fit_of, steps=200)


def tiny_iris(seed: int) -> Recipe:
    return Recipe(mlp(4, 16, 3, 1), *data.bunch("iris"), batch=8, steps=150)


def rare_digits(seed: int) -> Recipe:
    """Some classes four times rarer than others, which a training gets along with."""
    keep = [120, 30, 120, 60, 120, 40, 120, 60, 120, 40]
    return Recipe(mlp(64, 48, 10), *data.unbalanced(data.digits(), keep), score=balanced_accuracy)


def sparse_mlp(seed: int) -> Recipe:
    return Recipe(SparseMlp(), *data.digits())


def sparse_cancer(seed: int) -> Recipe:
    """An L1 penalty on wide rectifiers."""
    model = mlp(30, 128, 2, 1)
    with torch.no_grad():
        model[0].bias.fill_(-1.0)
    return Recipe(model, *data.bunch("breast_cancer"), optimizer=lambda p: torch.optim.Adam(p, 1e-3))


def bf16_mlp(seed: int) -> Recipe:
    return Recipe(mlp(64, 64, 10), *data.digits(), autocast=True)


def bf16_wine(seed: int) -> Recipe:
    return Recipe(mlp(13, 48, 3), *data.bunch("wine"), autocast=True, batch=16)


def gelu_digits(seed: int) -> Recipe:
    return Recipe(mlp(64, 64, 10, act=nn.GELU), *data.digits())


def silu_cancer(seed: int) -> Recipe:
    return Recipe(mlp(30, 32, 2, act=nn.SiLU), *data.bunch("breast_cancer"))


def accumulated_digits(seed: int) -> Recipe:
    return Recipe(mlp(64, 48, 10), *data.digits(), batch=8, accumulate=4, steps=120)


def accumulated_regression(seed: int) -> Recipe:
    return Recipe(
        mlp(8, 32, 1), *data.made_regression(), nn.MSELoss(), fit_of, batch=8, accumulate=4, steps=120
    )


v = variants
TASKS = (
    Task("digits_mlp", "dense", digits_mlp,
         {"sgd": v.sgd(0.05), "warm_up": v.warm_up, "cosine": v.cosine, "converged": v.converged,
          "noisy": v.noisy,
          "sparsely_recorded": v.sparsely_recorded, "scaled": v.scaled},
         (sagemaker.dead_units("2"), sagemaker.deep_sigmoid(), sagemaker.rate_tiny(), sagemaker.unbalanced(),
          sagemaker.classes_confused(), setup.shuffled_labels(), setup.redundant_softmax("4"),
          setup.diverging(5.0), setup.symmetric(),
          silent.no_zero_grad(), silent.left_out("2"), silent.other_model(), silent.skipped(),
          silent.scaler_stuck(), silent.never_stepped())),
    Task("wine_mlp", "dense", wine_mlp,
         {"decayed": v.decayed, "clipped": v.clipped, "restarts": v.restarts,
          "sparsely_recorded": v.sparsely_recorded},
         (sagemaker.dead_units("0", 50), sagemaker.deep_sigmoid(), sagemaker.rate_tiny(),
          setup.missing_softmax(), setup.symmetric(), silent.left_out("0"), silent.skipped(70),
          silent.stale_optimizer("2"),
          silent.never_stepped(), setup.constant_output("4"))),
    Task("rings_mlp", "dense", rings_mlp,
         {"restarts": v.restarts},
         (setup.missing_softmax(), setup.decay_kills(1.0), silent.stale_optimizer("2"))),
    Task("regularised", "dense", regularised,
         {"cosine": v.cosine, "scaled": v.scaled},
         (silent.left_in_eval(), silent.never_eval(), silent.empty_buffer("1"), setup.shuffled_labels(),
          sagemaker.rate_explodes(), silent.scaler_stuck(), silent.other_model(),
          silent.initialised_again("4"), setup.inputs_constant())),
    Task("deep_tanh", "dense", deep_tanh,
         {"warm_up": v.warm_up},
         (sagemaker.tanh_saturated(), sagemaker.weights_scaled(1e-3, "weights_tiny"), silent.detached("2"),
          setup.inputs_constant(), silent.workers_alike(), setup.constant_output("8"))),
    Task("binary_mlp", "dense", binary_mlp,
         {"converged": v.converged},
         (setup.diverging(50.0), setup.decay_kills(2.0),
          silent.no_zero_grad(), silent.stuck_loader(30))),
    Task("diabetes_mlp", "regression", diabetes_mlp,
         {"sgd": v.sgd(0.01, 0.5)},
         (setup.squashed_output("4"), sagemaker.overfit(40, 500), silent.stuck_loader(20),
          setup.swinging(0.5))),
    Task("made_regression", "regression", made_regression,
         {"warm_up": v.warm_up},
         (setup.squashed_output("4"), silent.other_model(), sagemaker.not_a_number("2"),
          setup.shuffled_labels(), setup.swinging(0.5))),
    Task("tiny_iris", "tiny", tiny_iris, {"restarts": v.restarts},
         (sagemaker.rate_tiny(), silent.never_stepped())),
    Task("rare_digits", "tiny", rare_digits,
         {"smoothed": v.smoothed},
         (sagemaker.unbalanced(0.98), sagemaker.classes_confused(), sagemaker.overfit(60, 500, 0.3))),
    Task("sparse_mlp", "sparse", sparse_mlp,
         {"converged": v.converged}, (sagemaker.dead_units("first"), silent.detached("relu"))),
    Task("sparse_cancer", "sparse", sparse_cancer, {"adamw": v.adamw(1e-3)},
         (sagemaker.dead_units("0", 60), setup.redundant_softmax("2"))),
    Task("gelu_digits", "smooth", gelu_digits,
         {"warm_up": v.warm_up, "converged": v.converged},
         (sagemaker.dead_units("2"), silent.detached("2"))),
    Task("silu_cancer", "smooth", silu_cancer,
         {"sgd": v.sgd(0.05), "cosine": v.cosine},
         (sagemaker.dead_units("0"), silent.other_model())),
    Task("bf16_mlp", "precision", bf16_mlp,
         {"clipped": v.clipped},
         (sagemaker.not_a_number("2"), silent.no_zero_grad())),
    Task("bf16_wine", "precision", bf16_wine,
         {"cosine": v.cosine}, (sagemaker.rate_explodes(), silent.scaler_stuck())),
    Task("accumulated_digits", "accumulation", accumulated_digits,
         {"warm_up": v.warm_up}, (silent.no_zero_grad(), silent.skipped(50))),
    Task("accumulated_regression", "accumulation", accumulated_regression,
         {"adamw": v.adamw()}, (silent.no_zero_grad(), silent.left_out("2"))),
)  # fmt: skip
