"""Healthy trainings by family; see `catalog` for what is done to them."""
