"""Rules by what they are about: what a fault declares in its own words, as rules are called."""

from __future__ import annotations

__all__ = ["rules_for"]

NAMES = {
    "learning_rate_scale": ("learning_rate",),
    "loss_diverging": ("diverging_loss",),
    "loss_oscillating": ("oscillating_loss", "diverging_loss"),
    "symmetric_initialisation": ("symmetric_weights",),
    "inputs_not_normalised": ("unscaled_inputs",),
    "labels_shuffled": ("unrelated_labels",),
    "labels_out_of_range": ("label_range",),
    "output_loss_mismatch": ("wrong_output",),
    "inputs_constant": ("constant_inputs",),
    "batches_repeated": ("same_batches",),
    "constant_output": ("no_splits", "layer_collapse"),
    "representation_collapse": ("layer_collapse", "lost_dimensions", "posterior_collapse"),
    "weight_decay_dominates": ("optimizer_settings",),
    "scheduler_stepped_too_often": ("frozen_schedule",),
}


def rules_for(declared: tuple[str, ...]) -> frozenset[str]:
    """Names of the rules that are meant."""
    return frozenset(name for one in declared for name in (one, *NAMES.get(one, ())))
