"""Programs of the fifth set: again other data, networks, losses, optimizers and schedules."""
