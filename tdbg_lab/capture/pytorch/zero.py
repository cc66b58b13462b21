"""Parameters of which DeepSpeed's ZeRO gives each process a part only.

All three stages keep gradients apart from the parameters, each process a part of them; the third divides the
values, too. Reading the whole would make every process wait for all others.

Source: https://deepspeed.readthedocs.io/en/latest/zero3.html, "Debugging"; the parts are those that
``safe_get_full_grad`` puts together.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["gradient_of", "has_parts", "is_divided", "own_part", "whole_shape"]

_THIRD, _OTHERS = "ds_id", "_hp_mapping"


def is_divided(parameter: torch.Tensor) -> bool:
    """Whether this process holds a part of the values."""
    return bool(parameter.__dict__) and _THIRD in parameter.__dict__


def has_parts(parameter: torch.Tensor) -> bool:
    """Whether its gradient is kept apart from it, in parts."""
    held = parameter.__dict__
    return bool(held) and (_THIRD in held or _OTHERS in held)


def whole_shape(parameter: torch.Tensor) -> tuple[int, ...]:
    """Shape of all parts together."""
    return tuple(getattr(parameter, "ds_shape", parameter.shape))


def own_part(parameter: Any) -> torch.Tensor:
    """The values of a divided parameter that this process holds, 1-D; none while they lie on a disk."""
    part: torch.Tensor = parameter.ds_tensor
    status = getattr(getattr(part, "status", None), "name", "AVAILABLE")
    return _without_padding(parameter, part) if status == "AVAILABLE" else part.new_zeros(0)


def gradient_of(parameter: torch.Tensor) -> torch.Tensor | None:
    """Its gradient before a step, or what this process keeps of it, 1-D; None where there is none."""
    if not has_parts(parameter):
        return parameter.grad
    return _of_third_stage(parameter) if is_divided(parameter) else _of_other_stages(parameter)


def _of_third_stage(parameter: Any) -> torch.Tensor | None:
    optimizer = getattr(parameter, "_z3_optimizer", None)
    if optimizer is None or getattr(optimizer, "swap_optimizer", False):  # on a disk
        return None
    part = optimizer.get_local_fp32_grad_for_param(parameter)
    return None if part is None else _without_padding(parameter, part)


def _of_other_stages(parameter: Any) -> torch.Tensor | None:
    fragment = parameter._hp_mapping  # noqa: SLF001 - DeepSpeed's own functions read it, and wait for others
    if fragment is None:  # another process has all of it
        return None
    try:
        gradient: torch.Tensor = fragment.get_lp_grad_fragment(parameter._index_in_param_group)  # noqa: SLF001
    except (ValueError, KeyError, IndexError):  # there is none now
        return None
    place = fragment.lp_fragment_address
    whole = gradient.numel() == parameter.numel() and place.numel != parameter.numel()
    flat = gradient.detach().reshape(-1)
    return flat.narrow(0, place.start, place.numel) if whole else flat


def _without_padding(parameter: Any, part: torch.Tensor) -> torch.Tensor:
    """All parts are of one length; what is missing in the last ones is filled up."""
    flat = part.detach().reshape(-1)
    group = getattr(parameter, "ds_process_group", None)
    before = torch.distributed.get_rank(group) * flat.numel()
    return flat[: max(0, int(parameter.ds_numel) - before)]
