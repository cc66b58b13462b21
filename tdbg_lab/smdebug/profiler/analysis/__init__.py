"""Statistics of profiler data."""
