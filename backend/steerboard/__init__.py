"""Steerboard's backend: the API, the tables, the rules. Never imports torch."""

__version__ = "0.1.0"
