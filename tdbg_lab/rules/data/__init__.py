"""Rules about inputs, labels and predictions."""
