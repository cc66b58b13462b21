"""Programs of the fourth held-out set: again other data, networks, losses, optimizers and schedules."""
