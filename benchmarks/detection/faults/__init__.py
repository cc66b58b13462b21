"""What can go wrong: each function gives a `Fault` with the change of a recipe that makes it."""
