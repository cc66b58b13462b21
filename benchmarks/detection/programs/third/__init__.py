"""Programs of the third held-out set: again other data, networks, losses, optimizers and schedules."""
