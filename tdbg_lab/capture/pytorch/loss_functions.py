"""The functions of PyTorch that compute losses, and how their calls are heard."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

import torch

from tdbg_lab.listening import forget, listen
from tdbg_lab.records import LossKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.pytorch.evaluation_loss import EvaluationLoss
    from tdbg_lab.listening import Listeners

__all__ = ["FUNCTIONS", "LossFunction"]


class LossFunction(NamedTuple):
    """A function that computes a loss in C++: the one behind that of ``torch.nn.functional``."""

    owner: Any
    name: str
    kind: LossKind
    reduction: int
    """The place of its reduction among its arguments: 0 for none, 1 for the mean, 2 for the sum."""
    weights: int | None = None
    """The place of the weights of classes."""

    def ignored(self, args: tuple[Any, ...]) -> int | None:
        """Number of the class that does not count."""
        return _given(args, self.reduction + 1) if self in _OF_CLASSES else None

    def weights_in(self, args: tuple[Any, ...]) -> torch.Tensor | None:
        """The weights of classes."""
        return None if self.weights is None else _given(args, self.weights)

    def mean(self, args: tuple[Any, ...], result: torch.Tensor) -> torch.Tensor:
        """What it gave, as the mean over what it compares, whatever it was reduced to."""
        reduced = _given(args, self.reduction) in {None, _MEAN}
        return result if reduced else result.sum() / self._count(args)

    def _count(self, args: tuple[Any, ...]) -> Any:
        """What the mean divides by: pairs of numbers, or labels, each as often as its class weighs."""
        given, target = args[:2]
        if self not in _OF_CLASSES:
            return given.numel()
        if target.is_floating_point():
            return given.numel() // given.shape[min(1, given.ndim - 1)]
        counted, weights = target != self.ignored(args), self.weights_in(args)
        if weights is None:
            return counted.sum()
        return (weights[target.clamp(0, len(weights) - 1)] * counted).sum()  # no device is waited for

    def hear(self, listener: EvaluationLoss) -> None:
        """Tell `listener` of its calls from now on."""
        listen(self.owner, self.name, listener, self._telling)

    def forget(self, listener: EvaluationLoss) -> None:
        """Tell `listener` no longer. Idempotent."""
        forget(self.owner, self.name, listener)

    def _telling(
        self, original: Callable[..., Any], listeners: Listeners[EvaluationLoss]
    ) -> Callable[..., Any]:
        @wraps(original)
        def computes(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            with torch._C.DisableTorchFunction():  # noqa: SLF001
                for one in listeners:
                    one.hear(self, args, result)
            return result

        table = _operators()
        operator = table.get(id(original))
        if operator is not None:  # a script that is compiled now finds the function by its identity
            table[id(computes)] = operator
            finalize(computes, table.pop, id(computes), None)
        return computes


def _given(args: tuple[Any, ...], place: int) -> Any:
    return args[place] if place < len(args) else None


def _operators() -> dict[int, str]:
    """What TorchScript knows of functions in C++, by their identity."""
    table = getattr(getattr(torch.jit, "_builtins", None), "_get_builtin_table", None)
    return {} if table is None else table()


_MEAN = 1
_NN: Any = torch._C._nn  # noqa: SLF001 - behind every form of the function, however it was imported
FUNCTIONS = (
    LossFunction(_NN, "cross_entropy_loss", LossKind.LOGITS, 3, 2),
    LossFunction(_NN, "nll_loss_nd", LossKind.LOG_PROBABILITIES, 3, 2),
    LossFunction(_NN, "binary_cross_entropy", LossKind.YES_PROBABILITIES, 3),
    LossFunction(torch, "binary_cross_entropy_with_logits", LossKind.YES_LOGITS, 4, 3),
    LossFunction(_NN, "mse_loss", LossKind.DISTANCE, 2),
    LossFunction(_NN, "l1_loss", LossKind.DISTANCE, 2),
    LossFunction(_NN, "smooth_l1_loss", LossKind.DISTANCE, 2),
    LossFunction(_NN, "huber_loss", LossKind.DISTANCE, 2),
    LossFunction(torch, "kl_div", LossKind.OTHER, 2),
    LossFunction(torch, "poisson_nll_loss", LossKind.OTHER, 5),
)
_OF_CLASSES = FUNCTIONS[:2]
