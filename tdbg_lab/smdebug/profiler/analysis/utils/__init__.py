"""Frames, statistics and timelines."""
