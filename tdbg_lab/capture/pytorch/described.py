"""What `tdbg_lab.attach` is given of PyTorch, or of libraries that are shown as PyTorch: checked, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.optim import Optimizer

from tdbg_lab.capture.pytorch.libraries import as_pytorch
from tdbg_lab.capture.pytorch.naming import named, parameter_sites
from tdbg_lab.capture.pytorch.unwrapping import unwrapped
from tdbg_lab.capture.things import each
from tdbg_lab.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn

__all__ = ["aliases", "describe"]


def describe(model: Any, optimizer: Any, loss: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Check what was given: models, optimizers and losses by name.

    Raises
    ------
    CaptureError
        Something is not what it should be.
    """
    optimizers = named(each(optimizer, as_pytorch), "optimizer", Optimizer)
    return (
        _hookable(_distinct(named(each(model, as_pytorch), "model", torch.nn.Module)), "model"),
        _distinct({name: unwrapped(one) for name, one in optimizers.items()}),
        _hookable(named(each(loss, as_pytorch), "loss", torch.nn.Module), "loss"),
    )


def _distinct(things: Mapping[str, Any]) -> dict[str, Any]:
    """Each model or optimizer once: it may be given along with what is put around it."""
    kept: dict[str, Any] = {}
    for name, one in things.items():
        if all(one is not other for other in kept.values()):
            kept[name] = one
    return kept


def _hookable(modules: dict[str, nn.Module], what: str) -> dict[str, nn.Module]:
    for module in modules.values():
        if isinstance(module, torch.jit.ScriptModule):
            raise CaptureError(
                f"{what} is compiled by TorchScript ({type(module).__name__}), which takes no hooks; "
                f"expected a plain module: {what} = torch.nn.Sequential({what}), called instead of it."
            )
    return modules


def aliases(models: Mapping[str, nn.Module]) -> dict[str, str]:
    """Other names of shared parameters, with the name that has the rows."""
    return {other: site.name for site in parameter_sites(models) for other in site.aliases}
