"""The names that SageMaker Debugger gives to the tensors we capture."""

from __future__ import annotations

import re

__all__ = ["sagemaker_names"]

_INDEXED = re.compile(r"(.*):(\d+)")


def sagemaker_names(name: str) -> tuple[str, ...]:
    """Names of the same tensor in PyTorch's and Keras's hook, as far as ours tells them.

    Its PyTorch hook puts the class of the root before the name of a parameter; that we cannot know.

    >>> sagemaker_names("activation/block.relu")
    ('block.relu_output_0', 'block.relu/outputs')
    """
    kind, _, rest = name.partition("/")
    indexed = _INDEXED.fullmatch(rest)
    path, index = (indexed[1], indexed[2]) if indexed else (rest, "0")
    if kind == "activation":
        return f"{path}_output_{index}", f"{path}/outputs"
    if kind == "input":
        return f"{path}_input_{index}", f"{path}/inputs"
    if kind == "loss":
        return f"{path}_output_{index}", "loss"
    if kind == "gradient":
        return (f"gradients/{rest}Grad",)
    return ()
