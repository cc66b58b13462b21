"""What was compiled and how, as plain data for the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from tdbg_lab.capture.keras.sinks import inner

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["hyperparameters"]


def hyperparameters(model: Any, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Backend, model, loss, metrics and the optimizer's configuration.

    Parameters
    ----------
    model
        A model, compiled or not.
    params
        What ``fit`` tells its callbacks: epochs, steps.
    """
    found: dict[str, Any] = {"backend": keras.backend.backend(), "model": type(model).__name__}
    if model.built:
        found["parameters"] = int(model.count_params())
    found["dtype_policy"] = model.dtype_policy.name
    for name in ("epochs", "steps"):
        if (params or {}).get(name) is not None:
            found[name if name == "epochs" else "steps_per_epoch"] = (params or {})[name]
    if getattr(model, "compiled", False):
        for name in ("jit_compile", "run_eagerly", "steps_per_execution"):
            found[name] = getattr(model, name)
        found.update(_compiled(model))
    return found


def _compiled(model: Any) -> dict[str, Any]:
    config = getattr(model, "_compile_config", None)
    given = dict(config.config) if config is not None else {}
    found = {name: _plain(given[name]) for name in ("loss", "loss_weights", "metrics") if given.get(name)}
    optimizer = model.optimizer
    if isinstance(optimizer, keras.optimizers.Optimizer):
        found["optimizer"] = {"class": type(inner(optimizer)).__name__, **_settings(inner(optimizer))}
        if inner(optimizer) is not optimizer:
            found["optimizer"]["loss_scale"] = type(optimizer).__name__
    return found


def _settings(optimizer: Any) -> dict[str, Any]:
    """Settings of an optimizer; none when its variables are gone, as on JAX after a step that raised."""
    try:
        return dict(_plain(optimizer.get_config()))
    except Exception:  # noqa: BLE001 - whatever a user's class raises is no reason to stop training
        return {}


def _plain(value: Any) -> Any:
    """JSON-able: objects by their name, numbers as numbers."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        if "class_name" in value and "config" in value:
            return {"class": value["class_name"], **_plain(value["config"])}
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "item") and not tuple(getattr(value, "shape", ())):
        return value.item()
    return str(getattr(value, "name", None) or getattr(value, "__name__", None) or type(value).__name__)
