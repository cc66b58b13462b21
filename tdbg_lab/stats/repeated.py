"""A tensor that is measured at each step anew: what follows from its type and shape is worked out once.

Between two operations of a training everything we touch has left the processor's caches, so each further
function and object costs several times what it does in a loop of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from tdbg_lab.stats.engine import engine
from tdbg_lab.stats.layouts import ordinary_address, ordinary_memory
from tdbg_lab.stats.team import torch_team
from tdbg_lab.stats.transforms import transforming

if TYPE_CHECKING:
    from torch import Tensor

    from tdbg_lab.stats.call import Call
    from tdbg_lab.stats.growing import GrowingBlock

__all__ = ["Repeated"]


class Repeated:
    """Adds rows of one tensor after the other, all of one type and shape.

    Parameters
    ----------
    target
        What the rows are added to.
    axis
        The axis to measure channels along; None to leave them out.
    """

    __slots__ = ("_call", "_target", "axis")

    def __init__(self, target: GrowingBlock, axis: int | None) -> None:
        self.axis = axis
        self._target = target
        self._call: Call | None = None

    def add(self, tensor: Tensor) -> bool:
        """`tdbg_lab.stats.tensors.summarize_into` of one tensor, of the type and shape of the first.

        Returns
        -------
        Whether it was added; if not, nothing was: it is no ordinary tensor in the memory of the processor, or
        the kernels are not ready.

        Raises
        ------
        MemoryError
            There is no room for the row.
        """
        cpu, address = engine(), ordinary_address(tensor)
        if address is None or not tensor.is_cpu or transforming() or not (cpu.ready or cpu.usable()):
            return False
        call = self._call
        if call is None:
            memory = ordinary_memory(tensor, self.axis)
            if memory is None:
                return False
            call = self._call = cpu.prepare(self._target, [memory])
        else:
            call.move(address)
        cpu.make(call, self._target, threads=torch.get_num_threads(), team=torch_team())
        return True
