"""Checks of one Keras backend, run together in one process: importing a backend takes seconds.

``python -m checks FOLDER`` prints a JSON object: the name of each check, and its traceback or null.
"""
