"""Rules: what goes wrong in a run, found while it happens.

A rule is a frozen dataclass of thresholds that looks at one recorded step after the other, in a
process beside the training. See `Rule` for how to write one.
"""

from __future__ import annotations

from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.checking import check_run, invoke_rule, run_rules
from tdbg_lab.rules.data.check_input_images import CheckInputImages
from tdbg_lab.rules.data.class_imbalance import ClassImbalance
from tdbg_lab.rules.data.confusion import Confusion
from tdbg_lab.rules.data.nlp_sequence_ratio import NLPSequenceRatio
from tdbg_lab.rules.frame import Frame, Row
from tdbg_lab.rules.launcher import launch
from tdbg_lab.rules.losses.loss_not_decreasing import LossNotDecreasing
from tdbg_lab.rules.losses.overfit import Overfit
from tdbg_lab.rules.losses.overtraining import Overtraining
from tdbg_lab.rules.losses.stalled_training import StalledTraining
from tdbg_lab.rules.registry import find_rule, list_rules, resolve_rules, rule
from tdbg_lab.rules.setup import WrongOutput
from tdbg_lab.rules.silent import StaleGradients
from tdbg_lab.rules.tensors.all_zero import AllZero
from tdbg_lab.rules.tensors.attention_collapse import AttentionCollapse
from tdbg_lab.rules.tensors.dead_relu import DeadRelu
from tdbg_lab.rules.tensors.dead_units import DeadUnits
from tdbg_lab.rules.tensors.exploding_tensor import ExplodingTensor
from tdbg_lab.rules.tensors.poor_weight_initialization import PoorWeightInitialization
from tdbg_lab.rules.tensors.saturated_activation import SaturatedActivation
from tdbg_lab.rules.tensors.similar_across_runs import SimilarAcrossRuns
from tdbg_lab.rules.tensors.tensor_variance import TensorVariance
from tdbg_lab.rules.tensors.unchanged_tensor import UnchangedTensor
from tdbg_lab.rules.tensors.vanishing_gradient import VanishingGradient
from tdbg_lab.rules.tensors.weight_update_ratio import WeightUpdateRatio
from tdbg_lab.rules.trees.feature_importance_overweight import FeatureImportanceOverweight
from tdbg_lab.rules.trees.tree_depth import TreeDepth
from tdbg_lab.rules.view import RunView

__all__ = [
    "AllZero",
    "AttentionCollapse",
    "CheckInputImages",
    "ClassImbalance",
    "Confusion",
    "DeadRelu",
    "DeadUnits",
    "ExplodingTensor",
    "FeatureImportanceOverweight",
    "Frame",
    "LossNotDecreasing",
    "NLPSequenceRatio",
    "Needs",
    "Overfit",
    "Overtraining",
    "PoorWeightInitialization",
    "Row",
    "Rule",
    "RunView",
    "SaturatedActivation",
    "SimilarAcrossRuns",
    "StaleGradients",
    "StalledTraining",
    "TensorVariance",
    "TreeDepth",
    "UnchangedTensor",
    "VanishingGradient",
    "WeightUpdateRatio",
    "WrongOutput",
    "check_run",
    "find_rule",
    "invoke_rule",
    "launch",
    "list_rules",
    "resolve_rules",
    "rule",
    "run_rules",
]
