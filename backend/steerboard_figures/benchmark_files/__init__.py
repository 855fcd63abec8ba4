"""Figures of benchmarks from files alone, without a project. `cli.evaluation.figures` reads the files."""
