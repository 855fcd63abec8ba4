"""Metrics of runs that other trainers made, imported to compare with."""
