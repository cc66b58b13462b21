"""Settings of Keras optimizers that can be changed while they train: learning rates, clipping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from tdbg_lab.capture.changing import Changed, choose
from tdbg_lab.capture.keras.sinks import inner
from tdbg_lab.errors import ConfigError
from tdbg_lab.store import AppliedSetting, SettingChange

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["KerasSettings"]

_ON_JAX = (
    "On JAX the learning rate is part of the state that fit holds while it runs, where nobody else "
    "reaches it: change it between two calls of fit."
)


class KerasSettings:
    """What may be changed of the optimizers that are there at the moment.

    Parameters
    ----------
    backend
        Name of the one that Keras uses.
    optimizers
        Gives them by name.
    """

    def __init__(
        self, backend: str, models: Mapping[str, Any], optimizers: Callable[[], Mapping[str, Any]]
    ) -> None:
        self._backend = backend
        self._models = models
        self._optimizers = optimizers

    def change(self, change: SettingChange) -> Changed:
        """Change a setting of one optimizer, or of all.

        Raises
        ------
        ConfigError
            It cannot be done.
        """
        chosen = self._chosen(change)
        if change.setting == "clip_norm":
            return self._change_clipping(chosen, change.value)
        if change.group:
            raise ConfigError("An optimizer of Keras has one parameter group, 0.")
        if self._backend == "jax":
            raise ConfigError(_ON_JAX)
        rates = {name: _new_rate(optimizer, change) for name, optimizer in chosen.items()}
        applied = []
        for index, (name, (old, new)) in enumerate(rates.items()):
            chosen[name].learning_rate = new
            label = f"{name}.0" if len(self._optimizers()) > 1 and name else str(index)
            applied.append(AppliedSetting(f"optimizer/lr/{label}", old, new))
        return Changed(
            applied, "A callback of Keras that sets it, such as LearningRateScheduler, may set it again."
        )

    def _chosen(self, change: SettingChange) -> dict[str, Any]:
        known = {name: inner(one) for name, one in self._optimizers().items()}
        if not known:
            raise ConfigError("The model has no optimizer: compile it first.")
        return choose(change, known)

    def _change_clipping(self, chosen: Mapping[str, Any], value: float | None) -> Changed:
        for optimizer in chosen.values():
            if optimizer.clipnorm:
                raise ConfigError(
                    "The optimizer clips each gradient by itself (clipnorm), "
                    "which Keras puts before global_clipnorm."
                )
        applied = []
        for name, optimizer in chosen.items():
            what = f"clip_norm/{name}" if len(self._optimizers()) > 1 and name else "clip_norm"
            applied.append(AppliedSetting(what, optimizer.global_clipnorm or None, value))
            optimizer.global_clipnorm = value
        for model in self._models.values():
            if isinstance(model, keras.Model) and model.train_function is not None:
                model.make_train_function(force=True)  # the old one was compiled with the old value
        return Changed(applied, "The train step is compiled anew for it.")


def _new_rate(optimizer: Any, change: SettingChange) -> tuple[float, float]:
    """The rate as it is and as it shall be.

    Raises
    ------
    ConfigError
        It comes from a schedule, or would be out of bounds.
    """
    rate = optimizer._learning_rate  # noqa: SLF001 - the property hides what it is
    if not isinstance(rate, keras.Variable):
        raise ConfigError(
            f"The learning rate comes from {type(rate).__name__}, which is compiled into the train step: "
            "it cannot be changed while it goes on."
        )
    old = float(keras.ops.convert_to_numpy(rate.value))
    new = (
        float(change.value)
        if change.factor is None and change.value is not None
        else old * (change.factor or 1)
    )
    SettingChange(setting="learning_rate", value=new)  # says when it is out of bounds
    return old, new
