"""Advice in the words of the framework that trains: rules give it in those of PyTorch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.records import Finding

__all__ = ["KERAS", "worded"]

KERAS = {
    "Call model.eval() before evaluation and model.train() after it.": (
        "Evaluate by model.evaluate(), or call the model with training=False."
    ),
    "Call model.train() at the beginning of each epoch, and after each evaluation.": (
        "Call the model with training=True where it is trained: model(x, training=True)."
    ),
    "To freeze batch normalisation, call eval() on those layers and leave the model in train mode.": (
        "To freeze batch normalisation, set trainable = False on those layers."
    ),
    "Call train() on this part, or on the whole model, after what set it to eval().": (
        "Hand training on to this layer where it is called: layer(x, training=training)."
    ),
    "Check that optimizer.step() runs after backward() and that the learning rate is not zero.": (
        "Check that the gradients are applied and that the learning rate is not zero."
    ),
    "Give the DataLoader shuffle=True, or a sampler that shuffles.": (
        "Shuffle: fit(..., shuffle=True) does so with arrays, dataset.shuffle(...) with a tf.data.Dataset."
    ),
    "torch.nn.utils.clip_grad_norm_": "clipnorm or global_clipnorm of the optimizer",
    "torch.nn.init.xavier_uniform_": 'kernel_initializer="glorot_uniform"',
    "torch.nn.init.orthogonal_": 'kernel_initializer="orthogonal"',
    "torch.nn.init": "kernel_initializer of the layer",
    "CrossEntropyLoss(weight=...), scale_pos_weight": "class_weight of fit()",
    "torch.utils.data.WeightedRandomSampler": "tf.data.Dataset.sample_from_datasets",
}
"""Sentences and names of PyTorch, longer ones before those within them, and what Keras has instead."""


def worded(finding: Finding, framework: str) -> Finding:
    """The finding, with advice that a user of the framework can follow.

    Parameters
    ----------
    framework
        As the run names it, such as ``"keras"``.
    """
    if framework != "keras":
        return finding
    return replace(finding, advice=tuple(_in_keras(one) for one in finding.advice))


def _in_keras(text: str) -> str:
    for pytorch, keras in KERAS.items():
        text = text.replace(pytorch, keras)
    return text
