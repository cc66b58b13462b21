"""Rules about losses over steps."""
