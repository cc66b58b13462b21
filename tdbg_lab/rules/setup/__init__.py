"""Rules on data and set-up: inputs, labels, outputs, initialisation and the learning rate."""

from __future__ import annotations

from tdbg_lab.rules.setup.constant_inputs import ConstantInputs
from tdbg_lab.rules.setup.constant_output import ConstantOutput
from tdbg_lab.rules.setup.diverging_loss import DivergingLoss
from tdbg_lab.rules.setup.label_range import LabelRange
from tdbg_lab.rules.setup.learning_rate import LearningRate
from tdbg_lab.rules.setup.lost_dimensions import LostDimensions
from tdbg_lab.rules.setup.optimizer_settings import OptimizerSettings
from tdbg_lab.rules.setup.symmetric_weights import SymmetricWeights
from tdbg_lab.rules.setup.unrelated_labels import UnrelatedLabels
from tdbg_lab.rules.setup.unscaled_inputs import UnscaledInputs
from tdbg_lab.rules.setup.wrong_output import WrongOutput

__all__ = [
    "ConstantInputs",
    "ConstantOutput",
    "DivergingLoss",
    "LabelRange",
    "LearningRate",
    "LostDimensions",
    "OptimizerSettings",
    "SymmetricWeights",
    "UnrelatedLabels",
    "UnscaledInputs",
    "WrongOutput",
]
