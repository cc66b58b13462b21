"""What differs between the backends of Keras: how a step is seen, and how values are read."""
