"""NaN and infinities where they do harm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Mode, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.tensors.origin import NO_LAYERS, Origin, find_origin, not_finite
from tdbg_lab.rules.tensors.selection import chosen

if TYPE_CHECKING:
    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.view import RunView

__all__ = ["ExplodingTensor"]

_LAYERED = (Kind.GRADIENT, Kind.WEIGHT, Kind.ACTIVATION, Kind.BIAS, Kind.INPUT, Kind.BUFFER)
_PARAMETERS = (Kind.WEIGHT, Kind.BIAS)
_SKIPPED = "optimizer/skipped_steps"


@rule("exploding_tensor", title="Exploding tensor")
@dataclass(frozen=True, kw_only=True)
class ExplodingTensor(Rule):
    """NaN or infinities in weights, in the loss, or in gradients that are used.

    Weights never recover from them: critical at once. A loss that is not finite is a warning, and
    critical when it stays so. Gradients alone are normal with mixed precision, where the scaler
    skips such steps: a warning when it goes on for long, unless ``stuck_scaler`` tells it. Activations and
    buffers may hold infinities on purpose (attention masks): they are not judged, but tell where it began.

    One trouble is one finding; it names the first tensor: the earliest output in the order of the
    forward pass, or the deepest gradient in that of the backward pass.

    With `classic`, the condition of SageMaker Debugger to the letter: any NaN or infinity in any
    chosen tensor (AWS developer guide, ExplodingTensor).
    """

    patience_loss: int = 3
    """Recorded steps in a row with such a loss that make it critical. A spike that is over sooner does
    no lasting harm (PaLM saw more than twenty)."""
    patience_gradient: int = 20
    """Recorded steps in a row with such gradients, while weights and loss stay finite, that are worth a
    warning. A scaler that starts at 2^16 skips fewer than that before it has settled."""
    classic: bool = False
    collection_names: str | None = None
    """Classic: collections to look at, joined by commas."""
    regex: str | None = None
    """Classic: tensors to look at, by name, besides; without both, all but facts of the optimizer."""
    only_nan: bool = False
    """Classic: pass over infinities."""

    explains: ClassVar[tuple[str, ...]] = ("tensors", "losses", "silent")
    _ADVICE: ClassVar = (
        "Clip the gradients (torch.nn.utils.clip_grad_norm_) or lower the learning rate.",
        "Look for divisions, logarithms, roots and exponentials of unguarded values near that layer.",
        "With mixed precision, keep that layer in float32 or use bfloat16.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("patience_loss", "patience_gradient", at_least=1)

    def needs(self) -> Needs:
        """Weights, losses, gradients; activations help to find the origin."""
        return Needs(steps=max(2, self.patience_gradient))

    def check(self, step: int, run: RunView) -> Finding | None:
        """Look at what was recorded at this step."""
        if self.classic:
            return self._check_classic(step, run)
        frame = run.frame()
        weights = not_finite(frame, *_PARAMETERS)
        if len(weights):
            return self._found(step, run, frame, Severity.CRITICAL, "weights")
        return self._check_loss(step, run, frame) or self._check_gradients(step, run, frame)

    def _check_loss(self, step: int, run: RunView, frame: Frame) -> Finding | None:
        for name in run.losses():
            steps, values = run.scalars(name)
            if len(steps) and steps[-1] == step and not np.isfinite(values[-1]):
                row = _streak(~np.isfinite(values))
                severity = Severity.CRITICAL if row >= self.patience_loss else Severity.WARNING
                return self._found(step, run, frame, severity, f"the loss {name}", row)
        for name in run.losses(Mode.EVAL):
            steps, values = run.scalars(name, Mode.EVAL)
            if len(steps) and steps[-1] == step and not np.isfinite(values[-1]):
                held = run.frame(Mode.EVAL)
                return self._found(step, run, held, Severity.WARNING, f"the evaluation loss {name}")
        return None

    def _check_gradients(self, step: int, run: RunView, frame: Frame) -> Finding | None:
        scaled = any(one.rule == "stuck_scaler" for one in run.open)  # and it says so
        if scaled or not len(not_finite(frame, Kind.GRADIENT)):
            return None
        frames = run.frames(Kind.GRADIENT, self.patience_gradient)
        streak = _streak(np.array([len(not_finite(one, Kind.GRADIENT)) > 0 for one in frames]))
        guarded = bool(run.tensors(*_PARAMETERS) or run.losses() or run.tensors(regex=f"^{_SKIPPED}$"))
        if not guarded and streak >= self.patience_loss:  # nothing says that the steps were skipped
            return self._found(step, run, frame, Severity.CRITICAL, "gradients", streak)
        if streak >= self.patience_gradient:
            return self._found(step, run, frame, Severity.WARNING, "gradients", streak)
        return None

    def _found(  # noqa: PLR0917 - all of it goes into the finding
        self, step: int, run: RunView, frame: Frame, severity: Severity, where: str, streak: int = 1
    ) -> Finding:
        origin = find_origin(run, frame)
        told = next((one for one in run.open if (one.rule, one.tensor) == (self.name, origin.key.name)), None)
        if told is not None and origin.sentence == NO_LAYERS and NO_LAYERS not in told.message:
            # what was said of layers at an earlier step holds
            evidence = {**told.evidence, "recorded_steps_in_a_row_count": streak}
            return replace(told, step_last=step, severity=severity, evidence=evidence)
        row = frame.get(origin.key.name)
        what = f"{where} {'is' if where.startswith('the') else 'are'} not finite"
        if where.endswith(f"loss {origin.key.name}"):  # where it begins in the loss itself, that is said once
            what = f"T{what[1:]}"
        else:
            what = f"{_amount(origin, row)}; {what}"
        lasting = f" for {streak} recorded steps in a row" if streak > 1 else ""
        return self.finding(
            step,
            f"{what}{lasting}. {origin.sentence}",
            severity=severity,
            key=origin.key,
            evidence={
                "nan_count": int(row.nan_count) if row else 0,
                "inf_count": row.not_finite - int(row.nan_count) if row else 0,
                "elements_count": int(row.count) if row else 0,
                "tensors_not_finite_count": origin.affected,
                "recorded_steps_in_a_row_count": streak,
                "origin": origin.how,
            },
            advice=(*origin.advice, *self._ADVICE),
            view=_view_of(origin.key),
        )

    def _check_classic(self, step: int, run: RunView) -> Finding | None:
        for mode in Mode:
            frame = run.frame(mode)
            for key, row in frame.items():
                bad = int(row.nan_count) if self.only_nan else row.not_finite
                if bad and chosen(key, self.collection_names, self.regex):
                    return self.finding(
                        step,
                        f"{key.name} holds {bad} values that are not finite.",
                        severity=Severity.CRITICAL,
                        key=key,
                        evidence={
                            "nan_count": int(row.nan_count),
                            "inf_count": row.not_finite - int(row.nan_count),
                        },
                        advice=self._ADVICE,
                        view=_view_of(key),
                    )
        return None


def _view_of(key: TensorKey) -> ViewRef:
    """Layers over steps, where holes show; a line for what is one number."""
    if key.kind in _LAYERED:
        return ViewRef("overview", {"kind": str(key.kind), "statistic": "l2"})
    return ViewRef("scalars", {"tensors": [key.name]})


def _streak(bad: np.ndarray) -> int:
    """How many at the end in a row."""
    good = np.flatnonzero(~bad)
    return int(len(bad) - (good[-1] + 1 if len(good) else 0))


def _amount(origin: Origin, row: object) -> str:
    count = getattr(row, "not_finite", 0)
    total = getattr(row, "count", 0)
    if total == 1:
        return f"{origin.key.name} is not finite"
    return f"{origin.key.name} holds {count} of {total} values that are NaN or infinite"
