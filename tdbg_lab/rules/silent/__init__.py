"""Rules on errors that no exception tells: the loop runs, the loss may even fall, and still it is wrong."""

from __future__ import annotations

from tdbg_lab.rules.silent.clipping_differs import ClippingDiffers
from tdbg_lab.rules.silent.diverging_replicas import DivergingReplicas
from tdbg_lab.rules.silent.frozen_schedule import FrozenSchedule
from tdbg_lab.rules.silent.replaced_weights import ReplacedWeights
from tdbg_lab.rules.silent.same_batches import SameBatches
from tdbg_lab.rules.silent.skipped_steps import SkippedSteps
from tdbg_lab.rules.silent.stale_gradients import StaleGradients
from tdbg_lab.rules.silent.stuck_scaler import StuckScaler
from tdbg_lab.rules.silent.uninitialised_values import UninitialisedValues
from tdbg_lab.rules.silent.unshuffled_epochs import UnshuffledEpochs
from tdbg_lab.rules.silent.untrained_parameters import ParametersWithoutGradient, ParametersWithoutOptimizer
from tdbg_lab.rules.silent.wrong_mode import EvaluationInTrainMode, TrainingInEvalMode

__all__ = [
    "ClippingDiffers",
    "DivergingReplicas",
    "EvaluationInTrainMode",
    "FrozenSchedule",
    "ParametersWithoutGradient",
    "ParametersWithoutOptimizer",
    "ReplacedWeights",
    "SameBatches",
    "SkippedSteps",
    "StaleGradients",
    "StuckScaler",
    "TrainingInEvalMode",
    "UninitialisedValues",
    "UnshuffledEpochs",
]
