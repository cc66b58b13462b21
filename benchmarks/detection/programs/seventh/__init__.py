"""Programs of the seventh set."""
