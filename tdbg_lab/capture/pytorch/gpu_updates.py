"""How far one optimizer step moves the parameters that lie on a GPU: one launch before it, one after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.stats.layouts import ordinary_memory
from tdbg_lab.stats.triton_kernels import triton_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from tdbg_lab.records import TensorKey
    from tdbg_lab.stats.cuda_samples import DeviceSamples

    Memory = tuple[int, int, int, int, int]
    """As `tdbg_lab.stats.pointers.Memory`."""

__all__ = ["GpuUpdates", "sampled_there"]


class GpuUpdates:
    """Ordinary parameters on a GPU around one step; what the kernels need is kept from step to step.

    Parameters
    ----------
    device
        Where they lie.
    plan
        What is looked at of so many elements: see `tdbg_lab.stats.samples.Samples`.
    """

    def __init__(self, device: torch.device, plan: Callable[[int], tuple[int, int, int]]) -> None:
        self.keys: list[TensorKey] = []
        self.values: list[torch.Tensor] = []
        self._plan = plan
        self._tables = triton_kernels().tables(device)
        self._memories: list[Memory] = []
        self._known: list[Memory] = []
        self._samples: DeviceSamples | None = None

    def clear(self) -> None:
        """Begin anew."""
        self.keys, self.values, self._memories = [], [], []

    def add(self, key: TensorKey, value: torch.Tensor, memory: Memory) -> None:
        """Watch one more."""
        self.keys.append(key)
        self.values.append(value)
        self._memories.append(memory)

    def copy(self) -> None:
        """Note what the parameters are."""
        if self._samples is None or self._memories != self._known:
            from tdbg_lab.stats.cuda_samples import DeviceSamples

            plans = [self._plan(memory[2]) for memory in self._memories]
            self._samples, self._known = DeviceSamples(self._memories, plans, self._tables), self._memories
        self._samples.copy()

    def ratios(self) -> Sequence[float] | torch.Tensor:
        """How far each has moved since `copy`, in units of its size then; 1-D and there."""
        places = zip(self.values, self._known, strict=True)
        if self._samples is None or any(value.data_ptr() != memory[0] for value, memory in places):
            return []  # somebody exchanged what they hold
        return self._samples.ratios()


def sampled_there(value: torch.Tensor) -> Memory | None:
    """Memory of an ordinary parameter on a GPU that the kernels can sample; None of others."""
    if not value.is_cuda or not triton_kernels().usable():
        return None
    from tdbg_lab.stats.cuda_samples import SAMPLED_CODES

    memory = ordinary_memory(value, None)
    return memory if memory is not None and memory[2] and memory[1] in SAMPLED_CODES else None
