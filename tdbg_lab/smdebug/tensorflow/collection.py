"""A collection that also takes Keras layers and variables."""

from __future__ import annotations

import re
from typing import Any

from tdbg_lab.smdebug.core.collection import Collection as BaseCollection
from tdbg_lab.smdebug.exceptions import SMDebugTypeError
from tdbg_lab.smdebug.tensorflow.names import variable_name

__all__ = ["Collection"]


class Collection(BaseCollection):
    """Tensors chosen by name, pattern, layer or variable; arguments as the base class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.variables: list[Any] = []

    def add_keras_layer(self, layer: Any, inputs: bool = False, outputs: bool = True) -> None:
        """Add what a layer takes, what it returns, or both."""
        for wanted, what in ((inputs, "inputs"), (outputs, "outputs")):
            if wanted:
                self.include(rf"(?:^|/){re.escape(str(layer.name))}/{what}(?:_\d+)?$")

    def add(self, arg: Any) -> None:
        """Add a variable, or each of several.

        Raises
        ------
        SMDebugTypeError
            If it is none.
        """
        for one in arg if isinstance(arg, (list, set, tuple)) else [arg]:
            if not hasattr(one, "name") or not hasattr(one, "shape"):
                raise SMDebugTypeError(
                    f"add() takes a variable or a list of them, not a {type(one).__name__}; "
                    "layers are added by add_keras_layer()."
                )
            self.variables.append(one)
            self.add_tensor_name(variable_name(one))

    def add_for_mode(self, arg: Any, mode: Any = None) -> None:
        """As `add`; a variable is the same in every mode."""
        del mode
        self.add(arg)
