"""PyTorch: Keras runs eagerly, so the step itself is watched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tdbg_lab.capture.pytorch.values import dtype_name, raw_array, sample_of
from tdbg_lab.stats.tensors import summarize_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.keras.backends.base import Watcher
    from tdbg_lab.capture.keras.seen import Seen
    from tdbg_lab.records import LossKind, Mode, StatsBlock

__all__ = ["TorchBackend"]


class TorchBackend:
    """Values are `torch.Tensor`; the state of training is in variables."""

    name = "torch"
    cheap_peek = True

    def eager(self, _model: Any) -> bool:
        """Always; a model that is compiled runs eagerly on the steps that are saved."""
        return True

    def unseen(self, _model: Any) -> str:
        """Everything can be seen."""
        return ""

    def is_tensor(self, value: Any) -> bool:
        """Any tensor."""
        return isinstance(value, torch.Tensor)

    def described(self, value: Any) -> tuple[str, tuple[int, ...]]:
        """Name of the dtype, and shape."""
        if isinstance(value, torch.Tensor):
            return dtype_name(value), tuple(value.shape)
        return str(value.dtype), tuple(value.shape)

    def array(self, value: Any) -> NDArray[Any]:
        """A copy on the host."""
        return raw_array(value) if isinstance(value, torch.Tensor) else np.asarray(value)

    def at_hand(self, value: Any) -> NDArray[Any] | None:
        """Tensors of the CPU."""
        if not isinstance(value, torch.Tensor):
            return value if isinstance(value, np.ndarray) else None
        plain = value.is_cpu and value.layout is torch.strided and value.dtype is not torch.bfloat16
        return value.detach().numpy() if plain else None

    def few(self, value: Any) -> NDArray[np.float64]:
        """On the host."""
        return np.asarray(sample_of(value).cpu().double().numpy())

    def left(self, values: Sequence[Any]) -> Sequence[Any]:
        """PyTorch counts the changes of each tensor; some values are copied where they are."""
        return [(one._version, sample_of(one)) for one in values]  # noqa: SLF001

    def replaced(self, value: Any, left: Any) -> NDArray[np.float64] | None:
        """What was copied, if the tensor was changed since."""
        version, sample = left
        if value._version == version:  # noqa: SLF001
            return None
        return np.asarray(sample.cpu().double().numpy())

    def summarize(self, values: Sequence[Any], axes: Sequence[int | None]) -> StatsBlock:
        """Where the tensors are."""
        return summarize_tensors([one.detach() for one in values], channel_axes=axes)

    def given_probabilities(self, _value: Any, kind: LossKind) -> LossKind:
        """What it was told."""
        return kind

    def peek(self, _model: Any, _mode: Mode, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Keras's function takes a list with one batch."""
        return args, args[0][0]

    def build(self, model: Any, mode: Mode, batch: Any, watcher: Watcher) -> None:
        """Keras builds models before the first step."""

    def look(
        self,
        model: Any,
        mode: Mode,
        args: tuple[Any, ...],
        batch: Any,
        watcher: Watcher,
        *,
        inputs: bool,
    ) -> Seen:
        """The step itself is watched instead."""
        raise NotImplementedError

    def before(self, _model: Any, _args: tuple[Any, ...]) -> Callable[[Any], Any]:
        """Variables hold their values."""
        return _read

    def after(self, _model: Any, _result: Any) -> Callable[[Any], Any]:
        """Variables hold their values."""
        return _read

    def logs(self, result: Any) -> Any:
        """Logs come back."""
        return result

    def kept(self, values: Sequence[Any]) -> Any:
        """Copies: variables are changed in place."""
        return [one.detach().clone() if isinstance(one, torch.Tensor) else one for one in values]

    def numbers(self, kept: Any) -> list[float]:
        """Waits."""
        return [float(one) for one in kept]

    def ready(self, kept: Any) -> bool:
        """Whether the values are on the host."""
        return all(not isinstance(one, torch.Tensor) or one.is_cpu for one in kept)


def _read(variable: Any) -> Any:
    return variable.value.detach()
