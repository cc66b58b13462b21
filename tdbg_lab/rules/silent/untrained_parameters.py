"""Parameters that should train but do not: no optimizer holds them, or no gradient reaches them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs
from tdbg_lab.rules.consequences import NOT_MOVED
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.cut_off import cut_off
from tdbg_lab.rules.silent.fresh_head import fresh_head
from tdbg_lab.rules.silent.loop import LoopRule, fact, facts_below, in_order

if TYPE_CHECKING:
    from collections.abc import Collection

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.view import RunView

__all__ = ["ParametersWithoutGradient", "ParametersWithoutOptimizer"]

_SHOWN = 20
_RECORDED = 3
"""Recorded steps with a gradient of exactly zero."""
_ROUNDING = 1e-6
"""Standard deviation over the root mean square of what is one number, in float32."""
_FROZEN = "frozen_parameters_count"
_DEAD = ("dead_relu", "dead_units", "all_zero", "exploding_tensor")
"""Rules that tell why a gradient is zero."""


@rule("parameters_without_optimizer", title="Parameters without optimizer")
@dataclass(frozen=True, kw_only=True)
class ParametersWithoutOptimizer(LoopRule):
    """Parameters get gradients, but no optimizer holds them, so they never change.

    It happens when layers are exchanged or added after the optimizer was made (which then holds the
    old ones), or when parts of a model were forgotten. Frozen parameters (``requires_grad`` is False)
    and those that something else changes do not count.
    """

    patience: int = 3
    """Steps in a row with a gradient and without a change."""

    explains: ClassVar[tuple[str, ...]] = NOT_MOVED
    _ADVICE: ClassVar = (
        "Make the optimizer after the model is complete, or call optimizer.add_param_group for new layers.",
        "Give the optimizer the parameters of every part: itertools.chain(a.parameters(), b.parameters()).",
        "If they are meant to stay as they are, freeze them: parameter.requires_grad_(False).",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("patience", at_least=1)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Name the first of them in the order of the model."""
        bad = in_order(
            run, [name for _, name, steps in facts_below(run, "without_optimizer") if steps >= self.patience]
        )
        if not bad:
            return None
        foreign = int(fact(run, "foreign_parameters"))
        stale = f", which holds {foreign} that the model does not have" if foreign else ""
        name = bad[0]
        return self.finding(
            step,
            f"{_these(bad)} got gradients but did not change in the last {self.patience} steps: "
            f"not held by the optimizer{stale}.",
            tensor=name,
            evidence={
                "parameters_without_optimizer_count": len(bad),
                "parameters_count": int(fact(run, "parameters")),
                "foreign_parameters_count": foreign,
                "parameters": ", ".join(bad[:_SHOWN]),
            },
            advice=self._ADVICE,
            view=ViewRef("overview", {"kind": "weight", "statistic": "l2"}),
            step_first=max(0, step - self.patience + 1),
        )


@rule("parameters_without_gradient", title="Parameters without gradient")
@dataclass(frozen=True, kw_only=True)
class ParametersWithoutGradient(LoopRule):
    """Trainable parameters that the optimizer holds never get a gradient: they are cut off from the loss.

    Layers whose outputs were recorded in the forward pass make a warning: a ``detach``, a ``no_grad`` or
    a round trip through numpy cuts them off. Layers that were not used meanwhile, such as an expert to which
    no row was sent, make a notice. So do biases of layers whose weights get one: where a loss is made of the
    derivative of an output, as in energy models, what is added to the output goes for nothing. Nor is it more
    than a notice for the part of the last of several blocks whose like in the blocks before gets one: what it
    would hand on has no next block to go to, as the last residual of a WaveNet; nor for a part of a library's
    class of which other parts get one, as the pooler of a BERT whose last hidden states are taken.

    A gradient that is exactly zero, of the bias as well, is none. It is so behind dead units, which have
    rules of their own, and in parts whose turn has not come; but a head that nothing else takes its output
    from, and that has no sibling to take turns with, makes a warning: the loss does not look at it. What
    gives the same for all samples has another trouble. Layers of Keras are known by weights that are
    trainable and never moved. Frozen parameters are meant to be so, but for those of a last layer that are as
    they were drawn.
    """

    patience: int = 4
    """Steps in a row without a gradient."""

    explains: ClassVar[tuple[str, ...]] = NOT_MOVED
    _ADVICE: ClassVar = (
        "Look for detach(), .data, .item(), numpy() or torch.no_grad() between this layer and the loss.",
        "Check that the loss is computed from the output that this layer leads to.",
        "If the layer is not meant to train, freeze it: layer.requires_grad_(False).",
    )
    _ADVICE_LEFT_OVER: ClassVar = (
        "Nothing is wrong if you do not need it; some classes can be made without (add_pooling_layer=False).",
        "If it is to train, compute the loss from the output that it leads to.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("patience", at_least=1)

    def needs(self) -> Needs:
        """Facts about the loop, and gradients."""
        return Needs(
            kinds=(Kind.CHECK, Kind.LOSS, Kind.GRADIENT, Kind.WEIGHT, Kind.OPTIMIZER), steps=_RECORDED
        )

    def check(self, step: int, run: RunView) -> Finding | None:
        """Name the last of them in the order of the model: the cut is behind it."""
        lasting = {name: steps for _, name, steps in facts_below(run, "without_gradient")}
        bad = in_order(run, [name for name, steps in lasting.items() if steps >= self.patience])
        if not bad:
            return self._unheeded(step, run) or self._cut_off(step, run) or self._frozen(step, run)
        reached = _reached(run)
        used = self._used(step, run, {name: lasting[name] for name in bad}, reached)
        left_over = {name for _, name, _ in facts_below(run, "left_over")}
        ends = all(one in left_over or _ends_a_stack(_owner(one), reached) for one in used)
        if ends and (graver := self._unheeded(step, run) or self._cut_off(step, run)) is not None:
            return graver
        shown = used or bad
        last = _owner(shown[-1])
        name = next(one for one in shown if _owner(one) == last)
        named = _these([name, *(one for one in shown if one != name)])
        if used and left_over.issuperset(used):
            how = "for the loss does not use what this part of a library's model gives"
        elif used and ends:
            how = "as what the last block of a stack would hand on to the next one"
        elif used:
            how = "though they take part in the forward pass"
        elif all(_owner(one) in reached for one in bad):
            how = "though their layers' weights did"
        else:
            how = "and their layers were not seen to be used"
        return self.finding(
            step,
            f"{named} got no gradient in the last {self.patience} steps, {how}.",
            severity=Severity.NOTICE if ends else Severity.WARNING,
            tensor=name,
            evidence={
                "parameters_without_gradient_count": len(bad),
                "parameters_in_use_count": len(used),
                "parameters_count": int(fact(run, "parameters")),
                "parameters": ", ".join(shown[:_SHOWN]),
            },
            advice=self._ADVICE_LEFT_OVER if used and left_over.issuperset(used) else self._ADVICE,
            view=ViewRef("overview", {"kind": "gradient", "statistic": "l2"}),
            step_first=max(0, step - self.patience + 1),
        )

    @staticmethod
    def _used(step: int, run: RunView, lasting: dict[str, float], reached: Collection[str]) -> list[str]:
        """Of parameters without a gradient for so many steps those whose layers took part in a forward pass.

        Biases of layers whose weights got one are left out.
        """
        seen = run.frames(Kind.ACTIVATION, 1)
        if not seen:
            return []
        called = {key.module for key in seen[-1].keys if key.kind is Kind.ACTIVATION}
        since = step - seen[-1].step
        return [
            name
            for name, steps in lasting.items()
            if _owner(name) in called and steps > since
            if _is_weight(name) or _owner(name) not in reached
        ]

    def _cut_off(self, step: int, run: RunView) -> Finding | None:
        """Layers of Keras that a stopped gradient keeps where they are."""
        if run.active is None and any(one.rule in _DEAD for one in run.open):
            return None
        bad = in_order(run, cut_off(run))
        if not bad:
            return None
        return self.finding(
            step,
            f"{_these(bad)} got no gradient and never moved, though trainable and part of the forward pass.",
            severity=Severity.WARNING,
            tensor=bad[-1],
            evidence={
                "parameters_without_gradient_count": len(bad),
                "parameters": ", ".join(bad[:_SHOWN]),
            },
            advice=("Look for stop_gradient() between this layer and the loss.", *self._ADVICE[1:2]),
            view=ViewRef("overview", {"kind": "gradient", "statistic": "l2"}),
        )

    def _frozen(self, step: int, run: RunView) -> Finding | None:
        """A new head that was frozen with what it was put on."""
        if run.active is not None:  # the values of frozen weights are recorded once
            return run.active if _FROZEN in run.active.evidence else None
        key = fresh_head(run)
        if key is None:
            return None
        return self.finding(
            step,
            f"{key.name} is frozen, and has the values it was drawn with: the last layer is never trained, "
            "though layers before it are.",
            severity=Severity.WARNING,
            key=key,
            evidence={_FROZEN: int(fact(run, "frozen_parameters"))},
            advice=(
                "Freeze what was trained before, and then put the new layer on.",
                f"If it is to train: {key.module}.requires_grad_(True), and give it to the optimizer.",
            ),
            view=ViewRef("histogram", {"tensor": key.name}),
        )

    def _unheeded(self, step: int, run: RunView) -> Finding | None:
        """Heads whose gradients are exactly zero at each of the last recorded steps."""
        frames = run.frames(Kind.GRADIENT, _RECORDED)
        if len(frames) < _RECORDED or step - frames[0].step < self.patience:
            return None
        if run.active is None and (frames[-1].step != step or any(one.rule in _DEAD for one in run.open)):
            return None
        heads = [one for one in _at_zero(frames) if _is_head(run, one) and _tells_apart(run, one)]
        if not heads:
            return None
        name = f"{heads[0]}.weight"
        return self.finding(
            step,
            f"The gradient of {name} and of its bias is exactly zero at the last {_RECORDED} recorded steps: "
            "the loss does not look at what this layer tells.",
            severity=Severity.WARNING,
            tensor=name,
            evidence={
                "parameters_without_gradient_count": 2 * len(heads),
                "layers": ", ".join(heads[:_SHOWN]),
            },
            advice=self._ADVICE,
            view=ViewRef("overview", {"kind": "gradient", "statistic": "l2"}),
            step_first=frames[0].step,
        )


def _ends_a_stack(module: str, reached: Collection[str]) -> bool:
    """Whether it is a part of the last of some numbered blocks, and all others like it got a gradient.

    Parameters
    ----------
    module
        Its path: ``layers.2.residual``.
    reached
        Modules that got a gradient, among them ``layers.1.residual`` and some other part of ``layers.2``.
    """
    for number in re.finditer(r"(?<=\.)\d+(?=\.)|^\d+(?=\.)", module):
        before, after = module[: number.start()], module[number.end() :]
        likes = [f"{before}{one}{after}" for one in range(int(number[0]))]
        others = f"{before}{number[0]}."
        if likes and all(one in reached for one in likes) and any(one.startswith(others) for one in reached):
            return f"{before}{int(number[0]) + 1}{after}" not in reached
    return False


def _at_zero(frames: list[Frame]) -> list[str]:
    """Modules with a weight and a bias whose gradients are zero in all frames; none if those of all are."""
    zero: set[str] | None = None
    for frame in frames:
        sizes: dict[str, list[float]] = {}
        for key, row in frame.items(Kind.GRADIENT):
            sizes.setdefault(key.module, []).append(row.l2)
        now = {module for module, found in sizes.items() if len(found) > 1 and max(found) == 0.0}
        if len(now) == len(sizes):
            return []
        zero = now if zero is None else zero & now
    return sorted(zero or ())


def _is_head(run: RunView, module: str) -> bool:
    """Whether no later layer can take its output, by its width; and none beside it is of the same shape."""
    shapes = {key.module: key.shape for key in run.tensors(Kind.WEIGHT) if len(key.shape) > 1}
    called = [key.module for key in run.tensors(Kind.ACTIVATION)]
    own = shapes.get(module)
    if own is None or module not in called:
        return False
    later = called[called.index(module) + 1 :]
    taken = any(len(shape := shapes.get(one, ())) > 1 and shape[1] == own[0] for one in later)
    return not taken and not any(shape == own for one, shape in shapes.items() if one != module)


def _tells_apart(run: RunView, module: str) -> bool:
    """Whether a layer's output differs between samples, as far as float32 tells."""
    frames = run.frames(Kind.ACTIVATION, 1)
    row = frames[-1].get(f"activation/{module}") if frames else None
    return row is None or not row.count or row.std > _ROUNDING * row.l2 / row.count**0.5


def _reached(run: RunView) -> set[str]:
    """Modules with a weight that had a gradient, at the last step at which some were recorded."""
    frames = run.frames(Kind.GRADIENT, 1)
    keys = frames[-1].keys if frames else ()
    return {key.module for key in keys if key.kind is Kind.GRADIENT and _is_weight(key.name)}


def _is_weight(name: str) -> bool:
    return name.rpartition(".")[2] != "bias"


def _owner(name: str) -> str:
    return name.rpartition(".")[0]


def _these(names: list[str]) -> str:
    others = len(names) - 1
    more = f" and {others} more parameter{'s' * (others > 1)}" if others else ""
    return f"{names[0]}{more}"
