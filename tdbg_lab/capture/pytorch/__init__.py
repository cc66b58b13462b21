"""Hooks of PyTorch: modules, losses, parameters, optimizers."""
