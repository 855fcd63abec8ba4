"""Steerboard's backend: the API, the tables, the rules. Never imports torch."""

import gc

__version__ = "0.1.0"

# The objects that imports make all stay: at Python's threshold of 700 the collector goes through them again and again,
# a sixth of the start of every process.
gc.set_threshold(50_000, 10, 10)
