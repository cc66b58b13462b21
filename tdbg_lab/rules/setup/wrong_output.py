"""Outputs that do not fit the loss: a softmax too many or too few, shapes that are spread over each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import LossKind, OutputEnd, Severity, ViewRef
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.setup.given import LossRule, facts_of, kind_of, loss_tensor, spoken

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.setup.given import Given
    from tdbg_lab.rules.view import RunView

__all__ = ["WrongOutput"]

_LOGITS = (LossKind.LOGITS, LossKind.YES_LOGITS)
_ENDS = {
    OutputEnd.SIGMOID: ("sigmoid", "the output of a sigmoid, where it expects logits"),
    OutputEnd.SOFTMAX: ("softmax", "the output of a softmax, where it expects logits"),
    OutputEnd.TANH: ("tanh", "the output of a tanh, from -1 to 1, where it expects logits"),
    OutputEnd.RELU: ("relu", "the output of a ReLU, which is never negative, where it expects logits"),
}
_PRESSED, _PRESSED_STEPS = 0.05, 10
"""How near to zero the least of outputs stays that cannot pass it, and at how many saved steps in a row."""
_AT_BOUND = 0.02
"""How near to its bound the output of a tanh counts as there."""
_FEW_SAMPLES = 4
"""Samples of a batch below which what they add up to says nothing."""
_ALIKE = 0.01
"""Spread over the samples for that of all outputs, below which they are constants, and say nothing of a
function that made them."""
_MANY_CLASSES = 5
"""From so many on, all logits of a fresh model are positive by chance in less than 1 of 30 models."""


@rule("wrong_output", title="Output does not fit the loss")
@dataclass(frozen=True, kw_only=True)
class WrongOutput(LossRule):
    """The output of the model is not what its loss expects, so it trains slowly, or on something else.

    A softmax before ``CrossEntropyLoss``, none before ``NLLLoss``, a sigmoid before ``BCEWithLogitsLoss``, a
    softmax over the samples of the batch instead of the classes, in Keras logits where ``from_logits`` is not
    said, or probabilities where it is, anything but logarithms of probabilities before ``KLDivLoss`` or
    ``CTCLoss``, a ReLU or tanh before a classification loss, or predictions and labels of different shapes
    that are spread over each other.
    """

    tolerance: float = 1e-3
    """How far sums of probabilities may be from 1, and sums of log-probabilities from 0."""
    sigmoid_range: float = 0.5
    """Range that values between 0 and 1 must have to be those of a sigmoid: few logits are so by chance."""

    explains: ClassVar[tuple[str, ...]] = (*NOT_LEARNING, "vanishing_gradient", "constant_output")
    _ADVICE: ClassVar = {
        "softmax": (
            "Remove the softmax at the end of the model: CrossEntropyLoss takes logits and has its own.",
            "Apply softmax only where probabilities are shown.",
        ),
        "batch": (
            "Let the softmax go over the classes, softmax(dim=-1) (dim=1 of pictures), not over the samples.",
            "Before a loss on logits, such as CrossEntropyLoss, remove it: that has its own.",
        ),
        "sigmoid": (
            "Remove the sigmoid at the end of the model: this loss takes logits.",
            "Or use BCELoss with the sigmoid (less exact).",
        ),
        "tanh": (
            "Remove the tanh at the end of the model: logits must be free to be large, or no answer is sure.",
            "Cosines as logits need a factor (a temperature) of 10 and more.",
        ),
        "relu": ("Remove the ReLU after the last layer: logits must be free to be negative.",),
        "no_softmax": (
            "Say from_logits=True to the loss, or end the model in a softmax: one of the two, not both.",
        ),
        "no_sigmoid": (
            "Say from_logits=True to the loss, or end the model in a sigmoid: one of the two, not both.",
        ),
        "both": (
            "Use one of the two: this loss on logits, or NLLLoss on log_softmax (CrossEntropyLoss is both).",
            "Of several classes one is right: CrossEntropyLoss. Each for itself is right or not: this loss.",
        ),
        "log_softmax": ("Put log_softmax before NLLLoss, or use CrossEntropyLoss on logits.",),
        "logarithms": (
            "Put log_softmax(dim=-1) before this loss: it takes logarithms of probabilities.",
            "For KLDivLoss, the probabilities it compares them with stay as they are (or log_target=True).",
        ),
        "shape": ("Make both shapes equal, for example output.squeeze(-1) or labels.unsqueeze(-1).",),
    }

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("tolerance", above=0)
        self.require("sigmoid_range", above=0, at_most=1)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Every loss that was seen at this step."""
        for name, given in self.given(run).items():
            answers = {self._judge(one) for one in given}
            answer = answers.pop() if len(answers) == 1 else ("", "")
            kind, text = next(filter(any, (answer, _pressed(run, name), _held(run, name))), ("", ""))
            if kind and (kind != "sigmoid" or given[-1].end is OutputEnd.SIGMOID or _always(run, name)):
                last = given[-1]
                return self.finding(
                    step,
                    f"{spoken(name)} is given {text}.",
                    severity=Severity.WARNING,
                    tensor=loss_tensor(run, name),
                    evidence={
                        "problem": kind,
                        "prediction_least": last.number("prediction_min"),
                        "prediction_largest": last.number("prediction_max"),
                        "saved_steps_count": len(given),
                    },
                    advice=self._ADVICE[kind],
                    view=ViewRef("scalars", {"tensors": [loss_tensor(run, name)]}),
                    step_first=given[0].step,
                )
        return None

    def _judge(self, one: Given) -> tuple[str, str]:
        """What is wrong: a word, and what the loss is given; two empty texts for nothing."""
        low, high = one.number("prediction_min"), one.number("prediction_max")
        if not (low <= high) or one.number("prediction_broken"):
            return "", ""
        if one.number("broadcast", 0.0):
            return "shape", "predictions and labels of different shapes, which are spread over each other"
        if self._adds_up(one, "batch_sum") and not self._adds_up(one, "row_sum"):
            return (
                "batch",
                "values that add up to 1 over the samples of the batch: a softmax over the wrong axis",
            )
        if no_logarithms := self._no_logarithms(one):
            return no_logarithms
        if one.kind in _LOGITS and one.end in _ENDS:
            return _ENDS[one.end]
        if one.kind is LossKind.LOGITS and one.number("classes", 0) > 1 and low >= 0:
            return self._logits(one)
        if one.kind is LossKind.YES_LOGITS:
            return self._logits_of_yes(one)
        beyond = low < -self.tolerance or high > 1 + self.tolerance
        if one.kind is LossKind.PROBABILITIES and beyond:
            return "no_softmax", "values that are no probabilities: a softmax is missing"
        if one.kind is LossKind.YES_PROBABILITIES and beyond:
            return "no_sigmoid", "values that are no probabilities: a sigmoid is missing"
        return "", ""

    def _no_logarithms(self, one: Given) -> tuple[str, str] | None:
        """What is given instead of logarithms of probabilities, by a loss that takes them."""
        if one.number("log_probability_max", 0.0) > self.tolerance:
            return "logarithms", "values above 0, which no logarithm of a probability is"
        if one.kind is LossKind.LOG_PROBABILITIES:
            worst = max(abs(one.number("row_logsumexp_min", 0.0)), abs(one.number("row_logsumexp_max", 0.0)))
            if worst > max(0.05, self.tolerance):
                return "log_softmax", "values that are no log-probabilities: log_softmax is missing"
        return None

    def _adds_up(self, one: Given, what: str) -> bool:
        """Whether values that are never negative are shares of 1, along an axis."""
        ends = one.number(f"{what}_min"), one.number(f"{what}_max")
        enough = one.number("samples", 0.0) >= _FEW_SAMPLES and one.number("prediction_min") >= 0
        return enough and all(abs(end - 1) < self.tolerance for end in ends)

    def _logits_of_yes(self, one: Given) -> tuple[str, str]:
        """What is given instead of logits of yes and no."""
        low, high = one.number("prediction_min"), one.number("prediction_max")
        least, most = one.number("row_logsumexp_min"), one.number("row_logsumexp_max")
        if max(abs(least), abs(most)) < self.tolerance:  # exponentials of each row add up to 1
            return "both", "logarithms of a softmax over the classes, where it expects logits of each"
        if high - low >= self.sigmoid_range and low >= 0 and high <= 1:
            return "sigmoid", "probabilities, where it expects logits: its sigmoid is the second one"
        return "", ""

    def _logits(self, one: Given) -> tuple[str, str]:
        """What values that are never negative are, where logits are expected."""
        zeros = one.number("prediction_zeros", 0.0)
        sums = one.number("row_sum_min"), one.number("row_sum_max")
        if all(abs(total - 1) < self.tolerance for total in sums):
            return "softmax", "probabilities, where it expects logits: its softmax is the second one"
        low, high = one.number("prediction_min"), one.number("prediction_max")
        certain = high - low >= self.sigmoid_range or one.number("classes") >= _MANY_CLASSES
        alike = one.number("spread", 1.0) < _ALIKE * (high - low)
        if high <= 1 and certain and not zeros and not alike:
            return "sigmoid", "values between 0 and 1, where it expects logits: a sigmoid comes before it"
        if zeros > 0.05:
            return "relu", "values that are never negative, where it expects logits: a ReLU comes before it"
        return "", ""


def _pressed(run: RunView, name: str) -> tuple[str, str]:
    """A sigmoid whose outputs gather at zero, coming from a half, where one begins.

    Logits begin about zero; those on their way down would pass it.
    """
    if kind_of(run, name) is not LossKind.YES_LOGITS:
        return "", ""
    least = facts_of(run, name, "prediction_min")
    last = least[-_PRESSED_STEPS:]
    if len(last) < _PRESSED_STEPS or not ((last > 0) & (last < _PRESSED)).all() or least[0] < 2 * _PRESSED:
        return "", ""
    return "sigmoid", "values that gather above zero, where it expects logits: a sigmoid comes before it"


def _held(run: RunView, name: str) -> tuple[str, str]:
    """A tanh before a loss on logits: they go up to 1 and down to -1 at every step, and never beyond."""
    if kind_of(run, name) not in {LossKind.LOGITS, LossKind.YES_LOGITS}:
        return "", ""
    ends = (facts_of(run, name, f"prediction_{end}") for end in ("min", "max"))
    for values, bound in zip(ends, (-1.0, 1.0), strict=True):
        last = bound * values
        within = len(last) >= _PRESSED_STEPS and (last <= 1).all()  # what is no number is not
        if not within or not (last[-_PRESSED_STEPS:] >= 1 - _AT_BOUND).all():
            return "", ""
    return "tanh", "values from -1 to 1, where it expects logits: a tanh comes before it"


def _always(run: RunView, name: str) -> bool:
    """Whether predictions were between 0 and 1 at every saved step: trained logits may be so now and then."""
    least, most = (facts_of(run, name, f"prediction_{end}") for end in ("min", "max"))
    return bool((least >= 0).all() and (most <= 1).all())
