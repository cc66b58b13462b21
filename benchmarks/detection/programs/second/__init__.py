"""Programs of the second held-out set: other data, networks, optimizers and schedules than all before."""
