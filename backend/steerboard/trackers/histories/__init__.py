"""Metrics of runs that other trainers made, brought in to compare with."""
