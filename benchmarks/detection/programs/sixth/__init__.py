"""Programs of the sixth set."""
