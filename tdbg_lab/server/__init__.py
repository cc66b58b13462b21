"""Jupyter server extension."""
