"""A model that answers the same for every sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import ViewRef
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.setup.given import LossRule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.setup.given import Given
    from tdbg_lab.rules.view import RunView

__all__ = ["ConstantOutput"]


@rule("constant_output", title="Constant output")
@dataclass(frozen=True, kw_only=True)
class ConstantOutput(LossRule):
    """The output of the model does not depend on its input: all samples of a batch get the same answer.

    The first saved steps do not count: a last layer that starts at zero answers the same at first.
    """

    patience: int = 5
    """Saved steps in a row."""
    spread: float = 1e-4
    """Standard deviation over a batch, as a share of the size of the output, up to which it is constant."""
    warm_up: int = 2
    """Saved steps that do not count."""

    explains: ClassVar[tuple[str, ...]] = NOT_LEARNING
    _ADVICE: ClassVar = (
        "Look for a layer that is dead (all zeros) or saturated between the input and the output.",
        "Check for a softmax over an axis of length 1, or over the batch axis.",
        "Lower the learning rate, and normalise the inputs.",
        "Check that the input reaches the model: no constant or empty batches.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("spread", at_least=0)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Every loss that was seen at this step."""
        for name, given in self.given(run).items():
            shares = [_share(one) for one in given]
            if any(not share <= self.spread for share in shares):
                continue
            return self.finding(
                step,
                f"The output given to {name} is the same for all samples of a batch "
                f"(spread {max(shares):.1e} of its size) at {len(given)} saved steps.",
                tensor=f"loss/{name}",
                evidence={"spread_share": max(shares), "saved_steps_count": len(given)},
                advice=self._ADVICE,
                view=ViewRef("overview", {"kind": "activation", "statistic": "std"}),
                step_first=given[0].step,
            )
        return None


def _share(one: Given) -> float:
    """Spread over the batch, relative to the root mean square; NaN when it cannot be told."""
    size, spread = one.number("prediction_size"), one.number("spread")
    if one.number("prediction_broken") or one.number("samples", 0) < 4:
        return float("nan")
    return spread / size if size > 0 else 0.0
