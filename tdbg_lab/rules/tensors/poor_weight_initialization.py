"""Weights that begin wrongly: all alike, or so that signals grow or die from layer to layer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, LossKind, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.frame import Row
from tdbg_lab.rules.losses.state import LossState, knows_nothing, loss_state
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.scales import begins_alike
from tdbg_lab.rules.schedule import warming_up
from tdbg_lab.rules.setup.given import kind_of
from tdbg_lab.rules.tensors.recurrent_gain import recurrent_gains
from tdbg_lab.stats import quantile, take

if TYPE_CHECKING:
    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.view import RunView

__all__ = ["PoorWeightInitialization"]

_LEAST_WEIGHTS = 2
_FORBIDDEN = 1e3
"""Values this far below zero stand for what must not be: 1,000 as a rule, or 10,000."""


@rule("poor_weight_initialization", title="Poor weight initialisation")
@dataclass(frozen=True, kw_only=True)
class PoorWeightInitialization(Rule):
    """Weights that begin constant, or so that signals explode or die on their way through the layers.

    *Constant*: a weight whose values are all the same in the first recorded step: its units compute the
    same for ever. Zeros are not judged here: many layers begin with them on purpose.
    *Scale*: the outputs of layers with weights differ in spread by more than `max_spread` from layer to
    layer while the loss does not fall in the first `steps` recorded steps. Residual and normalised networks
    stay within 100; ten layers with the initialisation of PyTorch reach 10,000 and train badly.
    *Size*: what a weight does to the size of signals is its root mean square times the root of its inputs,
    0.6 with the initialisation of PyTorch. Weights so small that each layer leaves a hundredth of a
    signal or less begin as nothing; so large ones that each layer makes a signal several times as large begin
    with answers that are sure and wrong: the first loss is several times that of knowing nothing, or the
    first outputs are many times as large as what there is to tell as a rule. So may the weight of the last
    layer alone. Recurrent
    weights, which feed a layer with its own outputs, are judged one by one, where nothing is known yet.

    With `classic`, the condition of SageMaker Debugger to the letter, in the first `steps` recorded steps:
    the variances of activation inputs differ by a factor above `threshold`, or the spread (p95 - p5) of a
    gradient is below `distribution_range`, or the loss has not fallen for `patience` steps (AWS developer
    guide, PoorWeightInitialization).
    """

    explains: ClassVar = (
        *("vanishing_gradient", "tensor_variance", "saturated_activation", "weight_update_ratio"),
        *NOT_LEARNING,
    )

    max_spread: float = 1e4
    """Largest over least standard deviation of the outputs of layers with weights."""
    max_constant: float = 0.02
    """Standard deviation over absolute mean below which a weight is constant."""
    least_gain: float = 0.01
    """Root mean square of a weight times the root of its inputs, median of the weights, below which all begin
    as nothing."""
    most_gain: float = 4.0
    """The same, above which all begin too large, if the first loss says so."""
    sure_and_wrong: float = 3.0
    """First loss over the entropy of the labels, from which the untrained model is sure of what is wrong."""
    out_of_scale: float = 10.0
    """The same of numbers: size of the first predictions over that of the targets, or over one where these
    are not known. Two layers of `most_gain` make a signal 16 times as large."""
    most_recurrent: float = 5.0
    """The same of a recurrent weight, above which it drives its layer to its limits: from 1 on activity feeds
    itself (Sompolinsky et al., 1988), and at 5 outputs of a half are 2.5 for a gate, where a sigmoid has 0.28
    of its slope."""
    steps: int = 10
    """First recorded steps that are looked at (AWS developer guide)."""
    classic: bool = False
    activation_inputs_regex: str = r"relu_input|^input/.*(?i:relu)"
    """Classic: names of activation inputs."""
    threshold: float = 10.0
    """Classic: largest over least variance of activation inputs."""
    distribution_range: float = 0.001
    """Classic: least spread of a gradient, p95 - p5."""
    patience: int = 5
    """Classic: steps without a fall of the loss."""

    _ADVICE: ClassVar = (
        "Use Xavier initialisation for tanh and sigmoid, He initialisation for ReLU (torch.nn.init).",
        "Never begin with equal weights: units that begin alike stay alike.",
        "Add a normalisation (BatchNorm, LayerNorm) or residual connections between the layers.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("max_spread", "threshold", at_least=1)
        self.require("max_constant", "distribution_range", "least_gain", at_least=0)
        self.require("most_gain", "most_recurrent", "sure_and_wrong", "out_of_scale", above=0)
        self.require("steps", "patience", at_least=1)

    def needs(self) -> Needs:
        """Weights and layer outputs; classic: activation inputs, gradients, losses."""
        if self.classic:
            return Needs(steps=self.steps + 1)
        return Needs(kinds=(Kind.WEIGHT, Kind.ACTIVATION), steps=self.steps + 1)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Look at the first recorded steps."""
        if self.classic:
            return self._check_classic(step, run)
        weights = run.frames(Kind.WEIGHT, self.steps + 1)
        if len(weights) == 1 and weights[0].step == step:
            found = self._constant(step, run) or self._size(step, run) or self._recurrent(step, run)
            if found:
                return found
        outputs = run.frames(Kind.ACTIVATION, self.steps + 1)
        if len(outputs) == self.steps and outputs[-1].step == step and not warming_up(run).now:
            return self._scale(step, run, outputs)
        return None

    def _constant(self, step: int, run: RunView) -> Finding | None:
        frame = run.frames(Kind.WEIGHT, 1)[-1]
        gradients = next(iter(run.frames(Kind.GRADIENT, 1)), None)
        flat: list[TensorKey] = []
        for key, row in frame.items(Kind.WEIGHT):
            trains = gradients is None or f"gradient/{key.name}" in gradients.index
            wide = len(key.shape) > 1 and sorted(key.shape)[-2] > 1
            flat_row = row.mean != 0 and row.std <= self.max_constant * abs(row.mean)
            if trains and wide and flat_row and not begins_alike(key, row.mean, frame):
                flat.append(key)
        if not flat:
            return None
        first = Row(frame.block, frame.index[flat[0].name])
        mean = first.mean
        others = f" So are {len(flat) - 1} more." if len(flat) > 1 else ""
        return self.finding(
            step,
            f"All values of {flat[0].name} are {mean:.3g} at step {step}: its units cannot become "
            f"different.{others}",
            key=flat[0],
            evidence={
                "mean": mean,
                "std": first.std,
                "weights_count": len(flat),
                "weights": ", ".join(key.name for key in flat[:20]),
            },
            advice=(self._ADVICE[1], self._ADVICE[0]),
            view=ViewRef("histogram", {"tensor": flat[0].name}),
        )

    def _size(self, step: int, run: RunView) -> Finding | None:
        """Judge the size of all weights together: a single one may begin at zero, or embed."""
        frame = run.frames(Kind.WEIGHT, 1)[-1]
        gains = {
            key: float(row.l2) / float(np.sqrt(max(1, row.count) / np.prod(key.shape[1:])))
            for key, row in frame.items(Kind.WEIGHT)
            if len(key.shape) > 1 and row.l2 > 0 and not _forbids(row)
        }
        if len(gains) < _LEAST_WEIGHTS or not all(map(np.isfinite, gains.values())):
            return None
        typical = float(np.median(list(gains.values())))
        small = typical < self.least_gain
        if not small and typical <= self.most_gain:
            return self._last(step, run, gains)
        if not small and not self._is_wrong(run):
            return None
        key = min(gains, key=gains.__getitem__) if small else max(gains, key=gains.__getitem__)
        what = "small: they leave next to nothing of a signal" if small else "large: the first loss shows it"
        return self.finding(
            step,
            f"All weights begin too {what}. Their root mean square times the root of their inputs is "
            f"{typical:.2g} (median of {len(gains)}), where about 1 keeps the size of signals.",
            key=key,
            evidence={"gain_median": typical, "gain": gains[key], "weights_count": len(gains)},
            advice=self._ADVICE,
            view=ViewRef("overview", {"kind": "weight", "statistic": "std"}),
        )

    def _last(self, step: int, run: RunView, gains: dict[TensorKey, float]) -> Finding | None:
        """Judge the weight of the last layer by itself: what it makes of signals is what the model tells."""
        last = _last_output(run)
        key = next((one for one in gains if last is not None and one.module == last[0].module), None)
        if key is None or gains[key] <= self.out_of_scale or not self._is_wrong(run):
            return None
        return self.finding(
            step,
            f"{key.name} begins too large: the first loss shows it. Its root mean square times the root of "
            f"its inputs is {gains[key]:.2g}, where about 1 keeps the size of signals.",
            key=key,
            evidence={"gain": gains[key], "weights_count": 1},
            advice=self._ADVICE[:1],
            view=ViewRef("histogram", {"tensor": key.name}),
        )

    def _recurrent(self, step: int, run: RunView) -> Finding | None:
        """Judge recurrent weights each by itself: their outputs are bounded, and the first loss is, too."""
        gradients = next(iter(run.frames(Kind.GRADIENT, 1)), None)
        gains = recurrent_gains(run.frames(Kind.WEIGHT, 1)[-1], gradients)
        large = {key: gain for key, gain in gains.items() if gain > self.most_recurrent}
        if not large or not knows_nothing(run):
            return None
        key = max(large, key=large.__getitem__)
        return self.finding(
            step,
            f"{key.name} begins too large: its root mean square times the root of its inputs is "
            f"{large[key]:.2g}, and about 1 as layers begin: it drives its layer to its limits.",
            key=key,
            evidence={"gain": large[key], "weights_count": len(large)},
            advice=(
                "Use the initialisation of the framework, or orthogonal weights (torch.nn.init.orthogonal_).",
                *self._ADVICE[2:],
            ),
            view=ViewRef("histogram", {"tensor": key.name}),
        )

    def _is_wrong(self, run: RunView) -> bool:
        """Whether the first loss is several times what it is without knowing anything.

        That is the entropy of the labels; of numbers, what their own size makes of it.
        """
        for name in run.losses():
            told, wanted = (
                run.scalars(f"check/{name}/{whose}_size").values for whose in ("prediction", "target")
            )
            compared = kind_of(run, name.removeprefix("loss/")) is LossKind.DISTANCE
            if compared and len(told) and len(wanted) and told[0] > self.out_of_scale * wanted[0] > 0:
                return True
            losses, entropy = run.scalars(name).values, run.scalars(f"check/{name}/entropy").values
            if len(losses) and len(entropy) and losses[0] > self.sure_and_wrong * max(float(entropy[0]), 0.1):
                return True
        return self._is_far(run)

    def _is_far(self, run: RunView) -> bool:
        """Whether the last layer's first outputs are large: what to tell is of about one, logits as well."""
        last = _last_output(run)
        return last is not None and last[1].l2 > self.out_of_scale * np.sqrt(max(1, last[1].count))

    def _scale(self, step: int, run: RunView, frames: list[Frame]) -> Finding | None:
        spreads = [_layer_spreads(run, frame) for frame in frames]
        names = [name for name in spreads[-1] if all(name in one for one in spreads)]
        if len(names) < 2:
            return None
        ratios = [max(one[n] for n in names) / min(one[n] for n in names) for one in spreads]
        if min(ratios) <= self.max_spread or loss_state(run) is not LossState.STUCK:
            return None
        last = spreads[-1]
        least, most = min(names, key=last.__getitem__), max(names, key=last.__getitem__)
        dies = names.index(least) > names.index(most)
        named = least if dies else most
        key = next(key for key in run.tensors(Kind.ACTIVATION) if key.name == named)
        return self.finding(
            step,
            f"Signals {'die' if dies else 'explode'} on their way: the outputs of {most} spread "
            f"{ratios[-1]:.1e} times as much as those of {least}, and the loss does not fall.",
            key=key,
            evidence={"std_ratio": ratios[-1], "std_least": last[least], "std_most": last[most]},
            advice=self._ADVICE,
            view=ViewRef("overview", {"kind": "activation", "statistic": "std"}),
        )

    def _check_classic(self, step: int, run: RunView) -> Finding | None:
        if len(run.frames(Kind.GRADIENT, self.steps + 1)) > self.steps:
            return None
        frame = run.frame()
        variances = {
            key: row.std**2
            for key, row in frame.items()
            if key.kind in {Kind.INPUT, Kind.ACTIVATION, Kind.CUSTOM}
            and re.search(self.activation_inputs_regex, key.name)
        }
        if len(variances) > 1:
            key = max(variances, key=variances.__getitem__)
            least = min(variances.values())
            ratio = variances[key] / least if least > 0 else np.inf
            if ratio > self.threshold:
                message = (
                    f"Variances of activation inputs differ by a factor of {ratio:.3g}; most: {key.name}."
                )
                return self._classic_finding(step, message, key)
        return self._classic_gradients(step, frame) or self._classic_loss(step, run)

    def _classic_gradients(self, step: int, frame: Frame) -> Finding | None:
        rows = frame.rows(Kind.GRADIENT)
        if not len(rows):
            return None
        low, high = quantile(take(frame.block, rows), (0.05, 0.95)).T
        place = int(np.argmin(np.nan_to_num(high - low, nan=np.inf)))
        if not high[place] - low[place] < self.distribution_range:
            return None
        key = frame.keys[rows[place]]
        message = f"{key.name} spreads over {high[place] - low[place]:.2e} only (p95 - p5)."
        return self._classic_finding(step, message, key)

    def _classic_loss(self, step: int, run: RunView) -> Finding | None:
        for name in run.losses():
            steps, values = run.scalars(name)
            if len(steps) > self.patience and steps[-1] == step and len(steps) <= self.steps:
                last = values[-self.patience - 1 :]
                if not (np.diff(last) < 0).any():
                    message = f"{name} has not fallen for {self.patience} steps."
                    return self.finding(step, message, tensor=name, advice=self._ADVICE)
        return None

    def _classic_finding(self, step: int, message: str, key: TensorKey) -> Finding:
        view = ViewRef("histogram", {"tensor": key.name})
        return self.finding(step, message, key=key, advice=self._ADVICE, view=view)


def _forbids(row: Row) -> bool:
    """Whether some values stand far below all others, as what a CRF forbids does, and are no size."""
    return bool(row.min <= -_FORBIDDEN and abs(row.max) < 0.01 * abs(row.min))


def _last_output(run: RunView) -> tuple[TensorKey, Row] | None:
    """What the last layer with weights gave at the checked step."""
    frames = run.frames(Kind.ACTIVATION, 1)
    modules = {key.module for key in run.tensors(Kind.WEIGHT)}
    rows = frames[-1].items(Kind.ACTIVATION) if frames else ()
    outputs = [(key, row) for key, row in rows if key.module in modules]
    return outputs[-1] if outputs else None


def _layer_spreads(run: RunView, frame: Frame) -> dict[str, float]:
    """Standard deviation of the outputs of layers with weights, in the order of the forward pass."""
    trained = {key.module for key in run.tensors(Kind.WEIGHT) if len(key.shape) > 1}
    return {
        key.name: row.std
        for key, row in frame.items(Kind.ACTIVATION)
        if key.module in trained and np.isfinite(row.std) and row.std > 0
    }
