"""What `frameworks.py` measures: the same small training bare, with tdbg-lab or with a peer.

A training is made once for each arm and then runs in blocks. `block` gives the seconds a step took
in it, by clock. Libraries that train by themselves begin anew in each block: their clocks start
after the first saved steps, so that opening a run is not in them.
"""

from __future__ import annotations

from trainings.boosting import XGBoost
from trainings.huggingface import HuggingFace
from trainings.keras_fit import Keras
from trainings.lightning_fit import Lightning
from trainings.loops import compiled, distributed
from trainings.stopwatch import CLOCKS, OURS

__all__ = ["CANNOT", "CLOCKS", "OURS", "PEERS", "SMDEBUG_RUNS", "TRAININGS", "WHAT"]

TRAININGS = {
    "compiled-gpt": compiled,
    "ddp-2": distributed,
    "hf-trainer": HuggingFace,
    "lightning": Lightning,
    "keras-torch": Keras,
    "keras-tensorflow": Keras,
    "keras-jax": Keras,
    "xgboost": XGBoost,
}
PEERS = {
    "compiled-gpt": ("wandb", "tensorboard"),
    "ddp-2": ("wandb", "tensorboard"),
    "hf-trainer": ("wandb", "tensorboard"),
    "lightning": ("wandb", "tensorboard"),
    "keras-torch": ("tensorboard-10",),
    "keras-tensorflow": ("tensorboard-10",),
    "keras-jax": ("tensorboard-10",),
    "xgboost": ("by-hand-10", "wandb-metrics"),
}
SMDEBUG_RUNS = ("ddp-2",)
WHAT = {
    "tensorboard": "`add_histogram` of weights and gradients, every step",
    "wandb": "`wandb.watch(log='all', log_freq=1)`, offline",
    "wandb-metrics": "its callback of XGBoost, offline, which logs metrics only: for comparison, not a ratio",
    "tensorboard-10": "Keras's callback, histograms of the weights every 10th step: it knows no gradients",
    "by-hand-10": "predictions, SHAP, importance and trees by XGBoost's own functions, every 10th round",
    "smdebug": "weights, gradients and losses, four reductions and two norms, every step",
}
CANNOT = {
    "smdebug": "compiled models: its hooks break them into pieces; Transformers: it passes over outputs that "
    "are mappings; Lightning and Keras 3: unknown to it; XGBoost: its hook ended with XGBoost 1.5",
    "wandb": "Keras: it logs metrics only",
    "MLflow": "its autologging keeps metrics and parameters, and nothing of a model's inside",
}
