"""How a model is divided over processes that train it together: what is no replica of what others have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tdbg_lab.capture.pytorch.moment import in_stage
from tdbg_lab.capture.pytorch.values import distributed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import nn

    from tdbg_lab.capture.notes import Notes

__all__ = ["note_division"]

_DATA_PARALLEL = frozenset({"FSDPModule", "DistributedDataParallel", "FullyShardedDataParallel"})
"""Classes of which a module says that each process has data of its own."""


def note_division(notes: Notes, models: Iterable[nn.Module]) -> None:
    """Say of the first train forward, within which this is called, whose part of the work it is.

    ``check/stage`` is 1 when a stage of `torch.distributed.pipelining` calls the model, or it is one of
    DeepSpeed's: other processes have other layers. ``check/split_layers`` is 1 when all have a part of
    every layer (tensor parallelism): all are given the same batch.
    """
    models = list(models)
    if in_stage() or any(map(_is_stage, models)):
        notes.set("stage", 1.0)
    if any(_split(model) for model in models):
        notes.set("split_layers", 1.0)


def _is_stage(model: nn.Module) -> bool:
    """Whether it is DeepSpeed's ``PipelineModule``, of which each process builds its layers only."""
    kind = any(one.__name__ == "PipelineModule" for one in type(model).__mro__)
    return kind and int(getattr(model, "num_stages", 1)) > 1


def _split(model: nn.Module) -> bool:
    found = False
    for module in model.modules():
        if not _DATA_PARALLEL.isdisjoint(one.__name__ for one in type(module).__mro__):
            return False
        found = found or any(map(_over_all, module.parameters(recurse=False)))
    return found


def _over_all(value: Any) -> bool:
    """Whether each process has a part of these values, and none has all."""
    if not distributed(value) or value.device_mesh.size() != torch.distributed.get_world_size():
        return False
    return any(one.is_shard() for one in value.placements)
