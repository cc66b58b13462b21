"""The data model of tdbg-lab, written once. Everything else links here.

Run
    One training job: one *run directory*. Several processes (*ranks*) may write to it.
Step
    A non-negative int: the number of optimizer steps completed before this one, so the first
    training step is 0. Where no optimizer is known, a root forward in train mode is a step.
    Forwards in eval or predict mode do not advance it: they carry the step they happened at.
Micro-step
    Index (from 0) of the forward within one step and mode: gradient accumulation, an evaluation
    pass over many batches. **Rows of the same (tensor, mode, step) merge exactly** over
    micro-steps and ranks; every reader merges them unless it is asked for one rank.
Mode
    ``train``, ``eval`` or ``predict``.
Tensor
    A named series of statistics (and, when asked for, raw values) over steps. Names::

        conv1.weight, conv1.bias        parameters (and buffers), by their dotted path
        gradient/conv1.weight           gradient of a parameter, after accumulation, clipping, unscaling
        activation/conv1                output of a module; further outputs and calls: activation/conv1:1
        input/conv1                     input of a module
        loss/CrossEntropyLoss           output of a loss module
        optimizer/lr/0                  learning rate of parameter group 0
        optimizer/grad_norm             global L2 norm of all gradients, before they are clipped
        optimizer/grad_norm_clipped     the same after clipping, where they are
        optimizer/update_ratio/conv1.weight     |dw| / |w| of one step
        accuracy, latent                what the user logged or recorded, by the user's name
        tdbg/capture_ms                 our own cost
        tdbg/save_every                 distance of saved steps, where it is chosen
        check/stale_gradients           a fact about the loop for rules on silent errors

    With several models in one run, dotted paths start with the model's name: ``generator.conv1``.
Scalar
    A tensor with one element per row. Its value is `StatsBlock.scalar_values`.
Collection
    A named set of tensors that share what is saved and when.
Span
    A named interval of time on one thread: a phase of training (``data``, ``forward``,
    ``backward``, ``optimizer``, ...) or an operator.
Sample
    One reading of one system metric of one device at one time.
Finding
    What a rule saw: severity, tensor, steps, evidence and advice.

Times are ``_ns`` since the Unix epoch, UTC, unless a name says otherwise.

Down-sampling promise
    Whatever is asked for with ``n_out`` is deterministic, keeps the first and the last point, and
    never drops a NaN or an infinity: those are the finding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Finding",
    "Kind",
    "LossKind",
    "Mode",
    "OutputEnd",
    "RuleState",
    "RuleStatus",
    "RunStatus",
    "Severity",
    "StatsBlock",
    "StatsRows",
    "TensorKey",
    "ViewRef",
]


class Mode(StrEnum):
    """What the model was doing."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "predict"


class Kind(StrEnum):
    """What a tensor is."""

    WEIGHT = "weight"
    BIAS = "bias"
    BUFFER = "buffer"
    GRADIENT = "gradient"
    ACTIVATION = "activation"
    INPUT = "input"
    LOSS = "loss"
    OPTIMIZER = "optimizer"
    SCALAR = "scalar"
    """A number the user logged."""
    CUSTOM = "custom"
    """A tensor the user recorded."""
    COST = "cost"
    """What tdbg-lab itself cost."""
    CHECK = "check"
    """What rules on silent errors look at: facts about the loop, hidden unless this kind is asked for."""


ON_TRAINING_DATA = "/training_data"
"""What the name of a loss ends with that an evaluation has of the data that the model is trained on."""


class LossKind(IntEnum):
    """What a loss compares; recorded as the fact ``check/loss/<name>/kind``."""

    OTHER = 0
    LOGITS = 1
    """Cross-entropy of classes; predictions are logits."""
    LOG_PROBABILITIES = 2
    PROBABILITIES = 3
    MARGIN = 4
    """Classes, compared by their scores."""
    YES_LOGITS = 5
    """Cross-entropy of yes and no, for each output by itself."""
    YES_PROBABILITIES = 6
    DISTANCE = 7
    """Numbers: squares or absolute values of differences, or something between the two."""

    @property
    def of_classes(self) -> bool:
        """Whether one class of several is right for each sample."""
        kinds = (LossKind.LOGITS, LossKind.LOG_PROBABILITIES, LossKind.PROBABILITIES, LossKind.MARGIN)
        return self in kinds

    @property
    def of_yes_or_no(self) -> bool:
        """Whether each output is right or not by itself."""
        return self in {LossKind.YES_LOGITS, LossKind.YES_PROBABILITIES}

    @property
    def is_cross_entropy(self) -> bool:
        """Whether it is the entropy of the labels, in nats, when the inputs tell nothing."""
        return self.of_yes_or_no or (self.of_classes and self is not LossKind.MARGIN)

    @classmethod
    def of_class(cls, name: str) -> LossKind:
        """What a loss module of PyTorch compares, by the name of its class alone."""
        return _LOSS_CLASSES.get(name, cls.OTHER)


_LOSS_CLASSES = {
    "CrossEntropyLoss": LossKind.LOGITS,
    "NLLLoss": LossKind.LOG_PROBABILITIES,
    "MultiMarginLoss": LossKind.MARGIN,
    "BCELoss": LossKind.YES_PROBABILITIES,
    **dict.fromkeys(("BCEWithLogitsLoss", "MultiLabelSoftMarginLoss"), LossKind.YES_LOGITS),
    **dict.fromkeys(("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss"), LossKind.DISTANCE),
}


class OutputEnd(IntEnum):
    """The function that what a loss is given comes from; recorded as the fact ``check/loss/<name>/end``."""

    OTHER = 0
    SIGMOID = 1
    TANH = 2
    RELU = 3
    SOFTMAX = 4


class Severity(StrEnum):
    """How bad a finding is. Only ``critical`` may stop or repair a run."""

    NOTICE = "notice"
    WARNING = "warning"
    CRITICAL = "critical"


class RuleStatus(StrEnum):
    """Where a rule stands on one run."""

    IN_PROGRESS = "in_progress"
    NO_ISSUE = "no_issue"
    ISSUE_FOUND = "issue_found"
    ERROR = "error"
    STOPPED = "stopped"
    NOT_APPLICABLE = "not_applicable"


class RunStatus(StrEnum):
    """Where a run stands. ``crashed`` is never written: a reader infers it (see `tdbg_lab.run`)."""

    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    """Ended by a stop request."""
    FAILED = "failed"
    """Ended by an exception."""
    CRASHED = "crashed"
    """Says it is running, but its process is gone."""


@dataclass(frozen=True, slots=True)
class TensorKey:
    """Identity of a tensor: what stays the same from row to row."""

    name: str
    kind: Kind
    module: str = ""
    """Dotted path of the module it belongs to; ``""`` when there is none."""
    dtype: str = ""
    """Name without framework prefix: ``float32``, ``bfloat16``; ``""`` when unknown."""
    shape: tuple[int, ...] = ()
    """Shape at the last row written."""
    collections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatsBlock:
    """Statistics of N tensors, column by column; row ``i`` belongs to tensor ``i``.

    Moments are taken over the *finite* elements. A tensor without any has NaN in every float
    column. ``std`` is the population standard deviation (ddof 0). Complex tensors are described by
    their modulus. The histogram covers finite non-zero elements in the fixed bins of
    `tdbg_lab.stats.bins`; zeros, NaN and infinities have counts of their own.
    """

    count: NDArray[np.int64]
    """Elements, all of them. Shape ``(N,)``, as every column unless noted."""
    nan_count: NDArray[np.int64]
    pos_inf_count: NDArray[np.int64]
    neg_inf_count: NDArray[np.int64]
    zero_count: NDArray[np.int64]
    min: NDArray[np.float64]
    max: NDArray[np.float64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    l1: NDArray[np.float64]
    """Sum of absolute values."""
    l2: NDArray[np.float64]
    """Euclidean norm."""
    hist_offsets: NDArray[np.int64]
    """Shape ``(N + 1,)``: row ``i`` owns ``hist_bins[hist_offsets[i]:hist_offsets[i + 1]]``."""
    hist_bins: NDArray[np.uint16]
    """Occupied bins, ascending within a row. Shape ``(K,)``."""
    hist_counts: NDArray[np.int64]
    """Elements in each of them. Shape ``(K,)``."""
    channel_offsets: NDArray[np.int64]
    """Shape ``(N + 1,)``; an empty range says that channels were not measured."""
    channel_zero_frac: NDArray[np.float32]
    """Share of exact zeros per channel, 0 to 1. Shape ``(C,)``."""
    channel_mean: NDArray[np.float32]
    """Mean of the finite elements per channel. Shape ``(C,)``."""
    reasons: tuple[str | None, ...] = ()
    """Why a row has no statistics (``"meta tensor"``), else None; ``()`` when every row has them."""

    def __len__(self) -> int:
        return len(self.count)

    @property
    def finite_count(self) -> NDArray[np.int64]:
        """Elements that are neither NaN nor infinite, shape ``(N,)``."""
        return self.count - self.nan_count - self.pos_inf_count - self.neg_inf_count

    @property
    def scalar_values(self) -> NDArray[np.float64]:
        """Value of rows that hold one element, NaN and infinities included, shape ``(N,)``."""
        values = self.mean.copy()
        values[self.pos_inf_count > 0] = math.inf
        values[self.neg_inf_count > 0] = -math.inf
        values[self.nan_count > 0] = math.nan
        return values

    def reason(self, row: int) -> str | None:
        """Why row `row` has no statistics, or None."""
        return self.reasons[row] if self.reasons else None


@dataclass(frozen=True, slots=True)
class StatsRows:
    """What one rank saw at one step: the unit the writer appends."""

    step: int
    mode: Mode
    micro: int
    time_ns: int
    keys: tuple[TensorKey, ...]
    """One per row of `block`. Pass the *same tuple object* again when the tensors are the same: the
    writer caches its encoded form."""
    block: StatsBlock


@dataclass(frozen=True, slots=True)
class ViewRef:
    """A view and the parameters to open it with."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule saw, and what to do about it."""

    rule: str
    severity: Severity
    step_first: int
    step_last: int
    """Inclusive."""
    message: str
    """One sentence: what is wrong, with the numbers."""
    tensor: str = ""
    module: str = ""
    evidence: Mapping[str, float | int | str] = field(default_factory=dict)
    """The numbers behind the message, with units in the keys."""
    advice: Sequence[str] = ()
    """What to do, most promising first."""
    view: ViewRef | None = None
    """The picture that shows it."""
    rank: int | None = None
    time_ns: int = 0
    """When it was found."""
    id: str = ""
    """Stable: the same trouble in the same run has the same id."""
    fix: Mapping[str, float | int | str | bool] | None = None
    """What can be applied to put it right: ``{"setting": "learning_rate", "factor": 0.1}``."""
    cause: str = ""
    """Id of the finding this one follows from; ``""`` for a root cause."""


@dataclass(frozen=True, slots=True)
class RuleState:
    """Where one rule stands on one run."""

    rule: str
    status: RuleStatus
    reason: str = ""
    """Why it is not applicable, or what went wrong."""
    step_checked: int = -1
    """Last step checked; -1 before the first."""
    findings: int = 0
    cost_ms: float = 0.0
    """Time spent checking so far, ms."""
    parameters: Mapping[str, float | int | str | bool | None] = field(default_factory=dict)
