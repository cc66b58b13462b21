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
from tdbg_lab.rules.losses.oscillating_loss import OscillatingLoss
from tdbg_lab.rules.losses.overfit import Overfit
from tdbg_lab.rules.losses.overtraining import Overtraining
from tdbg_lab.rules.losses.stalled_training import StalledTraining
from tdbg_lab.rules.profile.batch_size import BatchSize
from tdbg_lab.rules.profile.cpu_bottleneck import CPUBottleneck
from tdbg_lab.rules.profile.dataloader import Dataloader
from tdbg_lab.rules.profile.gpu_idle_gaps import GpuIdleGaps
from tdbg_lab.rules.profile.gpu_memory_increase import GPUMemoryIncrease
from tdbg_lab.rules.profile.input_bound import InputBound
from tdbg_lab.rules.profile.io_bottleneck import IOBottleneck
from tdbg_lab.rules.profile.load_balancing import LoadBalancing
from tdbg_lab.rules.profile.low_gpu_utilization import LowGPUUtilization
from tdbg_lab.rules.profile.max_initialization_time import MaxInitializationTime
from tdbg_lab.rules.profile.memory_leak import MemoryLeak
from tdbg_lab.rules.profile.overall_framework_metrics import OverallFrameworkMetrics
from tdbg_lab.rules.profile.overall_system_usage import OverallSystemUsage
from tdbg_lab.rules.profile.step_outlier import StepOutlier
from tdbg_lab.rules.profile.straggler import Straggler
from tdbg_lab.rules.profile.synchronising_calls import SynchronisingCalls
from tdbg_lab.rules.profile.thermal_throttling import ThermalThrottling
from tdbg_lab.rules.profile.tiny_kernels import TinyKernels
from tdbg_lab.rules.registry import find_rule, list_rules, resolve_rules, rule
from tdbg_lab.rules.setup import WrongOutput
from tdbg_lab.rules.silent import StaleGradients
from tdbg_lab.rules.tensors.all_zero import AllZero
from tdbg_lab.rules.tensors.attention_collapse import AttentionCollapse
from tdbg_lab.rules.tensors.dead_relu import DeadRelu
from tdbg_lab.rules.tensors.dead_units import DeadUnits
from tdbg_lab.rules.tensors.exploding_tensor import ExplodingTensor
from tdbg_lab.rules.tensors.layer_collapse import LayerCollapse
from tdbg_lab.rules.tensors.poor_weight_initialization import PoorWeightInitialization
from tdbg_lab.rules.tensors.posterior_collapse import PosteriorCollapse
from tdbg_lab.rules.tensors.representation_collapse import RepresentationCollapse
from tdbg_lab.rules.tensors.saturated_activation import SaturatedActivation
from tdbg_lab.rules.tensors.similar_across_runs import SimilarAcrossRuns
from tdbg_lab.rules.tensors.tensor_variance import TensorVariance
from tdbg_lab.rules.tensors.unchanged_tensor import UnchangedTensor
from tdbg_lab.rules.tensors.vanishing_gradient import VanishingGradient
from tdbg_lab.rules.tensors.weight_update_ratio import WeightUpdateRatio
from tdbg_lab.rules.trees.feature_importance_overweight import FeatureImportanceOverweight
from tdbg_lab.rules.trees.no_splits import NoSplits
from tdbg_lab.rules.trees.tree_depth import TreeDepth
from tdbg_lab.rules.view import RunView

__all__ = [
    "AllZero",
    "AttentionCollapse",
    "BatchSize",
    "CPUBottleneck",
    "CheckInputImages",
    "ClassImbalance",
    "Confusion",
    "Dataloader",
    "DeadRelu",
    "DeadUnits",
    "ExplodingTensor",
    "FeatureImportanceOverweight",
    "Frame",
    "GPUMemoryIncrease",
    "GpuIdleGaps",
    "IOBottleneck",
    "InputBound",
    "LayerCollapse",
    "LoadBalancing",
    "LossNotDecreasing",
    "LowGPUUtilization",
    "MaxInitializationTime",
    "MemoryLeak",
    "NLPSequenceRatio",
    "Needs",
    "NoSplits",
    "OscillatingLoss",
    "OverallFrameworkMetrics",
    "OverallSystemUsage",
    "Overfit",
    "Overtraining",
    "PoorWeightInitialization",
    "PosteriorCollapse",
    "RepresentationCollapse",
    "Row",
    "Rule",
    "RunView",
    "SaturatedActivation",
    "SimilarAcrossRuns",
    "StaleGradients",
    "StalledTraining",
    "StepOutlier",
    "Straggler",
    "SynchronisingCalls",
    "TensorVariance",
    "ThermalThrottling",
    "TinyKernels",
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
