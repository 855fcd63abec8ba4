"""Figures of benchmarks from files alone, without a project. `evaluation.figures` reads the files."""
