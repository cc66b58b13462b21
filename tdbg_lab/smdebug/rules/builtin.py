"""SageMaker Debugger's built-in rules by their names and parameters: each is one of ours, in its setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.rules import resolve_rules
from tdbg_lab.smdebug.exceptions import SMDebugValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.rules import Rule

__all__ = ["builtin_rule", "builtin_rules"]

_OURS = {
    "VanishingGradient": "vanishing_gradient",
    "ExplodingTensor": "exploding_tensor",
    "PoorWeightInitialization": "poor_weight_initialization",
    "SaturatedActivation": "saturated_activation",
    "DeadRelu": "dead_relu",
    "WeightUpdateRatio": "weight_update_ratio",
    "AllZero": "all_zero",
    "ClassImbalance": "class_imbalance",
    "LossNotDecreasing": "loss_not_decreasing",
    "Overfit": "overfit",
    "Overtraining": "overtraining",
    "SimilarAcrossRuns": "similar_across_runs",
    "StalledTrainingRule": "stalled_training",
    "TensorVariance": "tensor_variance",
    "UnchangedTensor": "unchanged_tensor",
    "CheckInputImages": "check_input_images",
    "NLPSequenceRatio": "nlp_sequence_ratio",
    "Confusion": "confusion",
    "FeatureImportanceOverweight": "feature_importance_overweight",
    "TreeDepth": "tree_depth",
    "BatchSize": "batch_size",
    "CPUBottleneck": "cpu_bottleneck",
    "Dataloader": "dataloader",
    "GPUMemoryIncrease": "gpu_memory_increase",
    "IOBottleneck": "io_bottleneck",
    "LoadBalancing": "load_balancing",
    "LowGPUUtilization": "low_gpu_utilization",
    "MaxInitializationTime": "max_initialization_time",
    "OverallFrameworkMetrics": "overall_framework_metrics",
    "OverallSystemUsage": "overall_system_usage",
    "StepOutlier": "step_outlier",
}

_RENAMED = {
    "*": {"tensor_regex": "regex"},
    "overfit": {"patience": "patience_classic"},
    "similar_across_runs": {"other_trials": "other"},
    "confusion": {"labels": "labels_regex", "predictions": "predictions_regex"},
}

_WITHOUT = frozenset(
    {
        *("base_trial", "stop_training_on_fire", "training_job_name_prefix", "use_losses_collection", "mode"),
        *("labels_collection", "predictions_collection", "scan_interval_us"),
    }
)
"""Parameters that ours have no use for: which run it is, what to do (an action), where and when to look."""


def builtin_rules() -> list[str]:
    """Names of the built-in rules, as SageMaker Debugger writes them."""
    return sorted(_OURS)


def builtin_rule(name: str, parameters: Mapping[str, str] | None = None) -> Rule:
    """Make the rule that a built-in one of SageMaker Debugger is here: its documented condition.

    Parameters
    ----------
    name
        ``"VanishingGradient"``, or as ``rule_configs`` has it, ``"vanishing_gradient"``.
    parameters
        Its parameters, as text. Those for stopping a job are passed over: give the rule an action.

    Raises
    ------
    SMDebugValueError
        If there is no such rule.
    tdbg_lab.errors.ConfigError
        If it has no such parameter, or one is out of range.
    """
    plain = {known.lower(): ours for known, ours in _OURS.items()}
    ours = plain.get(name.replace("_", "").lower()) or plain.get(name.replace("_", "").lower() + "rule")
    if ours is None:
        raise SMDebugValueError(
            f"There is no built-in rule {name!r}; there are {', '.join(builtin_rules())}."
        )
    renamed = {**_RENAMED["*"], **_RENAMED.get(ours, {})}
    values = {
        renamed.get(key, key): value for key, value in (parameters or {}).items() if key not in _WITHOUT
    }
    return resolve_rules([ours], {ours: {"classic": True, **values}})[0]
