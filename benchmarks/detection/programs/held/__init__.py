"""Programs that no rule was tuned on: other data, other architectures, other optimizers.

They were written before any rule was asked about them, and are reported as it comes. Whoever looks at what is
missed here and mends a rule has to say so in the results, and to write new ones.
"""
