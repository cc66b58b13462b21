"""Whether dropout and batch normalisation are in the mode they should be in.

Keras tells each layer with an argument: ``fit`` calls the model with ``training=True``. A ``train_step`` of
one's own that calls ``self(x)`` trains in inference mode, and nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.capture.keras.naming import LayerSite
    from tdbg_lab.capture.notes import Notes

__all__ = ["ModeWatch", "PassModes", "is_dropout", "is_norm"]


class PassModes:
    """What models and their layers were told in one pass."""

    def __init__(self) -> None:
        self._roots: set[bool] = set()
        self._parts: set[bool] = set()

    def root(self, kwargs: dict[str, Any]) -> None:
        """A model was called as a whole."""
        self._note(self._roots, kwargs)

    def part(self, layer: Any, kwargs: dict[str, Any]) -> None:
        """A layer was called. What is frozen stays in inference mode on purpose."""
        if layer.trainable and (is_dropout(layer) or is_norm(layer)):
            self._note(self._parts, kwargs)

    @staticmethod
    def _note(found: set[bool], kwargs: dict[str, Any]) -> None:
        told = kwargs.get("training")
        if told is None or isinstance(told, bool | int):  # a tensor decides later
            found.add(bool(told))

    @property
    def trains_nothing(self) -> bool:
        """Whether there are such layers, and nobody said that this is training."""
        return bool(self._parts) and True not in self._parts | self._roots

    @property
    def trains(self) -> bool:
        """Whether a whole model was told that this is training, and such layers were."""
        return True in self._roots and True in self._parts


class ModeWatch:
    """Compares what was told in each pass with what it is for."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._since = -1
        """Step of the first pass of those in a row that ran in inference mode."""
        self._passes = 0

    def find(self, sites: Sequence[LayerSite]) -> None:
        """Count the layers that behave differently in training."""
        self._notes.set("dropout_layers", float(sum(is_dropout(site.layer) for site in sites)))
        self._notes.set("batch_norm_layers", float(sum(is_norm(site.layer) for site in sites)))

    def passed(self, step: int, mode: Mode, modes: PassModes) -> None:
        """A pass is over."""
        if mode is Mode.TRAIN:
            if not modes.trains_nothing:
                self._since = -1
            elif self._since < 0:
                self._since = step
            self._notes.set("train_in_eval", float(step - self._since + 1 if self._since >= 0 else 0))
        elif mode is Mode.EVAL and modes.trains:
            self._passes += 1
            if self._passes & (self._passes - 1) == 0:  # at the powers of two
                self._notes.set("eval_in_train", float(self._passes))


def is_dropout(layer: Any) -> bool:
    """Whether a layer is random in training."""
    if isinstance(layer, keras.layers.LSTM | keras.layers.GRU | keras.layers.SimpleRNN):
        return float(layer.dropout or 0) > 0 or float(layer.recurrent_dropout or 0) > 0
    if isinstance(layer, keras.layers.GaussianNoise):
        return float(layer.stddev) > 0
    kinds = keras.layers.Dropout | keras.layers.GaussianDropout | keras.layers.AlphaDropout
    return isinstance(layer, kinds) and float(layer.rate) > 0


def is_norm(layer: Any) -> bool:
    """Whether a layer normalises by the batch in training."""
    return isinstance(layer, keras.layers.BatchNormalization)
