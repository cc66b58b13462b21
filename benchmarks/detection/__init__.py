"""How many training faults the rules find, and how often they alarm on healthy trainings.

``python -m benchmarks.detection`` trains every program of `benchmarks.detection.programs`, healthy
and with its faults, asks every detector about the recorded runs, and writes ``results/detection.*``.
"""
