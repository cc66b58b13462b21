"""Adapters: `attach` at the beginning of somebody else's training loop, `detach` at its end.

One file per library, named after it and the only one that imports it. Each is thin: what is
captured, and when, is decided by `attach` and the hooks of the framework below.
"""
