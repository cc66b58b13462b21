"""Configuration, collections, hooks and tensors: what all frameworks share."""
