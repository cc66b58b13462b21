"""What a training loop of Keras does, as facts ``check/...``: its batches, its modes, its weights."""
