"""What hooks, trials and rules raise, under the names that user code catches."""

from __future__ import annotations

from tdbg_lab.errors import TdbgError
from tdbg_lab.smdebug.core.mode_keys import ModeKeys

__all__ = [
    "IndexReaderException",
    "InsufficientInformationForRuleInvocation",
    "InvalidCollectionConfiguration",
    "InvalidWorker",
    "MissingCollectionFiles",
    "NoMoreData",
    "NoMoreProfilerData",
    "RuleEvaluationConditionMet",
    "SMDebugCustomerError",
    "SMDebugError",
    "SMDebugNotImplementedError",
    "SMDebugRuntimeError",
    "SMDebugTypeError",
    "SMDebugValueError",
    "ShapeUnavailableForStep",
    "StepNotYetAvailable",
    "StepUnavailable",
    "TensorUnavailable",
    "TensorUnavailableForStep",
]


class SMDebugError(TdbgError):
    """Root of what is raised here."""


class SMDebugCustomerError(SMDebugError):
    """Raised by code of the user's own."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """Something is in a state that forbids what was asked for."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """Not available."""


class SMDebugTypeError(SMDebugError, TypeError):
    """An argument has the wrong type."""


class SMDebugValueError(SMDebugError, ValueError):
    """An argument has a wrong value."""


class InvalidCollectionConfiguration(SMDebugError):  # noqa: N818 - the names are the predecessor's, here and below
    """A collection chooses nothing: it has neither a pattern nor a tensor name."""

    def __init__(self, c_name: str) -> None:
        super().__init__(c_name)
        self.c_name = c_name

    def __str__(self) -> str:
        return (
            f"Collection {self.c_name} chooses no tensor: it has neither include_regex nor tensor_names. "
            "Give it one of them, or leave it out of include_collections."
        )


class StepNotYetAvailable(SMDebugError):  # noqa: N818
    """The step has not been reached; it may come."""

    def __init__(self, step: int, mode: ModeKeys) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return f"Step {self.step} of mode {self.mode.name} is not there yet; training still goes on."


class StepUnavailable(SMDebugError):  # noqa: N818
    """The step was passed without being saved."""

    def __init__(self, step: int, mode: ModeKeys) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return f"Step {self.step} of mode {self.mode.name} was not saved and never will be."


class TensorUnavailable(SMDebugError):  # noqa: N818
    """No step of the trial has the tensor."""

    def __init__(self, tname: str) -> None:
        super().__init__(tname)
        self.tname = tname

    def __str__(self) -> str:
        return f"Tensor {self.tname} was not saved."


class TensorUnavailableForStep(SMDebugError):  # noqa: N818
    """The tensor has no value, or not this reduction, at the step."""

    def __init__(
        self, tname: str, step: int, mode: ModeKeys = ModeKeys.GLOBAL, has_reductions: bool = False
    ) -> None:
        super().__init__(tname, step, mode, has_reductions)
        self.tname = tname
        self.step = step
        self.mode = mode
        self.has_reductions = has_reductions

    def __str__(self) -> str:
        text = f"Tensor {self.tname} has no such value at step {self.step} of mode {self.mode.name}"
        if self.has_reductions:
            return f"{text}; reductions of it were saved: ask for reduction_value() or reduction_values()."
        return f"{text}: it was not saved."


class ShapeUnavailableForStep(SMDebugError):  # noqa: N818
    """The shape of the tensor at the step is not known."""

    def __init__(self, tname: str, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        super().__init__(tname, step, mode)
        self.tname = tname
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return (
            f"The shape of tensor {self.tname} at step {self.step} of mode {self.mode.name} was not saved; "
            "ReductionConfig(save_shape=True) saves it."
        )


class InvalidWorker(SMDebugError):  # noqa: N818
    """No such worker saved the tensor at the step."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker

    def __str__(self) -> str:
        return f"Worker {self.worker} saved nothing here; workers() lists those that did."


class MissingCollectionFiles(SMDebugError):  # noqa: N818
    """Training has ended and never said what it saves."""

    def __str__(self) -> str:
        return "Training has ended and saved nothing: no collections are there to read."


class IndexReaderException(SMDebugError):  # noqa: N818
    """The store cannot be read."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class NoMoreData(SMDebugError):  # noqa: N818
    """Training has ended before the step was reached."""

    def __init__(self, step: int, mode: ModeKeys, last_step: int | None) -> None:
        super().__init__(step, mode, last_step)
        self.step = step
        self.mode = mode
        self.last_step = last_step
        self.msg = (
            f"Training has ended before step {step} of mode {mode.name}; the last step saved is {last_step}."
        )

    def __str__(self) -> str:
        return self.msg


class NoMoreProfilerData(SMDebugError):  # noqa: N818
    """Training has ended before the time was reached."""

    def __init__(self, timestamp: float) -> None:
        super().__init__(timestamp)
        self.timestamp = timestamp
        self.msg = f"Training has ended before time {timestamp}; there is no profiler data behind it."

    def __str__(self) -> str:
        return self.msg


class RuleEvaluationConditionMet(SMDebugError):  # noqa: N818
    """A rule has found what it looks for."""

    def __init__(self, rule_name: str, step: int, end_of_rule: bool = False) -> None:
        super().__init__(rule_name, step, end_of_rule)
        self.rule_name = rule_name
        self.step = step
        self.end_of_rule = end_of_rule

    def __str__(self) -> str:
        return f"Rule {self.rule_name} met its condition at step {self.step}."


class InsufficientInformationForRuleInvocation(SMDebugError):  # noqa: N818
    """A rule lacks something that it needs."""

    def __init__(self, rule_name: str, message: str) -> None:
        super().__init__(rule_name, message)
        self.rule_name = rule_name
        self.message = message

    def __str__(self) -> str:
        return f"Rule {self.rule_name} cannot be checked: {self.message}"
