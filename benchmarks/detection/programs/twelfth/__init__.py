"""The twelfth set: other data, networks, losses and schedules than those of the sets before."""
