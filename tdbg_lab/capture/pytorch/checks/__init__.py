"""Facts about a training loop that statistics of tensors cannot tell: what rules on silent errors look at.

All of it is a number under ``check/``, of kind ``check``, written when it changes and at saved steps. None
of it waits for a device, draws a random number or holds a tensor alive.
"""
