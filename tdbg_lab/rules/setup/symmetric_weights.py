"""Weights that start all equal, so that all units of a layer stay equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.scales import begins_alike

if TYPE_CHECKING:
    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.view import RunView

__all__ = ["SymmetricWeights"]


@rule("symmetric_weights", title="Symmetric initialisation")
@dataclass(frozen=True, kw_only=True)
class SymmetricWeights(Rule):
    """All weights of a layer are equal when training begins: its units do the same and stay the same.

    Matrices of zeros at the end of a model or of each residual branch are common and healthy (half of the
    matrices of LoRA, zero-initialised branches and heads); zeros in most of the matrices are not. Ones that
    are no layer's weight are scales that leave all as it is at first (BatchEnsemble, layer scale).
    """

    zero_share: float = 0.6
    """Share of the weight matrices from which zeros are reported: of LoRA's, half are zero."""

    explains: ClassVar[tuple[str, ...]] = (*NOT_LEARNING, "tensors", "constant_output")
    _ADVICE: ClassVar = (
        "Initialise weights at random: nn.init.kaiming_uniform_ or xavier_uniform_ (biases may be zero).",
        "Remove nn.init.constant_, zeros_ or ones_ on weight matrices.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("zero_share", above=0, at_most=1)

    def needs(self) -> Needs:
        """Weights."""
        return Needs(kinds=(Kind.WEIGHT,))

    def check(self, step: int, run: RunView) -> Finding | None:
        """Judge the first two recorded steps."""
        if step > 1:
            return None
        constant: list[TensorKey] = []
        zero: list[TensorKey] = []
        matrices = 0
        frame = run.frame()
        for key, row in frame.items(Kind.WEIGHT):
            if len(key.shape) < 2 or min(key.shape[:2]) < 2:
                continue
            matrices += 1
            if row.count <= 3 or row.min != row.max:
                continue
            if row.max == 0:
                zero.append(key)
            elif not begins_alike(key, float(row.max), frame):
                constant.append(key)
        bad = constant or (zero if len(zero) > 1 and len(zero) >= self.zero_share * matrices else [])
        if not bad:
            return None
        key = bad[0]
        more = f" (and those of {len(bad) - 1} more layers)" if len(bad) > 1 else ""
        return self.finding(
            step,
            f"All weights of {key.name} are equal at step {step}{more}: its units cannot become different.",
            severity=Severity.WARNING,
            key=key,
            evidence={"layers_count": len(bad), "layers": ", ".join(one.name for one in bad[:20])},
            advice=self._ADVICE,
            view=ViewRef("histogram", {"tensor": key.name}),
        )
