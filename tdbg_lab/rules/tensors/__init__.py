"""Rules about weights, gradients and activations."""
