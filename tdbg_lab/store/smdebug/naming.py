"""What a tensor of a store is, told from its name and collections: its kind and its module.

The names themselves stay as they are. smdebug's hooks name tensors so::

    PyTorch     Net_conv1.weight, gradient/Net_conv1.weight, conv1_output_0, CrossEntropyLoss_output_0
    MXNet       conv0_weight, gradient/conv0_weight, conv0_relu_output_0, softmaxcrossentropyloss0_output_0
    TensorFlow  dense/weights/dense/kernel:0, gradients/dense/kernel:0Grad, dense/outputs, loss, accuracy
    TF 1        dense/kernel:0, gradients/dense/MatMul_grad/tuple/control_dependency_1:0, dense/Relu:0
    XGBoost     train-rmse, feature_importance/weight/f0, average_shap/f1, trees/0, labels, predictions
    any         scalar/<name> (a number the user saved)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tdbg_lab.store.smdebug.collection import SmdebugCollection

__all__ = ["channel_axis", "framework_of", "kind_of", "module_of"]

_SLOT = re.compile(r"(.*)_(input|output)_\d+")
_LAYER = re.compile(r"(.+?)/(inputs?|outputs?|weights)(?:/.*)?")
_PARAMETER = re.compile(r"(.+)_(?:weight|bias|gamma|beta|running_mean|running_var)")
_GRADIENT = re.compile(r"gradients?/(.*?)(?:Grad)?")
_OPERATION_GRADIENT = re.compile(r"(?:(.*)/)?[^/]+_grad/.*")
_BIAS = re.compile(r"(?:^|[./_])(?:bias|beta)(?::\d+)?$")
_BUFFER = re.compile(r"running_(?:mean|var)|num_batches_tracked|moving_(?:mean|variance)")
_BY_COLLECTION = (
    ("losses", Kind.LOSS),
    ("gradients", Kind.GRADIENT),
    ("biases", Kind.BIAS),
    ("weights", Kind.WEIGHT),
    ("optimizer_variables", Kind.OPTIMIZER),
    ("metrics", Kind.SCALAR),
    ("sm_metrics", Kind.SCALAR),
    ("feature_importance", Kind.SCALAR),
    ("average_shap", Kind.SCALAR),
    ("inputs", Kind.INPUT),
    ("outputs", Kind.ACTIVATION),
    ("layers", Kind.ACTIVATION),
)
_XGBOOST = frozenset({"feature_importance", "full_shap", "average_shap", "trees"})
_TENSORFLOW = frozenset({"layers", "optimizer_variables", "tensorflow_summaries"})
_MAX_CHANNELS = 4096


def kind_of(name: str, collections: Collection[str]) -> Kind:
    """What a tensor is."""
    if name.startswith("scalar/"):
        return Kind.SCALAR
    if "losses" in collections:
        return Kind.LOSS
    if _GRADIENT.fullmatch(name):
        return Kind.GRADIENT
    slot = _SLOT.fullmatch(name) or _LAYER.fullmatch(name)
    if slot is not None and not slot[2].startswith("weights"):
        return Kind.INPUT if slot[2].startswith("input") else Kind.ACTIVATION
    if _BUFFER.search(name):
        return Kind.BUFFER
    found = next((kind for collection, kind in _BY_COLLECTION if collection in collections), None)
    if found in {Kind.WEIGHT, None} and _BIAS.search(name):
        return Kind.BIAS
    if found is None:
        return Kind.WEIGHT if slot is not None or name.endswith(("weight", "gamma")) else Kind.CUSTOM
    return found


def module_of(name: str) -> str:
    """Dotted path of the module a tensor belongs to; ``""`` when its name does not tell."""
    gradient = _GRADIENT.fullmatch(name)
    if name.startswith("scalar/"):
        return ""
    layer = None if gradient else _SLOT.fullmatch(name) or _LAYER.fullmatch(name)
    if layer is not None:
        return layer[1].replace("/", ".")
    name = gradient[1] if gradient else name
    operation = _OPERATION_GRADIENT.fullmatch(name) if gradient else None
    if operation is not None:
        return (operation[1] or "").replace("/", ".")
    if "/" in name:  # TensorFlow: the variable dense/kernel:0, in loops weights/dense/kernel:0
        return name.removeprefix("weights/").rpartition("/")[0].replace("/", ".")
    path, dot, _ = name.rpartition(".")
    if dot:  # PyTorch: the class of the root, then the path
        return path.partition("_")[2] if "_" in path else ""
    parameter = _PARAMETER.fullmatch(name)
    return parameter[1] if parameter else ""


def channel_axis(kind: Kind, shape: tuple[int, ...], framework: str) -> int | None:
    """The axis of an output along which its units stand; None when it has none to tell apart."""
    if kind is not Kind.ACTIVATION or len(shape) < 2:
        return None
    axis = len(shape) - 1 if framework == "tensorflow" or len(shape) == 3 else 1
    return axis if 1 <= shape[axis] <= _MAX_CHANNELS else None


def framework_of(collections: Mapping[str, SmdebugCollection]) -> str:
    """The framework whose hook wrote these collections; ``""`` when that is not clear."""
    if not collections:
        return ""
    if collections.keys() & _XGBOOST:
        return "xgboost"
    if collections.keys() & _TENSORFLOW:
        return "tensorflow"
    losses = collections.get("losses")
    patterns = losses.include_regex if losses is not None else ()
    if any(pattern.startswith("[Ll]oss") for pattern in patterns):
        return "pytorch"
    return "mxnet" if any("loss._" in pattern for pattern in patterns) else ""
